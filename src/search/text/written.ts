/**
 * Words as people write them, for word_index. As in Typesense, symbols inside a word join its parts: `t-shirt` is the
 * word `tshirt`. Only blanks and a collection's `token_separators` end a word.
 *
 * Scripts without spaces become pairs of characters, and the last character of a run alone: 東京都 is 東京, 京都 and 都.
 * The pairs of a query in their order find a run, and a single character finds the words that begin with it. Korean is
 * among them, because its words carry endings. An emoji is a word of its own.
 */
import { regExp } from '../../lib/once'
import type { Stemmer } from '../../lib/snowball'
import { foldWord } from './fold'
import { stemmerOf } from './stemmers'
import { PLAIN, type Token, type TokenRules } from './words'

/** A word of a text. */
export interface WrittenWord extends Token {
  /** it continues a run of a script without spaces from the word before */
  continues: boolean
  /** the last character of such a run, which was also part of the pair before */
  tail: boolean
}

/** The class of each ASCII character: outside of words, part of a word, or a symbol inside a word. */
export type AsciiClasses = Uint8Array
export const OUTSIDE = 0
export const PART = 1
export const INSIDE = 2

/** Longer words are cut, in documents and queries alike. Typesense's default. */
export const DEFAULT_LENGTH = 100
/** Stems that are cached. */
const MOST_STEMS = 10_000

const WITHOUT_SPACES = String.raw`\p{Script=Han}\p{scx=Hira}\p{scx=Kana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}`
const UNSPACED = String.raw`[${WITHOUT_SPACES}\p{Script=Hangul}]`
// Thai and Lao `am` written as two characters. It counts as the single character that other texts use.
const AM = String.raw`\u0e4d\u0e32|\u0ecd\u0eb2`
/** Several characters of such scripts. */
export const RUN = regExp(`[${WITHOUT_SPACES}][${WITHOUT_SPACES}\\p{M}]+`, 'gu')
const runsOf = (character: string) =>
  regExp(`(?:${AM}|${character})(?:(?!${AM})[\\p{M}\\uff9e\\uff9f])*|(?:(?!${character}).)+`, 'gsu')
const UNSPACED_RUN = runsOf(UNSPACED)
// Korean has spaces, and filters compare its words with their endings, as Typesense does.
const COMPARED_RUN = runsOf(`[${WITHOUT_SPACES}]`)
const HAS_UNSPACED = regExp(UNSPACED, 'u')
const IS_UNSPACED = regExp(`^${UNSPACED}`, 'u')

const PICTURE = String.raw`(?![\u00a9\u00ae\u2122#*0-9])(?:\p{RI}\p{RI}|\p{Extended_Pictographic}[\u{fe0f}\p{EMod}]?(?:\u{200d}\p{Extended_Pictographic}[\u{fe0f}\p{EMod}]?)*)`
const IS_PICTURE = regExp(`^${PICTURE}`, 'u')
// An emoji counts as the same in every colour, and in its text form.
const COLOUR = regExp(String.raw`[\u{fe0f}\p{EMod}]`, 'gu')

/** Non-ASCII symbols that do not end a word: apostrophes, hyphens, and invisible characters. */
const QUIET = String.raw`\u00ad\u00b7\u02bc\u2010\u2011\u2018\u2019\u200b-\u200d\u2060\ufe0f\ufeff`
const ASCII_SIGNS = [...'!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~']

const escapeClass = (characters: readonly string[]): string =>
  characters.map((character) => character.replace(/[\\\]^-]/g, '\\$&')).join('')

const ASCII = /^[\0-\x7f]*$/
const BLANK = 0x20
/** All that is neither a letter nor a sign in ASCII. */
const BLANKS = /[\0-\x20\x7f]+/g

