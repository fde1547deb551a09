/**
 * Words as filters, orders, facet queries and curations compare them. They are those of word_index (written.ts), so all of
 * these agree with searches on what a word is.
 */
import { wordsOf } from '../../models/words'
import type { TokenRules } from './words'
import { RUN, type WrittenWord, writtenWords } from './written'

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
