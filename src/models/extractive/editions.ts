/**
 * Editions of one page: documents whose titles differ in numbers alone, such as `Version 4 released` and `Version 5 released`, or `Prices
 * 2024` and `Prices`, or whose paths differ in a version alone. What an earlier one says may no longer hold.
 */
import { regExp } from '../../lib/once'
import type { Candidate } from './evidence'
import type { Question } from './question'

/** A sentence of a newer edition is about the same if it holds this share of the question's weight that the older one's holds. */
const AS_MUCH = 0.5

const NUMBER = /\d+/g
/** Before what stands for a version that is not out yet. */
const BEFORE = /-(?=[a-z])/i
const YEAR = /\b(?:19|20)\d\d\b/
const WORD = regExp(String.raw`\p{L}+`, 'gu')

/** Whether a candidate is of a newer edition of the page that another one is of. A page without a year is today's. */
export function isNewer({ rank, section }: Candidate, other: Candidate): boolean {
  const [title = ''] = section.context
  const [earlier = ''] = other.section.context
  if (rank === other.rank || wordsIn(title) !== wordsIn(earlier)) return false
  if (title === earlier && section.edition) {
    const { page, version } = section.edition
    const { page: same, version: before } = other.section.edition
    // What stands beside its versions is today's.
    return page === same && before !== undefined && (version === undefined || isLater(version, before))
  }
  return /\d/.test(title) ? isLater(title, earlier) : YEAR.test(earlier)
}

/** `latest` comes after all numbers, and `1.0` after `1.0-beta`. */
function isLater(version: string, other: string): boolean {
  const isNamed = (text: string) => /^(?:latest|stable|current)$/i.test(text)
  if (isNamed(version) !== isNamed(other)) return isNamed(version)
  const [number = '', before] = version.split(BEFORE)
  const [otherNumber = '', otherBefore] = other.split(BEFORE)
  const order = number.localeCompare(otherNumber, 'en', { numeric: true })
  if (order !== 0 || before === undefined || otherBefore === undefined)
    return order > 0 || (order === 0 && before === undefined && otherBefore !== undefined)
  return before.localeCompare(otherBefore, 'en', { numeric: true }) > 0
}

const wordsIn = (title: string): string =>
  (title.toLowerCase().replace(NUMBER, '').match(WORD()) ?? []).join(' ')

/** The best sentences of newer editions than the best one's page, newest first, unless the question names that edition. */
export function newerThan(best: Candidate, ranked: Candidate[], question: Question): Candidate[] {
  const newer = ranked.filter(
    (other) => isNewer(other, best) && other.inside >= AS_MUCH * best.inside && !tells(question, best, other),
  )
  return newestFirst(newer.filter(({ rank }, at) => newer.findIndex((other) => other.rank === rank) === at))
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
