/** A collection in slices of documents' numbers, each read by statements of its own. Newest documents come first. */
import type { Range } from '../range'
import type { Pace } from './pace'

/** Numbers that the first slice spans. A collection of no more is searched by one statement. */
export const FIRST_WIDTH = 16_384
/** where a row costs more: groups and facets */
export const FIRST_WIDTH_GROUPED = 2_048

const LEAST_WIDTH = 4
const LAST_WIDTH = 1_024
/** A slice that takes less than this part of its time is followed by one that is wider. */
const QUICK = 0.5
const VERY_QUICK = 0.15

/**
 * Ranges that together cover all documents. Each is as wide as the ones before let expect that it takes a slice's
 * time. Ends early when the search is cut off.
 */
export async function* ranges(sql: SqlStorage, pace: Pace, first: number): AsyncGenerator<Range> {
  const [ends] = pace.query<{ low: number | null; high: number | null }>(sql, {
    sql: 'SELECT (SELECT min(seq) FROM documents) AS low, (SELECT max(seq) FROM documents) AS high',
    bindings: [],
  })
  const lowest = ends?.low ?? 1
  // What follows a cut looks no further than at the newest documents.
  let width = Math.ceil(Math.min(pace.cutoff ? LAST_WIDTH : first, pace.slice.width) / pace.weight)
  for (let high = ends?.high ?? 0; high >= lowest; ) {
    const low = Math.max(lowest, high - width + 1)
    const before = pace.used
    yield { low, high }
    const cost = pace.used - before
    high = low - 1
    if (high >= lowest && !(await pace.rest())) return
    width = Math.min(pace.slice.width, Math.max(LEAST_WIDTH, Math.floor(width * widening(cost))))
  }
}

/** By how much the next slice is to be wider. @param cost of the last one, in slices */
function widening(cost: number): number {
  if (cost < VERY_QUICK) return 4
  if (cost < QUICK) return 1.5
  return cost <= 1 ? 1 : Math.max(0.05, 0.8 / cost)
}
