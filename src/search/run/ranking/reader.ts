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

type Found = Omit<Occurrence, 'token'>

export class WordReader {
  /** the words of the query as they were typed, repetitions included */
  readonly sequence: number[] = []
  readonly #analyzer: Analyzer
  readonly #words = new Map<string, Found>()
  readonly #forms = new Map<string, Found>()
  readonly #beginnings: { text: string; word: number }[] = []
  /** the first two letters of what is looked for, as one number; undefined if any may do */
  #starts: Set<number> | undefined = new Set()
  readonly #known = new Map<string, Found | null>()

  constructor(terms: readonly Term[], analyzer: Analyzer) {
    this.#analyzer = analyzer
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
    // A stem begins with the first two letters of its word.
    this.#starts?.add(keyOf(text.charCodeAt(0), text.charCodeAt(1) || 0))
  }

  #begin(text: string, word: number): void {
    this.#beginnings.push({ text, word })
    if (text.length < 2) this.#starts = undefined
  }

  read(text: string): Reading {
    return this.#analyzer.splitsAtSymbols && !NOT_ASCII.test(text)
      ? this.#readPlain(text)
      : this.#readTokens(text)
  }

  // Most texts are plain ASCII. No string is made for a word that cannot match.
  #readPlain(text: string): Reading {
    const occurrences: Occurrence[] = []
    const lower = text.toLowerCase()
    const end = lower.length
    const starts = this.#starts
    let length = 0
    for (let at = 0; at < end; at++) {
      const first = lower.charCodeAt(at)
      if (IS_WORD[first] === 0) continue
      const start = at++
      const second = at < end ? lower.charCodeAt(at) : 0
      const isLonger = IS_WORD[second] === 1
      while (at < end && IS_WORD[lower.charCodeAt(at)] === 1) at++
      if (starts === undefined || starts.has(keyOf(first, isLonger ? second : 0))) {
        this.#match(lower.slice(start, at), length, occurrences)
      }
      length++
    }
    return { length, occurrences }
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

const keyOf = (first: number, second: number): number => first * 65_536 + second

/** What a correction costs. Where the word may be unfinished, letters that follow cost as one completion does. */
function costOf(typed: string, correction: string, prefix: boolean): number {
  const whole = editDistance(typed, correction, MOST_TYPOS)
  if (!prefix || whole <= MOST_TYPOS) return TYPO * Math.min(whole, MOST_TYPOS)
  return TYPO * MOST_TYPOS + 1
}
