/**
 * Defines words, for the indexes, queries, filters and highlights alike.
 *
 * SQLite's tokenizer builds the index of stems (`porter unicode61 remove_diacritics 2`). This file prepares text for it,
 * and tokenizes in JavaScript the same way for highlights and filters. The index of words takes the words that this file
 * finds: its tokenizer only splits at blanks.
 */

import { stemmer } from 'stemmer'
import { regExp } from '../../lib/once'

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
const UNSPACED = regExp(UNSPACED_CLASS, 'u')
const UNSPACED_ALL = regExp(UNSPACED_CLASS, 'gu')
const UNSPACED_OR_NOT = regExp(`${UNSPACED_CLASS}|(?:(?!${UNSPACED_CLASS}).)+`, 'gu')
const WORD = regExp(String.raw`[\p{L}\p{N}\p{M}]+`, 'gu')
const MARKED_LATIN = regExp(String.raw`([a-z])\p{M}+`, 'giu')

// unicode61 treats private-use characters as letters, so an indexed symbol is mapped to one.
const SYMBOL_BASE = 0xe000
const symbolLetter = (symbol: string): string =>
  String.fromCharCode(SYMBOL_BASE + (symbol.charCodeAt(0) & 0xff))

const escapeClass = (symbols: string[]): string =>
  symbols.map((symbol) => symbol.replace(/[\\\]^-]/g, '\\$&')).join('')

/** Prepares text for text_index, for its columns and for queries. */
export function prepare(text: string, rules: TokenRules): string {
  let prepared = text
  if (rules.token_separators.length > 0) {
    prepared = prepared.replace(new RegExp(`[${escapeClass(rules.token_separators)}]`, 'g'), ' ')
  }
  if (rules.symbols_to_index.length > 0) {
    prepared = prepared.replace(new RegExp(`[${escapeClass(rules.symbols_to_index)}]`, 'g'), symbolLetter)
  }
  return UNSPACED().test(prepared) ? prepared.replace(UNSPACED_ALL(), ' $& ') : prepared
}

/**
 * Lower-cases, and strips diacritics from Latin letters. In other scripts unicode61 keeps the marks, and so does
 * this: there they make different letters (й is not и, が is not か).
 */
export const fold = (word: string): string =>
  word.normalize('NFD').replace(MARKED_LATIN(), '$1').normalize('NFC').toLowerCase()

/**
 * The words of a query to an index of plain `unicode61`, which treats a run of a script without spaces as one word.
 * @returns the words that such an index can find, and those that contain such a run
 */
export function splitWords(text: string): { words: string[]; parts: string[] } {
  const all = new Set(text.match(WORD()) ?? [])
  const { words = [], parts = [] } = Object.groupBy(all, (word) =>
    UNSPACED().test(word) ? 'parts' : 'words',
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
    if (!UNSPACED().test(match[0])) {
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
