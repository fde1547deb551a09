/** Divides a collection into ranges of sequence numbers, newest first. Each is read by statements of its own. */
import type { Range } from '../range'
import type { Pace } from './pace'

/** Sequence numbers in the first range. A collection that spans no more is searched by one statement. */
export const FIRST_WIDTH = 16_384
/** for groups and facets, where a row costs more */
export const FIRST_WIDTH_GROUPED = 2_048

const LEAST_WIDTH = 4
const LAST_WIDTH = 1_024
/** A range of less than this part of the one before ought to cost less than the other part of it. */
const [LESS, NEARLY] = [0.9, 0.7]
/** If a slice uses less than this part of its time, the next one is wider. */
const QUICK = 0.5
const VERY_QUICK = 0.15

/**
 * Ranges that together cover all documents. The width adapts, so that each range takes about the time of a slice.
 * Ends early when the search is cut off.
 */
export async function* ranges(sql: SqlStorage, pace: Pace, first: number): AsyncGenerator<Range> {
  const { low: lowest, high: highest } = pace.ends(sql)
  // After a cutoff only the newest documents are read.
  let width = Math.ceil(Math.min(pace.cutoff ? LAST_WIDTH : first, pace.slice.width) / pace.weight)
  let least = LEAST_WIDTH
  let last: { width: number; cost: number } | undefined
  for (let high = highest; high >= lowest; ) {
    const low = Math.max(lowest, high - width + 1)
    // The clock takes a while to read, so nobody looks at it for the last range.
    const before = low > lowest ? pace.used : 0
    yield { low, high }
    high = low - 1
    if (high < lowest) return
    const cost = pace.used - before
    if (!(await pace.rest())) return
    // Part of a statement's cost does not depend on its range: FTS5 collects all words with a beginning first. Where half of
    // the documents cost nearly as much, narrower ranges would only pay that part more often.
    if (last !== undefined && cost > 1 && width < last.width * LESS && cost > last.cost * NEARLY) {
      least = Math.max(least, last.width)
    }
    last = { width, cost }
    width = Math.min(pace.slice.width, Math.max(least, Math.floor(width * widening(cost))))
  }
}

/** The factor by which the next slice is wider. @param cost of the last one, in slices */
function widening(cost: number): number {
  if (cost < VERY_QUICK) return 4
  if (cost < QUICK) return 1.5
  return cost <= 1 ? 1 : Math.max(0.05, 0.8 / cost)
}
