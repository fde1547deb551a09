/** What a query is made of. */

export interface Term {
  /** folded words; several make a phrase */
  tokens: string[]
  /** the words as typed, for FTS5, which folds by its own rules */
  written: string[]
  /** the last token matches every word that begins with it */
  prefix: boolean
  /** words of the index to use instead, because it lacks this one */
  corrections: string[]
  /** a phrase in quotes: no synonym replaces it */
  quoted?: true
  /** what may stand for this term and those after it */
  synonyms?: Standing
}

/** What may stand for a term and those after it. */
export interface Standing {
  /** terms that are replaced together */
  span: number
  /** lists of terms; all of one list have to be found */
  instead: Term[][]
}

export interface ParsedQuery {
  terms: Term[]
  excluded: Term[]
}
