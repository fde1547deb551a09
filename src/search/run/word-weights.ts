/** How much the words of a search say: in how many documents of the collection each is, and what the best match could score. */

import type { TokenRules } from '../text/analyzer'
import { analyzerOf, type TextIndex } from '../text/analyzer'
import { relax, type Term } from '../text/query'
import { vocabularyOf } from '../text/similar'
import type { SearchContext } from './context'

/** The most that FTS5 multiplies the rarity of a word by, if a document has the word very often. */
const MOST_BM25 = 2.2
/**
 * Rarity of a word that most documents have. It is not 0, so that meaning can decide questions that have only such
 * words.
 */
const LEAST_SAID = 0.5

/** A searched word with its corrections, and how much it says: its IDF in the collection. */
export interface WeighedWord {
  /** folded */
  words: string[]
  says: number
}

/** The single words of some terms, each with how much it says. Words that no document has say the most. */
export function weighWords(context: SearchContext, index: TextIndex, terms: Term[]): WeighedWord[] {
  const words = relax(terms)
    .filter(({ tokens }) => tokens.length === 1)
    .map(({ tokens, corrections: others, synonyms }) => [...tokens, ...others, ...singleWords(synonyms)])
  const documentsOf = documentsWith(context, index, context.schema, words.flat())
  const all = context.count()
  return words.map((alternatives) => {
    const documents = alternatives.reduce((sum, word) => sum + documentsOf(word), 0)
    const says = Math.log((all - documents + 0.5) / (documents + 0.5))
    return { words: alternatives, says: Math.max(LEAST_SAID, says || 0) }
  })
}

/** The synonyms of one word. */
const singleWords = (synonyms: Term['synonyms']): string[] =>
  (synonyms?.instead ?? []).flatMap((terms) =>
    terms.length === 1 && terms[0]!.tokens.length === 1 ? terms[0]!.tokens : [],
  )

/**
 * The BM25 of a document that has all words as often as can count: FTS5 multiplies the IDF of a word by at most 2.2
 * (k1 + 1). Words that no document has count too, because then part of the question is not answered.
 */
export const idealScore = (words: readonly WeighedWord[]): number =>
  words.reduce((sum, { says }) => sum + MOST_BM25 * says, 0)

/** In how many documents the index has each of some folded words. */
export function documentsWith(
  context: SearchContext,
  index: TextIndex,
  rules: TokenRules,
  words: string[],
): (word: string) => number {
  const { sql } = context
  const { form } = analyzerOf(index, rules)
  const forms = [...new Set(words.map(form))]
  const rows = sql.exec<{ term: string; doc: number }>(
    `SELECT term, doc FROM json_each(?) w CROSS JOIN ${vocabularyOf(sql, index)} v ON v.term = w.value`,
    JSON.stringify(forms),
  )
  const documents = new Map(rows.toArray().map(({ term, doc }) => [term, doc]))
  return (word) => documents.get(form(word)) ?? 0
}
