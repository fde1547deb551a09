/** Finds the words of a query in the texts of documents, for ranking: where they are, and how exactly they match. */
import { wordDistance } from '../../../lib/nearest'
import type { Analyzer } from '../../text/analyzer'
import { type Term, typed } from '../../text/query'
import type { Occurrence, Reading } from './score'

/** A typo costs as much as two completions, as in Typesense. */
const TYPO = 2
const MOST_TYPOS = 2
/** In a text with more characters, words are counted only if the text could be the query itself. */
const EXACTLY_COUNTED = 256
const CHARACTERS_A_WORD = 6
/** Two words with this many characters between them are surely more than ten words apart, at least in English. */
const FAR = 400
const BLANK = 0x20

/** A word to look for. */
interface Wanted {
  text: string
  /** number of the word in the query */
  word: number
  cost: number
  /** the cost of a longer word that begins with it; undefined if such words do not match */
  longer: number | undefined
}

/** Where a word is in a text, in characters. */
interface Place {
  at: number
  word: number
  cost: number
}

/** The words of a text as an index has them, with blanks between. */
export const wordsOf = (text: string, analyzer: Analyzer): string => analyzer.prepare(text).toLowerCase()

/** A text without any of the words. Its length does not count. */
const NOTHING: Reading = { length: 0, occurrences: [], begins: false }

export class WordReader {
  /** the words of the query as they were typed, repetitions included */
  readonly sequence: number[] = []
  readonly #countsAll: boolean
  readonly #wanted: Wanted[] = []

  /** @param countsAll whether the places of words count, not only how far apart they are */
  constructor(terms: readonly Term[], analyzer: Analyzer, countsAll = false) {
    this.#countsAll = countsAll
    const numbers = new Map<string, number>()
    for (const term of terms) {
      const { words, begins } = analyzer.phrase(typed(term))
      for (const [index, text] of words.entries()) {
        const word = numbers.get(text) ?? numbers.size
        const isLast = index === words.length - 1
        this.sequence.push(word)
        if (numbers.has(text) && !term.prefix) continue
        numbers.set(text, word)
        const longer = isLast && begins ? 0 : isLast && term.prefix ? 1 : undefined
        this.#wanted.push({ text, word, cost: 0, longer })
        if (words.length > 1) continue
        const completed = term.prefix ? analyzer.completions(term.tokens[0] ?? '') : []
        for (const other of completed) this.#wanted.push({ text: other, word, cost: 1, longer: undefined })
        for (const other of term.corrections) {
          this.#wanted.push({ text: other, word, cost: costOf(text, other, term.prefix), longer: undefined })
        }
      }
    }
  }

  /**
   * Finds the query's words in a text. Searching for a few words is several times as fast as checking every word.
   * @param words of a text as the index has them, with blanks between (`wordsOf`)
   */
  read(words: string): Reading {
    const found: Place[] = []
    for (const { text: wanted, word, cost, longer } of this.#wanted) {
      for (let at = words.indexOf(wanted); at >= 0; at = words.indexOf(wanted, at + wanted.length)) {
        if (at > 0 && words.charCodeAt(at - 1) > BLANK) continue
        const end = at + wanted.length
        const isWhole = end >= words.length || words.charCodeAt(end) <= BLANK
        if (isWhole) found.push({ at, word, cost })
        else if (longer !== undefined) found.push({ at, word, cost: longer })
      }
    }
    if (found.length === 0) return NOTHING
    const occurrences = numbered(words, found, this.#countsAll)
    return { length: this.#lengthOf(words), occurrences, begins: found[0]!.at === 0 }
  }

  /** The number of words of a text; an estimate for a long text. */
  #lengthOf(text: string): number {
    const isLong = text.length > Math.max(EXACTLY_COUNTED, CHARACTERS_A_WORD * 2 * this.sequence.length)
    return isLong ? Math.round(text.length / CHARACTERS_A_WORD) : wordsIn(text, 0, text.length)
  }
}

/** Numbers the words by their positions. For words far apart, the numbers only show that they are far apart. */
function numbered(text: string, found: Place[], countsAll: boolean): Occurrence[] {
  if (found.length > 1) found.sort((a, b) => a.at - b.at || a.cost - b.cost)
  const occurrences: Occurrence[] = []
  let token = 0
  let before = countsAll ? 0 : (found[0]?.at ?? 0)
  let last = -1
  for (const { at, word, cost } of found) {
    // If one query word is the beginning of another, both find the longer word.
    if (at === last) continue
    token += at - before > FAR && !countsAll ? FAR : wordsIn(text, before, at)
    occurrences.push({ token, word, cost })
    before = at
    last = at
  }
  return occurrences
}

/** How many words begin in a part of a text, up to a place where a word begins. */
function wordsIn(text: string, from: number, to: number): number {
  let count = 0
  let inside = false
  for (let at = from; at < to; at++) {
    const isWord = text.charCodeAt(at) > BLANK
    if (isWord && !inside) count++
    inside = isWord
  }
  return count
}

/**
 * The cost of a correction. If the word may be unfinished, all following letters together cost as much as one
 * completion.
 */
export function costOf(written: string, correction: string, prefix: boolean): number {
  const { whole, beginning } = wordDistance(written, correction, MOST_TYPOS)
  const completed = prefix ? TYPO * Math.min(MOST_TYPOS, beginning) + 1 : Number.POSITIVE_INFINITY
  return Math.min(TYPO * Math.min(MOST_TYPOS, whole), completed)
}
