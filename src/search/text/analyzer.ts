/**
 * Defines words, for the indexes, queries, filters and highlights alike.
 *
 * SQLite's tokenizer builds the index of stems (`porter unicode61 remove_diacritics 2`). This file prepares text for it,
 * and tokenizes in JavaScript the same way for highlights and filters. The index of words takes the words that this file
 * finds: its tokenizer only splits at blanks.
 */
import { stemmer } from 'stemmer'
import { once, regExp } from '../../lib/once'
import { SNOWBALL, type Stemmer } from '../../lib/snowball'
import { KeptSets } from '../kept-sets'
import type { Field } from '../types'

/** How a collection's tokenizer differs from the default one. */
export interface TokenRules {
  token_separators: string[]
  symbols_to_index: string[]
  /** characters that a word of word_index is cut to; default: 100 */
  truncate_len?: number
  /** locale or dictionary whose stems word_index has instead of words; default: words */
  stem?: string
}

/** The rules of a collection that names none. */
export const PLAIN: TokenRules = { token_separators: [], symbols_to_index: [] }

export interface Token {
  /** lower case, no diacritics */
  text: string
  /** UTF-16 offsets into the original text; `end` is exclusive */
  start: number
  end: number
}

export const TOKENIZER = 'porter unicode61 remove_diacritics 2'

// Every character except blanks and control characters is part of a word.
export const WORD_TOKENIZER = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Cn Co Cf'"

// Scripts written without spaces. Each character is indexed as a word, and a run of them in a query becomes a phrase.
const UNSPACED_CLASS = String.raw`[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]`
const UNSPACED_SCRIPTS = regExp(UNSPACED_CLASS, 'u')
const UNSPACED_ALL = regExp(UNSPACED_CLASS, 'gu')
const UNSPACED_OR_NOT = regExp(`${UNSPACED_CLASS}|(?:(?!${UNSPACED_CLASS}).)+`, 'gu')
const WORD = regExp(String.raw`[\p{L}\p{N}\p{M}]+`, 'gu')
const MARKED_LATIN = regExp(String.raw`([a-z])\p{M}+`, 'giu')

// unicode61 treats private-use characters as letters, so an indexed symbol is mapped to one.
const SYMBOL_BASE = 0xe000
const symbolLetter = (symbol: string): string =>
  String.fromCharCode(SYMBOL_BASE + (symbol.charCodeAt(0) & 0xff))

const escapeClass = (characters: readonly string[]): string =>
  characters.map((character) => character.replace(/[\\\]^-]/g, '\\$&')).join('')

/** Prepares text for text_index, for its columns and for queries. */
function prepare(text: string, rules: TokenRules): string {
  let prepared = text
  if (rules.token_separators.length > 0) {
    prepared = prepared.replace(new RegExp(`[${escapeClass(rules.token_separators)}]`, 'g'), ' ')
  }
  if (rules.symbols_to_index.length > 0) {
    prepared = prepared.replace(new RegExp(`[${escapeClass(rules.symbols_to_index)}]`, 'g'), symbolLetter)
  }
  return UNSPACED_SCRIPTS().test(prepared) ? prepared.replace(UNSPACED_ALL(), ' $& ') : prepared
}

/**
 * Lower-cases, and strips diacritics from Latin letters. In other scripts unicode61 keeps the marks, and so does
 * this: there they make different letters (й is not и, が is not か).
 */
const fold = (word: string): string =>
  word.normalize('NFD').replace(MARKED_LATIN(), '$1').normalize('NFC').toLowerCase()

/**
 * The words of a query to an index of plain `unicode61`, which treats a run of a script without spaces as one word.
 * @returns the words that such an index can find, and those that contain such a run
 */
export function splitWords(text: string): { words: string[]; parts: string[] } {
  const all = new Set(text.match(WORD()) ?? [])
  const { words = [], parts = [] } = Object.groupBy(all, (word) =>
    UNSPACED_SCRIPTS().test(word) ? 'parts' : 'words',
  )
  return { words, parts }
}

/** The words of a text and where they are in it. */
export function tokenize(text: string, rules: TokenRules): Token[] {
  const symbols = rules.symbols_to_index.filter((symbol) => !rules.token_separators.includes(symbol))
  const word = symbols.length > 0 ? new RegExp(`[\\p{L}\\p{N}\\p{M}${escapeClass(symbols)}]+`, 'gu') : WORD()
  const tokens: Token[] = []
  for (const match of text.matchAll(word)) {
    const start = match.index
    if (!UNSPACED_SCRIPTS().test(match[0])) {
      tokens.push({ text: fold(match[0]), start, end: start + match[0].length })
      continue
    }
    for (const part of match[0].matchAll(UNSPACED_OR_NOT())) {
      const from = start + part.index
      tokens.push({ text: fold(part[0]), start: from, end: from + part[0].length })
    }
  }
  return tokens
}

