/** Finds the words of a query in the texts of documents, for ranking: where they are and how alike. */
import { editDistance } from '../../../nearest'
import type { Analyzer } from '../../text/analyzer'
import type { Term } from '../../text/query'
import type { Occurrence, Reading } from './score'

const IS_WORD = Uint8Array.from({ length: 128 }, (_, code) =>
  /[A-Za-z0-9]/.test(String.fromCharCode(code)) ? 1 : 0,
)
const NOT_ASCII = /[^\0-\x7f]/
/** A typo costs as much as two completions, as in Typesense. */
const TYPO = 2
const MOST_TYPOS = 2

/** Of a text with more characters, words are counted only if it could be the query. */
const EXACTLY_COUNTED = 256
const CHARACTERS_A_WORD = 6
/** Characters between two words that are surely more than ten words apart, in English at least. */
const FAR = 400
/** With more words than this, all words of a text are looked at. */
const MOST_LOOKED_FOR = 12

type Found = Omit<Occurrence, 'token'>

export class WordReader {
  /** the words of the query as they were typed, repetitions included */
  readonly sequence: number[] = []
  readonly #analyzer: Analyzer
  readonly #words = new Map<string, Found>()
  readonly #forms = new Map<string, Found>()
  readonly #beginnings: { text: string; word: number }[] = []
  /** words of plain text can be found by their letters */
  #isPlain = true
  readonly #countsAll: boolean
  readonly #known = new Map<string, Found | null>()

  /** @param countsAll whether the places of words count, not only how far apart they are */
  constructor(terms: readonly Term[], analyzer: Analyzer, countsAll = false) {
    this.#analyzer = analyzer
    this.#countsAll = countsAll
    const numbers = new Map<string, number>()
    for (const { tokens, prefix, corrections } of terms) {
      for (const [index, token] of tokens.entries()) {
        const word = numbers.get(token) ?? numbers.size
        numbers.set(token, word)
        this.sequence.push(word)
        this.#add(token, { word, cost: 0 })
        if (prefix && index === tokens.length - 1) this.#begin(token, word)
        if (tokens.length > 1) continue
        for (const other of corrections) this.#add(other, { word, cost: costOf(token, other, prefix) })
      }
    }
    const words = [...this.#words.keys()]
    this.#isPlain =
      analyzer.splitsAtSymbols &&
      words.length <= MOST_LOOKED_FOR &&
      words.every((word) => analyzer.form(word) === word && analyzer.form(`${word}s`) === `${word}s`)
  }

  /** how many different words are looked for */
  get size(): number {
    return new Set(this.sequence).size
  }

  #add(text: string, found: Found): void {
    const known = this.#words.get(text)
    if (known === undefined || known.cost > found.cost) this.#words.set(text, found)
    const form = this.#analyzer.form(text)
    if (form !== text || !this.#forms.has(form)) this.#forms.set(form, found)
  }

  #begin(text: string, word: number): void {
    this.#beginnings.push({ text, word })
  }

  read(text: string): Reading {
    return this.#isPlain && !NOT_ASCII.test(text) ? this.#readPlain(text) : this.#readTokens(text)
  }

  // Most texts are plain ASCII. Looking for few words is several times as quick as looking at every word.
  #readPlain(text: string): Reading {
    const lower = text.toLowerCase()
    const found: Place[] = []
    for (const [word, { cost, word: number }] of this.#words) {
      const isBeginning = this.#beginnings.some((beginning) => beginning.text === word)
      for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + word.length)) {
        const end = at + word.length
        if (at > 0 && IS_WORD[lower.charCodeAt(at - 1)] === 1) continue
        const isLonger = end < lower.length && IS_WORD[lower.charCodeAt(end)] === 1
        if (isLonger && !isBeginning) continue
        found.push({ at, end, word: number, cost: isLonger ? Math.max(1, cost) : cost })
      }
    }
    return { length: this.#lengthOf(lower), occurrences: numbered(lower, found, this.#countsAll) }
  }

  /** Words of a text; of a long one about how many. */
  #lengthOf(text: string): number {
    const isLong = text.length > Math.max(EXACTLY_COUNTED, CHARACTERS_A_WORD * 2 * this.sequence.length)
    return isLong ? Math.round(text.length / CHARACTERS_A_WORD) : wordsIn(text, 0, text.length)
  }

  #readTokens(text: string): Reading {
    const occurrences: Occurrence[] = []
    const tokens = this.#analyzer.tokenize(text)
    for (const [number, token] of tokens.entries()) this.#match(token.text, number, occurrences)
    return { length: tokens.length, occurrences }
  }

  #match(token: string, number: number, into: Occurrence[]): void {
    let found = this.#known.get(token)
    if (found === undefined) {
      found = this.#compare(token)
      this.#known.set(token, found)
    }
    if (found !== null) into.push({ token: number, word: found.word, cost: found.cost })
  }

  #compare(token: string): Found | null {
    const word = this.#words.get(token)
    if (word !== undefined) return word
    const form = this.#forms.get(this.#analyzer.form(token))
    if (form !== undefined) return form.cost === 0 ? { ...form, cost: 1 } : form
    const begun = this.#beginnings.find(({ text }) => token.startsWith(text))
    return begun === undefined ? null : { word: begun.word, cost: 1 }
  }
}

/** Where a word is in a text, in characters. */
interface Place extends Found {
  at: number
  end: number
}

/** Numbers the words by their places. Far from each other, the numbers only say that they are far. */
function numbered(text: string, found: Place[], countsAll: boolean): Occurrence[] {
  found.sort((a, b) => a.at - b.at || b.end - a.end || a.cost - b.cost)
  const occurrences: Occurrence[] = []
  let token = 0
  let before = countsAll ? 0 : found[0]?.at
  let last = -1
  for (const { at, word, cost } of found) {
    // A longer word that begins with another one is found by both.
    if (at === last) continue
    token += at - before! > FAR && !countsAll ? FAR : wordsIn(text, before!, at)
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
    const isWord = IS_WORD[text.charCodeAt(at)] === 1
    if (isWord && !inside) count++
    inside = isWord
  }
  return count
}

/** What a correction costs. Where the word may be unfinished, letters that follow cost as one completion does. */
function costOf(typed: string, correction: string, prefix: boolean): number {
  const whole = editDistance(typed, correction, MOST_TYPOS)
  if (!prefix || whole <= MOST_TYPOS) return TYPO * Math.min(whole, MOST_TYPOS)
  return TYPO * MOST_TYPOS + 1
}
