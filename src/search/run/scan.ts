/** Divides a collection into ranges of sequence numbers, newest first. Each is read by statements of its own. */
import type { Range } from '../range'
import type { Pace } from './pace'

/** Sequence numbers in the first range. A collection that spans no more is searched by one statement. */
export const FIRST_WIDTH = 16_384

const LEAST_WIDTH = 4
const LAST_WIDTH = 1_024
/** An estimate from two ranges holds for ranges up to this factor wider. */
const MOST_WIDENING = 4
/** The same where documents take long as well: a wrong estimate costs others more there. */
const HEAVY_WIDENING = 2
/** Two ranges allow an estimate only if one is less than this share of the other. */
const LESS = 0.9
/** If a slice uses less than this part of its time, the next one is wider. */
const QUICK = 0.5
const VERY_QUICK = 0.15

/** How to divide a collection. */
interface Division {
  /** the part of it to read; all of it by default */
  within?: Range
  /** One statement returns so little that no slices are needed, however many documents it looks at. */
  atOnce?: boolean
  /** how many times as long as usual a statement takes for a document; above 1, slices are needed in any case */
  weight?: number
}

/**
 * Ranges that together cover all documents. The width adapts, so that each range takes about the time of a slice.
 * Ends early when the search is cut off.
 */
export async function* ranges(
  sql: SqlStorage,
  pace: Pace,
  first: number,
  { within, atOnce = false, weight = 1 }: Division = {},
): AsyncGenerator<Range> {
  const { low: lowest, high: highest } = within ?? pace.ends(sql)
  // After a cutoff only the newest documents are read.
  let width = Math.ceil(Math.min(pace.cutoff ? LAST_WIDTH : first, pace.slice.width) / weight)
  if (atOnce && weight === 1 && !pace.cutoff) width = Math.max(width, highest - lowest + 1)
  let least = LEAST_WIDTH
  let last: Read | undefined
  for (let high = highest; high >= lowest; ) {
    const low = Math.max(lowest, high - width + 1)
    // Reading the clock takes a while, so skip it for the last range.
    const before = low > lowest ? pace.used : 0
    yield { low, high }
    high = low - 1
    if (high < lowest) return
    const cost = pace.used - before
    const read = { width, cost }
    if (last !== undefined && cost > 1)
      least = leastWidth(read, last, weight > 1 ? HEAVY_WIDENING : MOST_WIDENING) ?? least
    last = read
    const wanted = Math.min(pace.slice.width, Math.floor(width * widening(cost)))
    const next = Math.max(least, wanted)
    if (!(await pace.rest((cost * next) / width))) return
    width = next
  }
}

/** A range that was read, and what it cost in slices. */
interface Read {
  width: number
  cost: number
}

/**
 * The width from which on a range's documents cost as much as its statement does for any range. FTS5 first collects all words
 * with a beginning, and counts the documents of each word for BM25. Narrower ranges would pay mostly for that.
 * @returns undefined if the ranges are too much alike to tell
 */
function leastWidth(one: Read, other: Read, widening: number): number | undefined {
  const [narrow, wide] = one.width < other.width ? [one, other] : [other, one]
  if (narrow.width > wide.width * LESS) return undefined
  const aDocument = (wide.cost - narrow.cost) / (wide.width - narrow.width)
  const aStatement = narrow.cost - narrow.width * aDocument
  const most = wide.width * widening
  return aDocument * most <= aStatement ? most : Math.max(LEAST_WIDTH, Math.floor(aStatement / aDocument))
}

/** The factor by which the next slice is wider. @param cost of the last one, in slices */
function widening(cost: number): number {
  if (cost < VERY_QUICK) return 4
  if (cost < QUICK) return 1.5
  return cost <= 1 ? 1 : Math.max(0.05, 0.8 / cost)
}