/** The stem that the index holds for a word: Porter's, for words that FTS5 would stem. */
export const stem = (word: string): string =>
  word.length >= 3 && /^[a-z0-9]+$/.test(word) ? stemmer(word) : word

// =============================================================================
// Folds a word, so that its spellings compare as equal: case, accents, width, vowel points and ligatures do not
// count. Marks that make a different word stay: those of Hindi and Thai, й and и, が and か.

const ASCII = /^[\0-\x7f]*$/
// Written as escapes: æ, œ, ø, ı, ß, đ, ħ, ł, ŧ, ð, þ, ŋ.
const FOLDED_MARKS = regExp(
  String.raw`([a-z\u00e6\u0153\u00f8\u0131\u00df\u0111\u0127\u0142\u0167\u00f0\u00fe\u014b\p{Script=Greek}])\p{M}+`,
  'gu',
)
// Vowel points and reading signs of Hebrew and Arabic, and Arabic's lengthening stroke.
const POINTS = regExp(
  '[\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c4\\u05c5\\u05c7\\u0610-\\u061a\\u0640\\u064b-\\u0652\\u0670\\u06d6-\\u06ed]',
  'gu',
)
// Marks on an alef: hamza above and below, madda.
const ALEF = regExp('\\u0627[\\u0653-\\u0655]', 'gu')
// Russian usually omits the dots of ё, and marks stress only in dictionaries.
const CYRILLIC = regExp(
  '\\u0435\\u0308|([\\u0430\\u0435\\u0438\\u043e\\u0443\\u044b\\u044d-\\u044f])[\\u0300\\u0301]',
  'gu',
)
const LIGATURES: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ı: 'i',
  đ: 'd',
  ð: 'd',
  ħ: 'h',
  ł: 'l',
  ŧ: 't',
  þ: 'th',
  ŋ: 'n',
  ς: 'σ',
}
const LIGATURE = regExp(`[${Object.keys(LIGATURES).join('')}]`, 'gu')

/** @param stem takes the word in small letters, with its accents */
export function foldWord(written: string, stem?: (word: string) => string): string {
  const word = stem === undefined ? written : stem(written.normalize('NFC').toLowerCase())
  if (ASCII.test(word)) return word.toLowerCase()
  const letters = word
    .normalize('NFKD')
    .toLowerCase()
    .replace(FOLDED_MARKS(), '$1')
    .replace(LIGATURE(), (letter) => LIGATURES[letter]!)
  if (ASCII.test(letters)) return letters
  return letters
    .replace(POINTS(), '')
    .replace(ALEF(), '\u0627')
    .replace(CYRILLIC(), (_, stressed?: string) => stressed ?? '\u0435')
    .normalize('NFC')
}

// =============================================================================
// Words as people write them, for word_index. As in Typesense, symbols inside a word join its parts: `t-shirt` is the
// word `tshirt`. Only blanks and a collection's `token_separators` end a word.
//
// Scripts without spaces become pairs of characters, and the last character of a run alone: 東京都 is 東京, 京都 and 都.
// The pairs of a query in their order find a run, and a single character finds the words that begin with it. Korean is
// among them, because its words carry endings. An emoji is a word of its own.

/** A word of a text. */
export interface WrittenWord extends Token {
  /** it continues a run of a script without spaces from the word before */
  continues: boolean
  /** the last character of such a run, which was also part of the pair before */
  tail: boolean
}

