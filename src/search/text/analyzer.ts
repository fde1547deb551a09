/**
 * How texts become words of an index. A collection has two full-text indexes with the same columns:
 *
 *     word_index   words as people write them, for plain searches
 *     text_index   Porter's stems, for questions: they are seldom phrased in the words of their answer
 *
 * An analyzer ensures that an index, its queries and the highlights use the same words.
 */
import { once } from '../../lib/once'
import type { Field } from '../types'
import { completions } from './completions'
import { stemmerOf } from './stemmers'
import { prepare, stem, type Token, type TokenRules, tokenize } from './words'
import { type AsciiClasses, isSingleCharacter, PART, writtenWords } from './written'

/** Words of a query that must be adjacent and in order. */
export interface Phrase {
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
  /** whether every symbol (neither letter nor digit) ends a word */
  splitsAtSymbols: boolean
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
    splitsAtSymbols: false,
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
    splitsAtSymbols: rules.symbols_to_index.length === 0,
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
