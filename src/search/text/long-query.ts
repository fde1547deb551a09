/** Chooses the words of a query that is too long to be searched as a whole. */
import type { ParsedQuery, Term } from './query'
import { grammarIn, stopwordsIn } from './stopwords'
import { PLAIN, tokenize } from './words'

/** Distinct words and phrases that one search uses, excluded ones included. */
export const MAX_TERMS = 256
const MAX_EXCLUDED = 128

/**
 * Cuts a query down to the terms that one search uses: the rarest ones that the collection has. They keep their
 * order.
 * @param documentsOf how many documents hold a folded word; called only when there are too many terms
 */
export function mostTelling(
  { terms, excluded }: ParsedQuery,
  documentsOf: (words: string[]) => (word: string) => number,
): ParsedQuery {
  const most = MAX_TERMS - Math.min(excluded.length, MAX_EXCLUDED)
  if (terms.length <= most) return { terms, excluded: excluded.slice(0, MAX_EXCLUDED) }
  const documents = documentsOf([...new Set(terms.flatMap(({ tokens }) => tokens))])
  const isGrammar = grammarIn(terms)
  const rank = new Map<Term, number>()
  for (const term of terms) {
    const rarest = Math.min(...term.tokens.map(documents))
    const says = !isGrammar(term)
    rank.set(term, rarest === 0 ? Number.POSITIVE_INFINITY : says ? rarest : Number.MAX_SAFE_INTEGER)
  }
  const ranked = terms.toSorted((a, b) => compare(rank.get(a)!, rank.get(b)!))
  // A word in no document finds nothing, so it must not take the place of one that does.
  const known = ranked.filter((term) => rank.get(term) !== Number.POSITIVE_INFINITY)
  const chosen = new Set((known.length > 0 ? known : ranked).slice(0, most))
  return { terms: terms.filter((term) => chosen.has(term)), excluded: excluded.slice(0, MAX_EXCLUDED) }
}

const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0)

/** Longer tokens are ids, addresses and encoded data, not words. */
const LONGEST_WORD = 64

/**
 * Turns a text of any length into a query. A long one becomes its distinct words without stopwords; if they are still
 * too many, the longest, which are the rarest in any language. Then `mostTelling` chooses by how many documents of
 * the collection have each word.
 * @param most bytes
 */
export function asQuery(text: string, most: number): string {
  // One UTF-16 unit takes at most three bytes of UTF-8.
  if (text.length * 3 <= most || byteLength(text) <= most) return text
  const words = new Map<string, string>()
  for (const { text: folded, start, end } of tokenize(text, PLAIN)) {
    if (end - start <= LONGEST_WORD && !words.has(folded)) words.set(folded, text.slice(start, end))
  }
  const isStopword = stopwordsIn([...words.keys()])
  const telling = [...words].filter(([folded]) => !isStopword(folded)).map(([, word]) => word)
  // Only stopwords or symbols, so there is nothing to choose by.
  if (telling.length === 0) return text.slice(0, most / 3)
  let left = most
  const chosen = new Set<string>()
  for (const word of telling.toSorted((a, b) => b.length - a.length)) {
    left -= byteLength(word) + 1
    if (left < 0) break
    chosen.add(word)
  }
  return telling.filter((word) => chosen.has(word)).join(' ')
}

const byteLength = (text: string): number => new TextEncoder().encode(text).length
