/**
 * Words of the index of words that are like a mistyped one.
 *
 * Reading all words of an index would read how often each occurs. Instead only those are looked at that share a
 * beginning: of a word with one typo either the first half is right, or the rest is. So the first half is looked up, and
 * everything that the word may be with one typo in its first half.
 */
import { editDistance } from '../../nearest'
import { fragment, type SqlFragment } from '../fragment'
import type { TextIndex } from './analyzer'
import { type TypoRules, typosAllowed, vocabularyOf } from './typo'

/** Longer words are not corrected: the variants of one are bound as one value, and SQLite takes 2 MB. */
const MOST_LETTERS = 32
/** Letters that may stand in place of one. */
const MOST_ALPHABET = 128
/** Words to search for in place of one. */
const MOST_SIMILAR = 16
/** Letters of a script: the others are looked for among the code points around the letter. */
const LATIN = [...'abcdefghijklmnopqrstuvwxyz0123456789']
const A_BLOCK = 64
const LAST = '\u{10ffff}'

/**
 * The nearest words: first those that are the word but for a typo, then those that begin with it but for one, and of
 * these the most frequent.
 * @param read runs a query
 * @param isUnfinished whether the word may go on
 * @returns the nearest words, without the word itself; none for words of more than 32 letters
 */
export function similarWords(
  sql: SqlStorage,
  read: (query: SqlFragment) => { term: string; doc: number }[],
  index: TextIndex,
  word: string,
  isUnfinished: boolean,
  rules: TypoRules,
): string[] {
  const allowed = typosAllowed(word, rules)
  const letters = [...word]
  if (allowed === 0 || letters.length > MOST_LETTERS) return []
  const half = letters.slice(0, Math.floor(letters.length / 2))
  const rest = letters.slice(half.length).join('')
  const changed = variantsOf(half, lettersAround(word))
  // The last letter of the half may be swapped with the next one.
  const swapped = [
    ...half.slice(0, -1),
    letters[half.length],
    half.at(-1),
    ...letters.slice(half.length + 1),
  ].join('')
  const beginnings = [
    half.join(''),
    swapped.slice(0, allowed === 1 ? undefined : half.length),
    ...changed.map((beginning) => (allowed === 1 ? beginning + rest : beginning)),
  ]
  const rows = read(
    fragment(
      `SELECT v.term, v.doc FROM json_each(?) b CROSS JOIN ${vocabularyOf(sql, index)} v
        ON v.term >= b.value AND v.term < b.value || ?`,
      JSON.stringify([...new Set(beginnings)]),
      LAST,
    ),
  )
  const distanceTo = isUnfinished ? distanceToBeginning : editDistance
  const found = new Map<string, { documents: number; distance: number; isWhole: boolean }>()
  for (const { term, doc } of rows) {
    const distance = term === word ? 0 : distanceTo(word, term, allowed)
    // What begins with the word is found by it.
    if (distance === 0 || distance > allowed) continue
    const isWhole = !isUnfinished || editDistance(word, term, allowed) === distance
    found.set(term, { documents: doc, distance, isWhole })
  }
  const nearest = Math.min(...[...found.values()].map(({ distance }) => distance))
  return [...found]
    .filter(([, { distance }]) => distance === nearest)
    .sort(
      ([a, one], [b, other]) =>
        Number(other.isWhole) - Number(one.isWhole) || other.documents - one.documents || (a < b ? -1 : 1),
    )
    .map(([term]) => term)
    .slice(0, MOST_SIMILAR)
}

/** Typos between a word and the nearest beginning of another. */
export function distanceToBeginning(word: string, term: string, limit: number): number {
  let least = limit + 1
  const last = Math.min(term.length, word.length + limit)
  for (let length = Math.max(1, word.length - limit); length <= last; length++) {
    least = Math.min(least, editDistance(word, term.slice(0, length), limit))
  }
  return least
}

/** Everything that a beginning may be with one typo. */
function variantsOf(beginning: readonly string[], alphabet: readonly string[]): string[] {
  const variants: string[] = []
  for (let at = 0; at <= beginning.length; at++) {
    const [before, after] = [beginning.slice(0, at).join(''), beginning.slice(at).join('')]
    const [letter, ...others] = beginning.slice(at)
    for (const added of alphabet) variants.push(before + added + after)
    if (letter === undefined) continue
    variants.push(before + others.join(''))
    if (others.length > 0) variants.push(before + others[0] + letter + others.slice(1).join(''))
    for (const other of alphabet) variants.push(before + other + others.join(''))
  }
  return variants.filter((variant) => variant !== '')
}

function lettersAround(word: string): string[] {
  if (/^[a-z0-9]+$/.test(word)) return LATIN
  const blocks = new Set([...word].map((letter) => Math.floor(letter.codePointAt(0)! / A_BLOCK)))
  return [...blocks]
    .flatMap((block) =>
      Array.from({ length: A_BLOCK }, (_, at) => String.fromCodePoint(block * A_BLOCK + at)).filter(
        (letter) => /[\p{L}\p{N}]/u.test(letter),
      ),
    )
    .slice(0, MOST_ALPHABET)
}
