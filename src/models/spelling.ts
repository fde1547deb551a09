/** Detects misspellings, and corrects them. */
import { wordDistance } from '../lib/nearest'
import { regExp } from '../lib/once'
import { isStopword, type Word, wordsOf } from './words'

/**
 * Whether two words are one edit apart: a letter added, left out or replaced, or two neighbours swapped. Their
 * first letters must agree, because people seldom mistype the first.
 */
export const isSlip = (a: string, b: string): boolean => a[0] === b[0] && wordDistance(a, b, 1).whole === 1

/** Whether two words differ only by two swapped neighbouring letters: "kye" for "key". */
export function isSwap(a: string, b: string): boolean {
  if (a.length !== b.length || a === b) return false
  let at = 0
  while (a[at] === b[at]) at += 1
  return a[at] === b[at + 1] && a[at + 1] === b[at] && a.slice(at + 2) === b.slice(at + 2)
}

/** A slip in a shorter word makes many other words of it, so there only swapped letters are corrected. */
const SHORTEST = 5
/** In small letters, or with a capital first: the other ones are names in code, or abbreviations. */
const WRITTEN = regExp(String.raw`^\p{Script=Latin}[\p{Ll}\p{M}]{2,}$`, 'u')
/** Unknown words that are looked up. A text that is no question has many, and each takes time in the index. */
const MOST_LOOKED_UP = 8
const CAPITAL = regExp(String.raw`^\p{Lu}`, 'u')

/** The words that may have been meant. */
export interface Dictionary {
  /** words of the language, folded, common ones first */
  language: ReadonlyMap<string, unknown>
  /** whether the documents have a word, or another form of it */
  has(word: Word): boolean
  /** words of the documents that are like a folded one, the most frequent first */
  like(folded: string): Promise<Iterable<string>> | Iterable<string>
}

/**
 * A question with its misspelled words corrected: those that no document has and that are no words of the language, but
 * that are one slip away from a word of the documents, or else of the language. A name is corrected to a word of the
 * documents alone.
 */
export async function respelled(question: string, dictionary: Dictionary): Promise<string> {
  let text = ''
  let read = 0
  let lookedUp = 0
  for (const [number, word] of wordsOf(question).entries()) {
    const at = question.indexOf(word.raw, read)
    text += question.slice(read, at)
    read = at + word.raw.length
    const isOdd = lookedUp < MOST_LOOKED_UP && isUnknown(word, dictionary)
    if (isOdd) lookedUp += 1
    text += (isOdd && (await meantBy(word, number > 0, dictionary))) || word.raw
  }
  return text + question.slice(read)
}

const isUnknown = (word: Word, { language, has }: Dictionary): boolean =>
  WRITTEN().test(word.raw) && !language.has(word.folded) && !isStopword(word.folded) && !has(word)

/** @param isInside whether other words come before it: then a capital is that of a name */
async function meantBy(
  { raw, folded }: Word,
  isInside: boolean,
  { language, like }: Dictionary,
): Promise<string | undefined> {
  const isMeant = (other: string) =>
    folded.length < SHORTEST ? isSwap(folded, other) : isSlip(folded, other)
  const isName = isInside && CAPITAL().test(raw)
  return find(await like(folded), isMeant) ?? (isName ? undefined : find(language.keys(), isMeant))
}

function find<T>(values: Iterable<T>, test: (value: T) => boolean): T | undefined {
  for (const value of values) if (test(value)) return value
  return undefined
}