/** Finds the words of texts, by the rules of a field. */
export class WrittenWords {
  /** undefined: the words of ASCII texts are stemmed */
  readonly classes: AsciiClasses | undefined
  /** the most letters of a word */
  readonly mostLetters: number
  #stemmer: Stemmer | undefined
  // Stemming is slow, and texts repeat their words.
  #stems = new Map<string, string>()
  #separators: RegExp | undefined
  #signs: RegExp
  #word: RegExp
  #notOfWord: RegExp
  #long: RegExp

  constructor({ token_separators, symbols_to_index, truncate_len, stem }: TokenRules = PLAIN) {
    const symbols = symbols_to_index.filter((symbol) => !token_separators.includes(symbol))
    const signs = ASCII_SIGNS.filter((sign) => !symbols.includes(sign) && !token_separators.includes(sign))
    this.mostLetters = truncate_len ?? DEFAULT_LENGTH
    this.#stemmer = stem === undefined ? undefined : stemmerOf(stem)
    this.classes = this.#stemmer ? undefined : classesOf(symbols, token_separators)
    this.#separators =
      token_separators.length === 0 ? undefined : new RegExp(`[${escapeClass(token_separators)}]`, 'gu')
    this.#signs = new RegExp(`[${escapeClass(signs)}]+`, 'g')
    const not = token_separators.length === 0 ? '' : `(?![${escapeClass(token_separators)}])`
    const part = `${not}[\\p{L}\\p{N}\\p{M}${escapeClass(symbols)}]`
    const inside = `${not}(?!${PICTURE})[${escapeClass(signs)}${QUIET}\\p{S}]`
    this.#word = new RegExp(`${not}${PICTURE}|${part}(?:(?:${inside})*${part})*`, 'gu')
    this.#notOfWord = new RegExp(`[^\\p{L}\\p{N}\\p{M}${escapeClass(symbols)}]+`, 'gu')
    this.#long = new RegExp(`\\S{${this.mostLetters + 1}}`)
  }

  /** The words of a text separated by blanks, in the form in which they are indexed. FTS5 folds the case of ASCII. */
  prepare(text: string): string {
    if (this.#stemmer === undefined && ASCII.test(text) && !this.#hasLongWord(text)) {
      const separated = this.#separators === undefined ? text : text.replace(this.#separators, ' ')
      return separated.replace(this.#signs, '').trim()
    }
    return this.words(text)
      .map((word) => word.text)
      .join(' ')
  }

  // Steps as wide as the longest word: most texts are passed after a few character checks. Only a gap that wide needs
  // the regular expression.
  #hasLongWord(text: string): boolean {
    for (let at = this.mostLetters; at < text.length; at += this.mostLetters + 1) {
      const wide = at
      while (at > wide - this.mostLetters && text.charCodeAt(at) !== BLANK) at--
      if (text.charCodeAt(at) !== BLANK) return this.#long.test(text)
    }
    return false
  }