/** The class of each ASCII character: outside of words, part of a word, or a symbol inside a word. */
type AsciiClasses = Uint8Array
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
    const words: WrittenWord[] = []
    for (const { 0: found, index } of text.matchAll(this.#word)) {
      if (IS_PICTURE().test(found)) {
        words.push(wordAt(found.replace(COLOUR(), ''), index, index + found.length))
      } else if (HAS_UNSPACED().test(found)) this.#addRuns(words, found, index)
      else this.#add(words, found, index)
    }
    return words
  }

  /**
   * The words of a text as filters, orders and facets compare them: neither stemmed nor cut, and each character of a
   * script without spaces for itself.
   */
  compared(text: string): WrittenWord[] {
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
const isSingleCharacter = (word: string): boolean =>
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

// =============================================================================
// Stemmers of fields with `stem: true`: Porter's for English, Snowball's for other languages.

const STEMMERS = new Map<string, Stemmer>([
  ['', stem],
  ['en', stem],
  ['de_en', stem],
  ...Object.entries(SNOWBALL),
])

/** The locales that have a stemmer. */
export const stemmedLocales = (): string[] => [...STEMMERS.keys()].filter((locale) => /^..$/.test(locale))

/**
 * Words and their roots, by the name under which a collection stores them. They stay in memory as long as the isolate
 * lives.
 */
const DICTIONARIES = new Map<string, { words: ReadonlyMap<string, string>; stem: Stemmer }>()

/** Registers a dictionary as a stemmer, under a name that is not a locale. Roots of several words are left out. */
export function holdDictionary(name: string, words: ReadonlyMap<string, string>): void {
  const roots = new Map([...words].map(([word, root]) => [word.normalize('NFC').toLowerCase(), root.trim()]))
  const stem: Stemmer = (word) => {
    const root = roots.get(word)
    return root === undefined || root === '' || /\s/.test(root) ? word : root
  }
  DICTIONARIES.set(name, { words, stem })
}

/** The words of a dictionary that is in memory. */
export const dictionaryOf = (name: string): ReadonlyMap<string, string> | undefined =>
  DICTIONARIES.get(name)?.words

/** Undefined for a language without a stemmer. @param name a locale, or the name of a dictionary in memory */
export const stemmerOf = (name: string): Stemmer | undefined =>
  STEMMERS.get(name) ?? DICTIONARIES.get(name)?.stem

// =============================================================================
// Stemming dictionaries, as fields and searches read them from D1.

export const STEMMING_DICTIONARY = 'stemming_dictionary'

/** From a word to its root. */
export const stemmingDictionaries = new KeptSets<ReadonlyMap<string, string>>(
  'a stemming dictionary',
  STEMMING_DICTIONARY,
  (entries) => entries,
)

// =============================================================================
// Completions of an unfinished word in an index of stems.

// Endings that Porter's stemmer removes, combined ones included.
const endings = once(() =>
  `s es ed ing ies ied ying ly ment ments ness nesses ful fully fulness less al ally als ial ially ical ically
icals ic ics able ably ible ibly ability ibility ance ances ence ences ancy ency ant ants ent ents ation ations
ational ationally ator ators ition itions ion ions ional ionally ize izes ized izing izer izers ization
izations ise ised ising isation ism isms ist ists ity ities iti ive ives ively iveness ous ously ousness er ers
eness ate ates ated ating y e`.split(/\s+/),
)

/**
 * Words that an unfinished word may become but that the prefix query misses, because the stemmer cuts them shorter
 * than what was typed.
 *
 * The index holds stems. So the prefix query for `documentati` misses `document`, the stem of `documentation`. Each
 * completion begins with what was typed and has a stem that does not. Whole words are returned because FTS5 stems the
 * words of a query, and the stem of a stem can differ (university, univers, univer).
 */
export function completions(typed: string): string[] {
  if (!/^[a-z]{4,}$/.test(typed)) return []
  const typedStem = stemmer(typed)
  const byStem = new Map<string, string>()
  for (const ending of endings()) {
    // A doubled consonant only occurs before -ing and -ed: stopp, stopped, stop.
    const doubled = /([b-df-hj-np-tv-z])\1$/.test(typed) && (ending === 'ing' || ending === 'ed')
    for (let shared = doubled ? 0 : 1; shared <= Math.min(ending.length, typed.length - 3); shared++) {
      const begun = ending.slice(0, shared)
      if (!typed.endsWith(begun)) continue
      const root = typed.slice(0, typed.length - shared)
      const word = root + ending
      const stem = stemmer(word)
      // Stems have at least three letters: `string` is not a form of `str`, nor `thing` of `th`.
      if (stem.length < 3 || stem.startsWith(typedStem) || !/[aeiouy]/.test(stem)) continue
      const known = byStem.get(stem)
      if (known === undefined || word.length < known.length) byStem.set(stem, word)
    }
  }
  return [...byStem.values()]
}

// =============================================================================
// How texts become words of an index. A collection has two full-text indexes with the same columns:
//
//     word_index   words as people write them, for plain searches
//     text_index   Porter's stems, for questions: they are seldom phrased in the words of their answer
//
// An analyzer ensures that an index, its queries and the highlights use the same words.

/** Words of a query that must be adjacent and in order. */
interface Phrase {
  /** folded */
  words: readonly string[]
  /** in the form of an FTS5 query, without quotes; empty if there are no words */
  text: string
  /** the last word always matches as a prefix */
  begins: boolean
}

export interface Analyzer {
  /** the folded words of a text, and where they are */
  tokenize(text: string): Token[]
  /** The classes of ASCII characters. Undefined: texts must be tokenized. */
  classes: AsciiClasses | undefined
  /** the most letters of a word; longer words are cut */
  mostLetters: number
  /** Text in the form in which it is indexed. */
  prepare(text: string): string
  /** A folded word in the form in which it is indexed. */
  indexed(word: string): string
  /** The pieces of an unquoted part of a query: each is a phrase of its own. */
  pieces(part: string): string[]
  phrase(text: string): Phrase
  /** The form in which words of the index are compared. */
  form(word: string): string
  /** Words to search for besides the prefix query, because their forms do not begin with the typed letters. */
  completions(typed: string): string[]
}

/** Phrases that an analyzer remembers, and the characters of the longest. A search asks for each of its words many times. */
const [MOST_PHRASES, LONGEST_PHRASE] = [256, 100]

/** The analyzer of word_index. */
export function wordAnalyzer(rules: TokenRules): Analyzer {
  const written = writtenWords(rules)
  const phrases = new Map<string, Phrase>()
  const isEnglish = rules.stem !== undefined && stemmerOf(rules.stem) === stem
  return {
    tokenize: (text) => written.words(text),
    classes: written.classes,
    mostLetters: written.mostLetters,
    prepare: (text) => written.prepare(text),
    indexed: (word) => word,
    pieces: (part) => {
      const words = written.words(part)
      const starts = words.filter(({ continues }) => !continues).map(({ start }) => start)
      return starts.map((start, index) => part.slice(start, starts[index + 1]))
    },
    phrase: (text) => {
      const known = phrases.get(text)
      if (known !== undefined) return known
      const words = written.words(text)
      // In the document, the run of characters may continue.
      if (words.at(-1)?.tail) words.pop()
      const begins = words.length > 0 && isSingleCharacter(words.at(-1)!.text)
      const folded = words.map((word) => word.text)
      const phrase = { words: folded, text: folded.join(' ').replaceAll('"', '""'), begins }
      if (phrases.size >= MOST_PHRASES) phrases.clear()
      if (text.length <= LONGEST_PHRASE) phrases.set(text, phrase)
      return phrase
    },
    form: (word) => word,
    // Completions exist for English only. In other languages, a prefix matches words that begin with its stem.
    completions: (typed) =>
      isEnglish ? completions(typed).flatMap((word) => written.words(word).map(({ text }) => text)) : [],
  }
}

/** The analyzer of text_index. SQLite splits and stems what `prepare` returns. */
export function stemAnalyzer(rules: TokenRules): Analyzer {
  return {
    tokenize: (text) => tokenize(text, rules),
    classes: rules.symbols_to_index.length === 0 ? letters() : undefined,
    mostLetters: Number.POSITIVE_INFINITY,
    prepare: (text) => prepare(text, rules),
    indexed: (word) => prepare(word, rules).trim(),
    pieces: (part) => [part],
    phrase: (text) => ({
      words: tokenize(text, rules).map((token) => token.text),
      text: prepare(text, rules).trim().replace(/\s+/g, ' ').replaceAll('"', ' '),
      begins: false,
    }),
    form: stem,
    completions,
  }
}

/** The characters that unicode61 counts as letters. */
const letters = once(() =>
  Uint8Array.from({ length: 128 }, (_, code) => (/[A-Za-z0-9]/.test(String.fromCharCode(code)) ? PART : 0)),
)

/** The full-text index that a search reads. */
export interface TextIndex {
  table: 'word_index' | 'text_index'
  /** the table of its words and how many documents hold each */
  vocabulary: string
  /** whether its words are stems */
  stems: boolean
}

export const WORDS: TextIndex = { table: 'word_index', vocabulary: 'word_vocabulary', stems: false }
export const STEMS: TextIndex = { table: 'text_index', vocabulary: 'vocabulary', stems: true }

/**
 * The index for a question about some fields. text_index has English stems. Fields with `stem` in another language have theirs in
 * word_index: on 35 questions of German and Spanish handbooks, 66% find their passage among three hits with these, and 51% with
 * those.
 */
export const stemsOf = (fields: readonly Pick<Field, 'stem' | 'locale'>[]): TextIndex =>
  fields.length > 0 && fields.every(({ stem, locale }) => stem && !/^(en|de_en)?$/.test(locale))
    ? WORDS
    : STEMS

/** The analyzer of an index. It is the same object for the same rules. */
export function analyzerOf({ stems }: TextIndex, rules: TokenRules): Analyzer {
  const known = ANALYZERS.get(rules) ?? {}
  ANALYZERS.set(rules, known)
  if (stems) {
    known.stems ??= stemAnalyzer(rules)
    return known.stems
  }
  known.words ??= wordAnalyzer(rules)
  return known.words
}

const ANALYZERS = new WeakMap<TokenRules, { words?: Analyzer; stems?: Analyzer }>()
