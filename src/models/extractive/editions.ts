/**
 * Editions of one page: documents whose titles differ in numbers alone, such as `Version 4 released` and `Version 5 released`, or `Prices
 * 2024` and `Prices`. What an earlier one says may no longer hold.
 */
import { regExp } from '../../once'
import type { Candidate } from './evidence'
import type { Question } from './question'

/** A sentence of a newer edition is about the same if it holds this share of the question's weight that the older one's holds. */
const AS_MUCH = 0.5

const NUMBER = /\d+/g
const LETTERS = regExp(String.raw`\p{L}+`, 'gu')

const YEAR = /\b(?:19|20)\d\d\b/
/** A page without a year is today's if its title has all words of the earlier one's, and they are no fewer than this. */
const FEWEST_WORDS = 2

const wordsIn = (title: string): string[] => title.toLowerCase().match(LETTERS()) ?? []
const numbersIn = (title: string): number[] => (title.match(NUMBER) ?? []).map(Number)

/** Whether a candidate is of a newer edition of the page that another one is of. */
export function isNewer(a: Candidate, b: Candidate): boolean {
  const [title = '', other = ''] = [a.section.context[0], b.section.context[0]]
  if (a.rank === b.rank) return false
  const [words, earlier] = [wordsIn(title), wordsIn(other)]
  const [numbers, before] = [numbersIn(title), numbersIn(other)]
  if (numbers.length === 0)
    return YEAR.test(other) && earlier.length >= FEWEST_WORDS && earlier.every((word) => words.includes(word))
  const at = numbers.findIndex((number, index) => number !== before[index])
  return (
    words.length > 0 &&
    before.length > 0 &&
    words.join() === earlier.join() &&
    (numbers[at] ?? -1) > (before[at] ?? -1)
  )
}

/** The best sentences of newer editions than the best one's page, newest first, unless the question names that edition. */
export function newerThan(best: Candidate, ranked: Candidate[], question: Question): Candidate[] {
  const newer: Candidate[] = []
  for (const other of ranked) {
    if (!isNewer(other, best) || other.inside < AS_MUCH * best.inside || tells(question, best, other))
      continue
    if (!newer.some(({ rank }) => rank === other.rank)) newer.push(other)
  }
  return newestFirst(newer)
}

/** Puts newer editions before older ones, and leaves the rest in its order. */
export function newestFirst(candidates: Candidate[]): Candidate[] {
  const ordered: Candidate[] = []
  for (const candidate of candidates) {
    const at = ordered.findIndex((other) => isNewer(candidate, other))
    ordered.splice(at < 0 ? ordered.length : at, 0, candidate)
  }
  return ordered
}

/** Whether the question names what one candidate stands under, and another does not. */
export const tells = ({ terms }: Question, { section }: Candidate, other: Candidate): boolean =>
  terms.some(({ stem }) => section.above.has(stem) && !other.section.above.has(stem))
