/**
 * The table `terms`: the words of word_index, without the documents that have them. It serves to find typos. FTS5's
 * own vocabulary is too slow for that: to list a word, it reads all places where the word occurs.
 *
 * A word is added with the first document that has it. It stays when its last document is deleted, so readers of the
 * table must count a word's documents themselves.
 */
import { wordsOf } from '../../models/words'
import { RUN, type TokenRules, type WrittenWord, writtenWords } from './analyzer'

export const TERMS = 'terms'

/** Longer words are ids, addresses and encoded data. They are not completed or corrected. */
const LONGEST_TERM = 64

/** Seeds of the two hashes. Two words with equal hashes are taken for the same word: one pair in 2^64. */
const FIRST_SEED = 0x811c9dc5 | 0
const SECOND_SEED = 0x9747b28c | 0
const FIRST_PRIME = 0x01000193
const SECOND_PRIME = 0x5bd1e995

/** Words in one bound value. SQLite takes 2 MB, and a word has 64 units of at most three bytes. */
const AT_ONCE = 8_192

const FEWEST_SLOTS = 1 << 12
const MOST_SLOTS = 1 << 17

/**
 * Adds the words of texts to the table.
 *
 * Nearly all words of a text are in the table already. This object remembers the words that it has written by their
 * hashes, and makes no strings of them: 4 µs a kilobyte instead of 15.
 */
export class Terms {
  // Open addressing: two numbers a slot, zeros for none.
  #slots = new Int32Array(2 * FEWEST_SLOTS)
  #known = 0

  constructor(private readonly sql: SqlStorage) {}

  /** @param texts words separated by blanks, as for word_index */
  add(texts: readonly (string | null)[]): void {
    const added: string[] = []
    for (const text of texts) if (text !== null) this.#collect(text, added)
    for (let from = 0; from < added.length; from += AT_ONCE) {
      this.sql.exec(
        `INSERT OR IGNORE INTO ${TERMS} (term) SELECT value FROM json_each(?)`,
        JSON.stringify(added.slice(from, from + AT_ONCE)),
      )
    }
  }

  /** Forgets the written words. Call it after a rollback, and after the table was emptied. */
  reset(): void {
    this.#slots = new Int32Array(2 * FEWEST_SLOTS)
    this.#known = 0
  }

  #collect(text: string, added: string[]): void {
    let from = 0
    let first = FIRST_SEED
    let second = SECOND_SEED
    for (let at = 0; at <= text.length; at++) {
      let code = at < text.length ? text.charCodeAt(at) : 0
      // unicode61 splits at blanks and controls, and folds the case of ASCII.
      if (code > 0x20 && code !== 0x7f) {
        if (code >= 0x41 && code <= 0x5a) code += 0x20
        first = Math.imul(first ^ code, FIRST_PRIME)
        second = Math.imul(second ^ code, SECOND_PRIME)
        second ^= second >>> 15
        continue
      }
      if (at > from && at - from <= LONGEST_TERM && this.#isNew(first, second)) {
        added.push(text.slice(from, at).toLowerCase())
      }
      from = at + 1
      first = FIRST_SEED
      second = SECOND_SEED
    }
  }

  /** Whether a word with these hashes is not known. It is from now on. */
  #isNew(first: number, second: number): boolean {
    // Two zeros mark an empty slot, so no word may have them.
    const low = first === 0 && second === 0 ? 1 : first
    if (!this.#put(low, second)) return false
    this.#known++
    if (this.#known * 4 > this.#slots.length) this.#grow()
    return true
  }

  #put(first: number, second: number): boolean {
    const slots = this.#slots
    const mask = slots.length / 2 - 1
    for (let slot = (first ^ (first >>> 16)) & mask; ; slot = (slot + 1) & mask) {
      const known = slots[2 * slot]!
      const other = slots[2 * slot + 1]!
      if (known === first && other === second) return false
      if (known !== 0 || other !== 0) continue
      slots[2 * slot] = first
      slots[2 * slot + 1] = second
      return true
    }
  }

  /** Doubles the capacity. At the limit it starts empty again: writing a word twice changes nothing. */
  #grow(): void {
    const old = this.#slots
    if (old.length >= 2 * MOST_SLOTS) {
      this.reset()
      return
    }
    this.#slots = new Int32Array(2 * old.length)
    for (let at = 0; at < old.length; at += 2) {
      if (old[at] !== 0 || old[at + 1] !== 0) this.#put(old[at]!, old[at + 1]!)
    }
  }
}

// =============================================================================
// Words as filters, orders, facet queries and curations compare them. They are those of word_index (analyzer.ts), so all of
// these agree with searches on what a word is.

/** The words of a text, and where they are. Each character of a script without spaces is a word. */
export const comparedTokens = (text: string, rules: TokenRules): WrittenWord[] =>
  writtenWords(rules).compared(text)

/** The words of a text to look for in a normal form: those that were written as one follow each other there. */
export function comparedWords(text: string, rules: TokenRules): string[] {
  const words: string[] = []
  for (const { text: word, continues } of comparedTokens(text, rules)) {
    words.push(continues ? `${words.pop()} ${word}` : word)
  }
  return words
}

/** Whether each word of a query begins a word of a normal form. A query without words does not. */
export function beginning(query: string, rules: TokenRules): (form: string) => boolean {
  const words = comparedWords(query, rules).map((word) => ` ${word}`)
  return (form) => words.length > 0 && words.every((word) => ` ${form}`.includes(word))
}

/** A text with blanks between the words of its language, where it has none. They may be anywhere in a value. */
export const spaced = (text: string): string =>
  text.replace(
    RUN(),
    (run) =>
      ` ${wordsOf(run)
        .map(({ raw }) => raw)
        .join(' ')} `,
  )

/** The form in which filters and orders compare a value: its words in order, without case, accents and signs. */
export const normalForm = (text: string, rules: TokenRules): string => writtenWords(rules).form(text)

type Comparable = string | number | bigint

/** Compares numbers by value, and texts by code points. */
export function compare(a: Comparable, b: Comparable): number {
  if (a === b) return 0
  if (typeof a !== 'string' && typeof b !== 'string') return a < b ? -1 : a > b ? 1 : 0
  const [left, right] = [String(a), String(b)]
  for (let at = 0; at < left.length && at < right.length; at++) {
    if (left.charCodeAt(at) === right.charCodeAt(at)) continue
    return rankOf(left.charCodeAt(at)) - rankOf(right.charCodeAt(at))
  }
  return left.length - right.length
}

/** The place of a unit in the order of code points: in UTF-16 order, surrogates precede the units from U+E000 on. */
export const rankOf = (unit: number): number =>
  unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit
