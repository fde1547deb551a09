/**
 * The matches of one search, found once for its page, its facets and its groups: the documents of each block of
 * sequence numbers (schema/column-memory.ts), 2 bytes a match.
 */

import type { Filter } from '../filter/filter'
import { fragment, type SqlFragment } from '../fragment'
import { BLOCK, type Offsets } from '../schema/column'
import type { BlockOf } from '../schema/column-memory'
import type { Running } from './context'
import type { Pace } from './pace'

/** By the number of a block: the documents of it that match. The newest block comes first. */
export type MatchSet = ReadonlyMap<number, Offsets>

/** Relations of matches, each small enough for one statement. */
export type Parts = AsyncIterable<SqlFragment>

/** Reading a block's values from memory takes about as long as SQLite takes for this many rows. */
const ROWS_A_BLOCK = BLOCK / 64

/** Reads the values of fields. */
export const blocksOf = ({ sql, schema, columns, pace }: Running): BlockOf =>
  columns.blocks(sql, schema, pace.query)

/**
 * Calls `visit` for every block of the matches, the newest first. Other searches get a turn in between.
 * @returns false when the search was cut off on the way
 */
export async function eachBlock(
  set: MatchSet,
  pace: Pace,
  visit: (number: number, offsets: Offsets) => void,
): Promise<boolean> {
  for (const [number, offsets] of set) {
    visit(number, offsets)
    pace.countRows(ROWS_A_BLOCK)
    if (!(await pace.rest())) return false
  }
  return true
}

export const sizeOf = (set: MatchSet): number => {
  let size = 0
  for (const { length } of set.values()) size += length
  return size
}

/** Every document, unless the search is cut off. */
export async function allDocuments(context: Running): Promise<MatchSet> {
  const { sql, schema, columns } = context
  const { low, high } = context.pace.ends(sql)
  const set = new Map<number, Offsets>()
  for (let number = Math.floor(high / BLOCK); number >= Math.floor(low / BLOCK); number--) {
    const offsets = columns.present(sql, schema, context.count(), number, context.pace.query)
    if (offsets.length > 0) set.set(number, offsets)
    context.pace.countRows(ROWS_A_BLOCK)
    if (!(await context.pace.rest())) break
  }
  return set
}

/**
 * The documents of a set that pass a filter.
 * @param visit is told of each block that was tested: all of them, unless the search is cut off
 */
export async function filteredIn(
  { sql, columns, pace }: Running,
  filter: Filter,
  set: MatchSet,
  visit: (number: number, offsets: Offsets, passed: Offsets) => void = () => {},
): Promise<MatchSet> {
  const passing = new Map<number, Offsets>()
  const source = { sql, columns, read: pace.query }
  for (const [number, offsets] of set) {
    const steps = filter.among(source, number, offsets)
    let passed = steps.next()
    for (; !passed.done; passed = steps.next()) {
      pace.countRows(passed.value)
      if (!(await pace.rest())) return passing
    }
    visit(number, offsets, passed.value)
    if (passed.value.length > 0) passing.set(number, passed.value)
    pace.countRows(ROWS_A_BLOCK)
    if (!(await pace.rest())) break
  }
  return passing
}

/** @param seqs in any order, none twice */
export function setOf(seqs: readonly number[]): MatchSet {
  const sorted = Float64Array.from(seqs).sort()
  const set = new Map<number, Offsets>()
  for (let to = sorted.length; to > 0; ) {
    const number = Math.floor(sorted[to - 1]! / BLOCK)
    let from = to
    while (from > 0 && sorted[from - 1]! >= number * BLOCK) from--
    set.set(
      number,
      Uint16Array.from(sorted.subarray(from, to), (seq) => seq - number * BLOCK),
    )
    to = from
  }
  return set
}

/** The same matches and further ones. */
export function withSeqs(set: MatchSet, seqs: readonly number[]): MatchSet {
  const all = new Map(set)
  for (const [number, further] of setOf(seqs)) {
    all.set(number, Uint16Array.from(new Set([...(all.get(number) ?? []), ...further])).sort())
  }
  return new Map([...all].sort(([a], [b]) => b - a))
}

/** The same matches without others. */
export const minus = (set: MatchSet, others: MatchSet): MatchSet =>
  others.size === 0 ? set : chosen(set, others, false)

/** The matches that are in both sets. It takes less time if the first one is the smaller. */
export const common = (set: MatchSet, others: MatchSet): MatchSet => chosen(set, others, true)

/** The matches that are among others, or those that are not. */
const chosen = (set: MatchSet, others: MatchSet, areIn: boolean): MatchSet =>
  chosenIn(set, (number) => {
    const own = others.get(number) ?? new Uint16Array(0)
    let next = 0
    return (at) => {
      while (next < own.length && own[next]! < at) next++
      return (own[next] === at) === areIn
    }
  })

/** The matches that pass the test of their block, which is asked for them in ascending order. */
export function chosenIn(set: MatchSet, testOf: (number: number) => (at: number) => boolean): MatchSet {
  const left = new Map<number, Offsets>()
  for (const [number, offsets] of set) {
    const rest = offsets.filter(testOf(number))
    if (rest.length > 0) left.set(number, rest)
  }
  return left
}

/** The sequence numbers of a set, block by block. */
export const seqsOf = (set: MatchSet): number[] =>
  [...set].flatMap(([number, offsets]) => Array.from(offsets, (at) => number * BLOCK + at))

/** Matches as relations without scores, so many blocks together that they have about as many documents as one. */
export async function* partsOf(set: MatchSet, pace: Pace): AsyncGenerator<SqlFragment> {
  let seqs: number[] = []
  const part = () => fragment('SELECT value AS seq FROM json_each(?)', JSON.stringify(seqs))
  for (const [number, offsets] of set) {
    for (const at of offsets) seqs.push(number * BLOCK + at)
    if (seqs.length < BLOCK / 2) continue
    yield part()
    seqs = []
    if (!(await pace.rest())) return
  }
  if (seqs.length > 0) yield part()
}