  words(text: string): WrittenWord[] {
    // Most words of queries are letters and digits alone.
    if (this.#isPlainWord(text)) return [wordAt(text.toLowerCase(), 0, text.length)]
    const words: WrittenWord[] = []
    for (const { 0: found, index } of text.matchAll(this.#word)) {
      if (IS_PICTURE().test(found)) {
        words.push(wordAt(found.replace(COLOUR(), ''), index, index + found.length))
      } else if (HAS_UNSPACED().test(found)) this.#addRuns(words, found, index)
      else this.#add(words, found, index)
    }
    return words
  }

  /** Whether an ASCII text is one word, without symbols inside. */
  #isPlainWord(text: string): boolean {
    if (this.classes === undefined || text === '' || text.length > this.mostLetters) return false
    for (let at = 0; at < text.length; at++) if (this.classes[text.charCodeAt(at)] !== PART) return false
    return true
  }

  /**
   * The words of a text as filters, orders and facets compare them: neither stemmed nor cut, and each character of a
   * script without spaces for itself.
   */
  compared(text: string): WrittenWord[] {
    if (this.#isPlainWord(text)) return [wordAt(text.toLowerCase(), 0, text.length)]
    const words: WrittenWord[] = []
    for (const { 0: found, index: start } of text.matchAll(this.#word)) {
      const isPicture = !ASCII.test(found) && IS_PICTURE().test(found)
      const first = words.length
      for (const { 0: part, index } of isPicture ? [{ 0: found, index: 0 }] : partsOf(found)) {
        const letters = isPicture ? found.replace(COLOUR(), '') : part.replace(this.#notOfWord, '')
        const form = foldWord(letters)
        if (form === '') continue
        const at = start + index
        const continues = words.length > first
        words.push({ ...wordAt(form, at, at + part.length), continues })
      }
    }
    return words
  }

  /** {@link compared} as one text. */
  form(text: string): string {
    if (!ASCII.test(text))
      return this.compared(text)
        .map((word) => word.text)
        .join(' ')
    const separated = this.#separators === undefined ? text : text.replace(this.#separators, ' ')
    return separated.replace(this.#signs, '').replace(BLANKS, ' ').trim().toLowerCase()
  }

  #add(words: WrittenWord[], found: string, start: number): void {
    const text = this.#formOf(found.replace(this.#notOfWord, ''))
    if (text !== '') words.push(wordAt(this.#cut(text), start, start + found.length))
  }

  #formOf(word: string): string {
    if (this.#stemmer === undefined) return foldWord(word)
    const known = this.#stems.get(word)
    if (known !== undefined) return known
    const form = foldWord(word, this.#stemmer)
    if (this.#stems.size >= MOST_STEMS) this.#stems.clear()
    this.#stems.set(word, form)
    return form
  }

  #cut(text: string): string {
    return text.length <= this.mostLetters ? text : text.slice(0, this.mostLetters).toWellFormed()
  }

  #addRuns(words: WrittenWord[], found: string, start: number): void {
    let run: { text: string; start: number; end: number }[] = []
    const flush = () => {
      for (const [at, one] of run.entries()) {
        const next = run[at + 1]
        const text = one.text + (next?.text ?? '')
        const isTail = next === undefined && at > 0
        words.push({ ...wordAt(text, one.start, next?.end ?? one.end), continues: at > 0, tail: isTail })
      }
      run = []
    }
    for (const { 0: part, index } of found.matchAll(UNSPACED_RUN())) {
      const from = start + index
      if (IS_UNSPACED().test(part)) {
        run.push({ text: foldWord(part), start: from, end: from + part.length })
        continue
      }
      flush()
      this.#add(words, part, from)
    }
    flush()
  }
}

/** The parts of a written word: runs of letters, and single characters of scripts without spaces. */
const partsOf = (found: string) =>
  !ASCII.test(found) && HAS_UNSPACED().test(found) ? found.matchAll(COMPARED_RUN()) : [{ 0: found, index: 0 }]

const KNOWN = new WeakMap<TokenRules, WrittenWords>()

/** The same object for the same rules. */
export function writtenWords(rules: TokenRules): WrittenWords {
  const known = KNOWN.get(rules) ?? new WrittenWords(rules)
  KNOWN.set(rules, known)
  return known
}

const wordAt = (text: string, start: number, end: number): WrittenWord => ({
  text,
  start,
  end,
  continues: false,
  tail: false,
})

/** Whether a folded word is one character of a script without spaces. */
export const isSingleCharacter = (word: string): boolean =>
  IS_UNSPACED().test(word) && word.match(UNSPACED_RUN())!.length === 1

function classesOf(symbols: readonly string[], separators: readonly string[]): AsciiClasses {
  const classes = new Uint8Array(128)
  for (let code = 0; code < 128; code++) {
    const character = String.fromCharCode(code)
    if (separators.includes(character)) continue
    if (symbols.includes(character) || /[A-Za-z0-9]/.test(character)) classes[code] = PART
    else if (ASCII_SIGNS.includes(character)) classes[code] = INSIDE
  }
  return classes
}
