/**
 * Words, for everything that has to agree on what a word is: the index, queries, filters and highlights.
 *
 * SQLite's tokenizer does the indexing (`porter unicode61 remove_diacritics 2`); this file prepares text for
 * it and takes the same view of a text in JavaScript, where highlights and filters need it.
 */

import { stemmer } from 'stemmer'
import { regExp } from '../../once'

/** How a collection departs from the default tokenizer. */
export interface TokenRules {
  token_separators: string[]
  symbols_to_index: string[]
}

export interface Token {
  /** lower case, no diacritics */
  text: string
  /** UTF-16 offsets into the text that was tokenized; `end` is exclusive */
  start: number
  end: number
}

export const TOKENIZER = 'porter unicode61 remove_diacritics 2'

// Scripts written without spaces: each character is indexed as a word, and a query's run of them becomes a phrase.
const UNSPACED_CLASS = String.raw`[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]`
const UNSPACED = regExp(UNSPACED_CLASS, 'u')
const UNSPACED_ALL = regExp(UNSPACED_CLASS, 'gu')
const UNSPACED_OR_NOT = regExp(`${UNSPACED_CLASS}|(?:(?!${UNSPACED_CLASS}).)+`, 'gu')
const WORD = regExp(String.raw`[\p{L}\p{N}\p{M}]+`, 'gu')
const MARKED_LATIN = regExp(String.raw`([a-z])\p{M}+`, 'giu')

// unicode61 takes private-use characters for letters, so an indexed symbol is carried as one.
const SYMBOL_BASE = 0xe000
const symbolLetter = (symbol: string): string =>
  String.fromCharCode(SYMBOL_BASE + (symbol.charCodeAt(0) & 0xff))

const escapeClass = (symbols: string[]): string =>
  symbols.map((symbol) => symbol.replace(/[\\\]^-]/g, '\\$&')).join('')

/** Text as it is given to text_index, in columns and in queries alike. */
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
 * Lower case, and Latin letters without diacritics. Of other scripts unicode61 keeps the marks too: they make
 * other letters (й is not и, が is not か).
 */
export const fold = (word: string): string =>
  word.normalize('NFD').replace(MARKED_LATIN(), '$1').normalize('NFC').toLowerCase()

/** The words of a text with their places in it. */
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

/** A value as filters compare it: its words in order, so that case, accents and punctuation do not count. */
export const normalForm = (text: string, rules: TokenRules): string =>
  tokenize(text, rules)
    .map((token) => token.text)
    .join(' ')

/** The stem that the index holds for a word: Porter's, and only for words that FTS5 would stem. */
export const stem = (word: string): string =>
  word.length >= 3 && /^[a-z0-9]+$/.test(word) ? stemmer(word) : word
