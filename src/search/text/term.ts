/** What a query is made of. */
import type { Analyzer } from './analyzer'

export interface Term {
  /** folded words; several make a phrase */
  tokens: string[]
  /** the words as typed */
  written: string[]
  /** the whole term as typed, where it is more than its words with blanks between */
  text?: string
  /** the last token matches every word that begins with it */
  prefix: boolean
  /** words of the index to use instead, because it lacks this one */
  corrections: string[]
  /** typos of each correction, where fields differ in what they take. Words that are not in it have none */
  typos?: ReadonlyMap<string, Typos>
  /** words typed after it that the query has already, without blanks: only where words are joined do they count */
  repeats?: string
  /** a phrase in quotes: no synonym replaces it */
  quoted?: true
  /** what may stand for this term and those after it */
  synonyms?: Standing
}

/** How far a word is from the one that was typed. */
export interface Typos {
  whole: number
  /** from its nearest beginning */
  beginning: number
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

/** A piece of a query as a term, if it has words. */
export function termOf(piece: string, analyzer: Analyzer): Term | undefined {
  const { words: tokens } = analyzer.phrase(piece)
  if (tokens.length === 0) return undefined
  const words = analyzer.tokenize(piece).slice(0, tokens.length)
  const written = words.map(({ start, end }) => piece.slice(start, end))
  const text = piece.trim()
  const term: Term = { tokens, written, prefix: false, corrections: [] }
  return text === written.join(' ') ? term : { ...term, text }
}

/** A term as it was typed. */
export const typed = ({ text, written }: Term): string => text ?? written.join(' ')
