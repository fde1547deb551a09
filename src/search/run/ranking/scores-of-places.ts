/** Scores documents from the places of words in memory (word-memory.ts), without reading their texts. */
import { isArray } from '../../schema/layout'
import { Unreadable } from '../../text/fts5-format'
import { reach } from '../../text/place-sets'
import { PLACE_BITS, type Places } from '../../text/word-pages'
import { columnsOf } from '../keyword'
import { wordsInMemory } from '../word-memory'
import type { Scored } from './documents'
import { hasLength } from './matches'
import type { Ranking } from './ranking'
import type { Wanted } from './reader'
import type { Occurrence, Reading } from './score'

/** Words that the index has as they are. */
const PLAIN = /^[a-z0-9]+$/
/** The length of a text that is not the query itself. */
const SOME_LENGTH = 1_000

const NOTHING: Reading[] = []

interface Sought extends Wanted {
  whole: Places
  /** with the words that begin with it */
  all: Places
}

/**
 * Scores documents in this order.
 * @returns undefined if their texts have to be read
 */
export function scoresOfPlaces(
  { context, request, scorer, sort, pace }: Ranking,
  seqs: readonly number[],
): Scored[] | undefined {
  const reader = scorer.only
  // Without other keys, the shapes of the texts decide.
  if (reader === undefined || reader.countsAll || sort.length < 2) return undefined
  const columns = columnsOf(context, request)
  const isKnown =
    columns.every(hasLength) &&
    !request.queryFields.some(({ field }) => isArray(field)) &&
    reader.wanted.every(({ text }) => PLAIN.test(text))
  const words = isKnown ? wordsInMemory(context, request.index.table, pace) : undefined
  if (words === undefined) return undefined
  let sought: Sought[]
  try {
    sought = reader.wanted.map((each) => {
      const all = each.longer === undefined ? undefined : words.word(each.text, true)
      const whole = words.word(each.text, false)
      return { ...each, whole, all: all ?? whole }
    })
  } catch (error) {
    if (error instanceof Unreadable) return undefined
    throw error
  }
  const numbers = columns.map(({ column }) => Number(column.slice(1)))
  const isBegun = (text: Reading | undefined) => text !== undefined && mayBeWhole(text, reader.sequence)
  const scored: Scored[] = []
  /** those with a text that may be the query itself. Only then does its length count */
  const begun: { place: number; readings: Reading[][] }[] = []
  for (const seq of seqs) {
    const found = placesIn(seq, sought)
    if (found.length === 0) return undefined
    const readings = numbers.map((number) => readingOf(found, number))
    if (readings.some(([text]) => isBegun(text))) begun.push({ place: scored.length, readings })
    scored.push({ seq, text: scorer.scoreReadings(readings), shape: 0, quality: 0 })
  }
  const all = Uint32Array.from(begun, ({ place }) => seqs[place]!)
  const lengths: ((seq: number) => number)[] = []
  for (const { place, readings } of begun) {
    const seq = seqs[place]!
    const texts = readings.map(([text], at) => {
      if (!isBegun(text)) return readings[at]!
      lengths[at] ??= words.lengths(all, numbers[at])
      return [{ ...text!, length: lengths[at](seq) }]
    })
    scored[place] = { seq, text: scorer.scoreReadings(texts), shape: 0, quality: 0 }
  }
  return scored
}

interface Found {
  place: number
  word: number
  cost: number
}

/** Where a document has the words, in order. At each place the word counts that costs least. */
function placesIn(seq: number, sought: readonly Sought[]): Found[] {
  const found: Found[] = []
  for (const { word, cost, longer, whole, all } of sought) {
    const at = reach(all.seqs, seq, 0)
    if (all.seqs[at] !== seq) continue
    let exact = 0
    let end = 0
    if (all !== whole) {
      const own = reach(whole.seqs, seq, 0)
      if (whole.seqs[own] === seq) [exact, end] = [whole.starts[own]!, whole.starts[own + 1]!]
    }
    for (let index = all.starts[at]!; index < all.starts[at + 1]!; index++) {
      const place = all.places[index]!
      while (exact < end && whole.places[exact]! < place) exact++
      const isWhole = all === whole || (exact < end && whole.places[exact] === place)
      found.push({ place, word, cost: isWhole ? cost : longer! })
    }
  }
  return found.length > 1 ? found.sort((a, b) => a.place - b.place || a.cost - b.cost) : found
}

/** The words in one column; none for a field without any. */
function readingOf(found: readonly Found[], column: number): Reading[] {
  const occurrences: Occurrence[] = []
  let first = -1
  let last = -1
  for (const { place, word, cost } of found) {
    if (place >>> PLACE_BITS !== column || place === last) continue
    if (first < 0) first = place
    last = place
    occurrences.push({ token: place - first, word, cost })
  }
  if (occurrences.length === 0) return NOTHING
  return [{ length: SOME_LENGTH, occurrences, begins: first === column << PLACE_BITS }]
}

/** Whether a text begins with exactly the query, and may have no other words. */
const mayBeWhole = ({ begins, occurrences }: Reading, sequence: readonly number[]): boolean =>
  begins === true &&
  occurrences.length === sequence.length &&
  occurrences.every(({ token, word, cost }, at) => token === at && word === sequence[at] && cost === 0)
