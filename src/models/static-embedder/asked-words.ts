/** The words of a question as a reader sees them. */
import { regExp } from '../../lib/once'
import { wordsOf } from './word-piece'

const LETTER = regExp(String.raw`[\p{L}\p{N}]`, 'u')

interface Asked {
  word: string
  /** how much it says in the collection */
  says: number
}

/**
 * The index of a collection and a reader may divide a text in different ways: `wi-fi` can be one word to the index and two to a
 * reader, and a word in katakana is one to a reader and one a character to the index. A word that the reader sees otherwise is
 * taken apart, put together, or written as the reader writes it, so that it is found in what is read.
 * @param text of the question
 * @param words of the question as the index has them, in order
 * @returns each word once. The parts of a word share what it says; a whole says what its parts do
 */
export function wordsToRead(text: string, words: readonly Asked[]): Asked[] {
  const seen = wordsOf(text).filter((word) => LETTER().test(word))
  const known = new Set(seen)
  // A reader takes marks off all letters, also off kana, and Korean syllables apart.
  const said = new Map(words.map(({ word, says }) => [wordsOf(word).join(''), says]))
  const order = [...said.keys()]
  const whole = new Map<string, string>()
  for (const word of known) {
    const parts = said.has(word) ? [] : partsOf(word, order)
    for (const part of parts) if (!known.has(part)) whole.set(part, word)
  }
  const read = new Map<string, number>()
  for (const [word, says] of said) {
    const joined = whole.get(word)
    const parts = joined !== undefined ? [joined] : known.has(word) ? [word] : partsOf(word, seen)
    for (const part of parts.length === 0 ? [word] : parts) {
      read.set(part, (read.get(part) ?? 0) + says / Math.max(1, parts.length))
    }
  }
  return Array.from(read, ([word, says]) => ({ word, says }))
}

/** Words that make a word together, in order; none if they do not. Each may be there more than once. */
function partsOf(word: string, words: readonly string[]): readonly string[] {
  const parts: string[] = []
  for (let at = 0; at < word.length; at += parts.at(-1)!.length) {
    const next = words.filter((part) => part !== '' && word.startsWith(part, at))
    if (next.length === 0) return []
    parts.push(next.reduce((longest, part) => (part.length > longest.length ? part : longest)))
  }
  return parts
}
