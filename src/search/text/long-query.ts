/** Queries that say more than a search can look for: which of their words are taken. */
import type { ParsedQuery, Term } from './query'
import { STOPWORDS } from './stopwords'
import { type TokenRules, tokenize } from './words'

/** Distinct words and phrases of a query that take part in a search, those that it excludes included. */
export const MAX_TERMS = 256
const MAX_EXCLUDED = 128

/**
 * A query with no more terms than take part in a search: those that say most of what it is about, which are the rarest
 * ones that the collection has at all. They stay in their order.
 * @param documentsOf how many documents hold a folded word; asked only where there are too many terms
 */
export function mostTelling(
  { terms, excluded }: ParsedQuery,
  documentsOf: (words: string[]) => (word: string) => number,
): ParsedQuery {
  const most = MAX_TERMS - Math.min(excluded.length, MAX_EXCLUDED)
  if (terms.length <= most) return { terms, excluded: excluded.slice(0, MAX_EXCLUDED) }
  const documents = documentsOf([...new Set(terms.flatMap(({ tokens }) => tokens))])
  const rank = new Map<Term, number>()
  for (const term of terms) {
    const rarest = Math.min(...term.tokens.map(documents))
    const says = !term.tokens.every((token) => STOPWORDS.has(token))
    rank.set(term, rarest === 0 ? Number.POSITIVE_INFINITY : says ? rarest : Number.MAX_SAFE_INTEGER)
  }
  const ranked = terms.toSorted((a, b) => compare(rank.get(a)!, rank.get(b)!))
  // A word that no document has finds nothing: there is no place for it among those that do.
  const known = ranked.filter((term) => rank.get(term) !== Number.POSITIVE_INFINITY)
  const chosen = new Set((known.length > 0 ? known : ranked).slice(0, most))
  return { terms: terms.filter((term) => chosen.has(term)), excluded: excluded.slice(0, MAX_EXCLUDED) }
}

const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0)

/** Characters of a word that is taken for one: longer ones are ids, addresses and encoded data. */
const LONGEST_WORD = 64

const PLAIN: TokenRules = { token_separators: [], symbols_to_index: [] }

/**
 * A text that may be longer than a query, as one: a long text is searched by its distinct words without stopwords, and
 * where these are too many by the longest of them, which are the rarest in any language. A collection chooses among
 * them by what it holds (`mostTelling`).
 * @param most bytes
 */
export function asQuery(text: string, most: number): string {
  // A character takes three bytes of UTF-8 at most for each of its UTF-16 units.
  if (text.length * 3 <= most || byteLength(text) <= most) return text
  const words = new Map<string, string>()
  for (const { text: folded, start, end } of tokenize(text, PLAIN)) {
    if (end - start <= LONGEST_WORD && !words.has(folded)) words.set(folded, text.slice(start, end))
  }
  const telling = [...words].filter(([folded]) => !STOPWORDS.has(folded)).map(([, word]) => word)
  // Nothing but stopwords or signs: there is nothing to choose by.
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
