/** Detects misspellings, and corrects them. */
import { regExp } from '../once'
import { isStopword, type Word, wordsOf } from './words'

/**
 * Whether two words are one edit apart: a letter added, left out or replaced, or two neighbours swapped. Their
 * first letters must agree, because people seldom mistype the first.
 */
export function isSlip(a: string, b: string): boolean {
  if (a[0] !== b[0] || Math.abs(a.length - b.length) > 1 || a === b) return false
  let start = 0
  while (start < a.length && a[start] === b[start]) start += 1
  let end = 0
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end += 1
  const left = a.slice(start, a.length - end)
  const right = b.slice(start, b.length - end)
  if (left.length <= 1 && right.length <= 1) return true
  return left.length === 2 && left[0] === right[1] && left[1] === right[0]
}

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
export async function respelled(question: string, { language, has, like }: Dictionary): Promise<string> {
  const words = wordsOf(question)
  let text = question
  for (const word of words) {
    const { raw, folded } = word
    if (!WRITTEN().test(raw) || language.has(folded) || isStopword(folded) || has(word)) continue
    const isMeant = (other: string) =>
      folded.length < SHORTEST ? isSwap(folded, other) : isSlip(folded, other)
    const isName = word !== words[0] && CAPITAL().test(raw)
    const meant = find(await like(folded), isMeant) ?? (isName ? undefined : find(language.keys(), isMeant))
    if (meant !== undefined) text = text.replace(raw, meant)
  }
  return text
}

function find<T>(values: Iterable<T>, test: (value: T) => boolean): T | undefined {
  for (const value of values) if (test(value)) return value
  return undefined
}
