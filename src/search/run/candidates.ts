/**
 * The matches of a search. FTS5 finds those of words, in parts that are each small enough for one statement:
 *
 *     seq        the document's sequence number
 *     score      FTS5's BM25, lower is better
 */
import { ApiError } from '../../errors'
import { firstPlace } from '../../lib/first-items'
import { once } from '../../lib/once'
import { fragment, join, limited, oneOf, type Range, ROWID_IN_RANGE, type SqlFragment } from '../fragment'
import { MAX_RANKED } from '../limits'
import type { Buckets, SortKey } from '../request/sort'
import { BLOCK } from '../schema/column'
import { type Steps, stepwise } from '../steps'
import type { TextMatch } from '../text/query'
import type { Neighbour } from '../vectors/vector-index'
import type { Running } from './context'
import { type MatchSet, type Parts, setOf } from './match-set'

/** Of each block, the scores of its documents by offset. As of FTS5, lower is better. */
export type Scores = (number: number) => (at: number) => number

/** How well matches of words fit, for those who need to know. */
export interface Fit {
  /** the scores of all matches */
  all(): Promise<Scores>
  /** the scores of some documents, which are read. Deleted ones are missing */
  of(seqs: readonly number[]): ReadonlyMap<number, number>
  /** a window of some of the matches, those that fit best first, and then by the keys of an order */
  first(
    set: MatchSet,
    keys: readonly SortKey[],
    window: { offset: number; limit: number },
  ): Promise<OrderedMatch[]>
}

/** The matches of a search. */
export interface Candidates {
  /** whether words were found, and neighbours of a vector */
  text: boolean
  vector: boolean
  /** the number of matches, if already known */
  found: number | undefined
  /** all of them, unless the search is cut off (match-set.ts); found once */
  set(): Promise<MatchSet>
  /** the same with the scores and distances by which they were found */
  gathered?: (() => Promise<Gathered>) | undefined
  /** of matches of words that a plain search has found */
  fit?: Fit
}

/** What the hits of a search have to meet. */
export interface Conditions {
  /** nothing: all documents pass */
  readonly isAll: boolean
  /** the documents of a set that pass */
  among(set: MatchSet): Promise<MatchSet>
  /** all documents that pass; found once */
  set(): Promise<MatchSet>
}

/** More than any score of BM25. */
const FIRST = 1_000

export const where = (relation: SqlFragment, filter: SqlFragment): SqlFragment =>
  filter.sql === '1'
    ? relation
    : join([fragment('SELECT d.* FROM ('), relation, fragment(') d WHERE '), filter])

/** Words of an expression that take no longer than few. */
const FEW_WORDS = 40

/** How many times as long as for a few words FTS5 takes for a document: it looks at each word of an expression, in quotes. */
export const weightOfWords = (match: string): number => Math.max(1, match.split('"').length / 2 / FEW_WORDS)

/** A test for the documents of a set. */
export const isIn =
  (set: MatchSet) =>
  ({ low, high }: Range): SqlFragment => {
    const seqs: number[] = []
    for (const [number, offsets] of set) {
      if (number < Math.floor(low / BLOCK) || number * BLOCK > high) continue
      for (const at of offsets) seqs.push(number * BLOCK + at)
    }
    return oneOf(seqs)
  }

/** Text matches among the documents of a range. */
export const textMatchesIn = (
  { match, table, rank, first }: TextMatch,
  filter: SqlFragment,
  { low, high }: Range,
): SqlFragment => {
  const score =
    first === undefined
      ? 'rank'
      : `rank - iif(rowid IN (SELECT rowid FROM ${table} WHERE ${table} MATCH ? AND ${ROWID_IN_RANGE}), ${FIRST}, 0)`
  // With a bare rowid, SQLite may evaluate an `a OR b` of the filter row by row without using the full-text index,
  // which FTS5 refuses ("unable to use function MATCH").
  return where(
    fragment(
      `SELECT +rowid AS seq, ${score} AS score FROM ${table}
        WHERE ${table} MATCH ? AND rank MATCH ? AND ${ROWID_IN_RANGE}`,
      ...(first === undefined ? [] : [first, low, high]),
      match,
      rank,
      low,
      high,
    ),
    filter,
  )
}

/**
 * @param test that the documents of a range have to pass
 * @param atOnce whether one statement finds all matches, for callers who want only the best. A statement with BM25
 *   takes long whatever its range, because FTS5 reads all documents of each word
 */
export async function* textMatches(
  context: Pick<Running, 'sql' | 'pace'>,
  match: TextMatch,
  test: (range: Range) => SqlFragment = () => fragment('1'),
  atOnce = false,
): AsyncGenerator<SqlFragment> {
  const division = { atOnce, weight: weightOfWords(match.match) }
  for await (const range of ranges(context, FIRST_WIDTH, division)) {
    yield textMatchesIn(match, test(range), range)
  }
}

/**
 * Text matches without scores: `seq` is the only column. BM25 reads the length of each matching document and looks each
 * word up again, so it costs more than finding the matches.
 */
export const unscoredIn = (
  { match, table }: Pick<TextMatch, 'match' | 'table'>,
  { low, high }: Range,
): SqlFragment =>
  fragment(
    `SELECT +rowid AS seq FROM ${table} WHERE ${table} MATCH ? AND ${ROWID_IN_RANGE}`,
    match,
    low,
    high,
  )

/** A window of the matches, by keys of which the first is the score of their words, best first. */
export interface Top {
  offset: number
  limit: number
  sort: readonly SortKey[]
}

/**
 * Loads text matches into memory.
 * @param into already has some of them
 * @throws ApiError 422 when there are too many
 */
export async function gatherScores(
  { sql, pace }: Running,
  parts: Parts,
  into = new Gathered(),
): Promise<Gathered> {
  for await (const relation of parts) {
    for (const { seq, score } of pace.query<{ seq: number; score: number }>(sql, relation)) {
      into.add(seq, score)
    }
    if (into.size > MAX_RANKED) {
      throw new ApiError(
        422,
        `The search ranks at most ${MAX_RANKED} documents together. Find fewer with \`filter_by\`, or search by words or by vector alone and without buckets.`,
      )
    }
  }
  return into
}

/**
 * The matches with the best scores, and those that are as good as the last of them: without other keys, the newest of
 * those. All in one pass with the number of matches, which is most of the cost of a search.
 */
export async function bestByScore(
  { sql, pace }: Running,
  parts: Parts,
  wanted: number,
  isOnly: boolean,
): Promise<{ best: Gathered; found: number }> {
  let found = 0
  let best = new Gathered()
  for await (const relation of parts) {
    const query = join([
      fragment('WITH m AS MATERIALIZED ('),
      relation,
      fragment(
        `) SELECT m.seq, m.score, (SELECT count(*) FROM m) AS found FROM m
             WHERE m.score <= coalesce((SELECT score FROM m ORDER BY score LIMIT 1 OFFSET ?), 0)`,
        wanted - 1,
      ),
      ...(isOnly ? [fragment(' ORDER BY m.score, m.seq DESC'), limited(wanted)] : []),
    ])
    const rows = pace.query<{ seq: number; score: number; found: number }>(sql, query)
    found += rows[0]?.found ?? 0
    for (const { seq, score } of rows) best.add(seq, score)
    best = await pace.through(best.best(wanted))
  }
  return { best, found }
}

/** Documents that are in memory, as matches that were found neither by words nor by a vector. */
export const equalCandidates = (set: MatchSet): Candidates => ({
  text: false,
  vector: false,
  found: undefined,
  set: async () => set,
})

/** Matches that are in memory with what they were found by. */
export const candidatesOf = (gathered: Gathered, text: boolean, vector: boolean): Candidates => ({
  text,
  vector,
  found: gathered.size,
  set: once(async () => setOf(gathered.seqs)),
  gathered: async () => gathered,
})

// =============================================================================
// Divides a collection into ranges of sequence numbers, newest first. Each is read by statements of its own.

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
  { sql, pace }: Pick<Running, 'sql' | 'pace'>,
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

// =============================================================================
// Matches in memory, as columns of numbers, 32 bytes a match. Matches that must be ranked as a whole cannot stay in
// parts.

/** A match, and how it was found: NULL for how it was not. */
export interface OrderedMatch {
  seq: number
  score: number | null
  distance: number | null
  fused: number | null
}

/** Up to so many matches, all are measured. */
const FEW = 1_024

/** To sort a match takes so many rows' time. */
const ROWS_A_SORT = 1 / 3

/** Numbers in rising order. */
function* sortedOf(count: number, keyAt: (at: number) => number): Steps<Float64Array> {
  const values = new Float64Array(count)
  yield* stepwise(count, (at) => {
    values[at] = keyAt(at)
  })
  // Native sorting of numbers: a comparator in JavaScript would block other requests for too long.
  values.sort()
  yield count * ROWS_A_SORT
  return values
}

/** More than MAX_RANKED: a document and its place in the list are one number. */
const PLACES = 2 ** 20

/** Numbers of documents by block and offset; NaN for those that have none. */
export type BlockNumbers = ReadonlyMap<number, Float64Array>

/** @param values of the documents with these sequence numbers, in their order */
export function* numbersOf(seqs: readonly number[], values: readonly number[]): Steps<BlockNumbers> {
  const blocks = new Map<number, Float64Array>()
  yield* stepwise(seqs.length, (at) => {
    const number = Math.floor(seqs[at]! / BLOCK)
    let block = blocks.get(number)
    if (block === undefined) {
      block = new Float64Array(BLOCK).fill(Number.NaN)
      blocks.set(number, block)
    }
    block[seqs[at]! - number * BLOCK] = values[at]!
  })
  return blocks
}

/** The number of one document. */
export const numberIn = (numbers: BlockNumbers, seq: number): number | undefined =>
  numbers.get(Math.floor(seq / BLOCK))?.[seq % BLOCK]

export class Gathered {
  readonly seqs: number[] = []
  /** NaN stands for NULL, here and below */
  readonly scores: number[] = []
  readonly distances: number[] = []
  readonly fused: number[] = []

  get size(): number {
    return this.seqs.length
  }

  add(seq: number, score = Number.NaN, distance = Number.NaN, fused = Number.NaN): void {
    this.seqs.push(seq)
    this.scores.push(score)
    this.distances.push(distance)
    this.fused.push(fused)
  }

  /** The rows of some matches, by sequence number. */
  rowsOf(seqs: readonly number[]): Map<number, OrderedMatch> {
    const wanted = new Set(seqs)
    const rows = new Map<number, OrderedMatch>()
    const orNull = (value: number) => (Number.isNaN(value) ? null : value)
    for (let at = 0; at < this.size; at++) {
      const seq = this.seqs[at]!
      if (!wanted.has(seq)) continue
      const [score, distance] = [orNull(this.scores[at]!), orNull(this.distances[at]!)]
      rows.set(seq, { seq, score, distance, fused: orNull(this.fused[at]!) })
    }
    return rows
  }

  /** @param values of the matches, in their order */
  numbers(values: readonly number[]): Steps<BlockNumbers> {
    return numbersOf(this.seqs, values)
  }

  /** Matches with a score at least as good as the best `count`. */
  *best(count: number): Steps<Gathered> {
    if (this.size <= Math.max(FEW, count)) return this
    const sorted = yield* sortedOf(this.size, (at) => this.#ofScore(at))
    const least = sorted[sorted.length - count]!
    const best = new Gathered()
    yield* stepwise(this.size, (at) => {
      if (this.#ofScore(at) < least) return
      best.add(this.seqs[at]!, this.scores[at]!, this.distances[at]!, this.fused[at]!)
    })
    return best
  }

  /** How good the score of a match is: higher is better, and none is the worst. */
  #ofScore(at: number): number {
    return orWorst(-this.scores[at]!)
  }

  /** Sequence numbers and places of the matches, in rising order. Of equals, a search orders the newest first. */
  #places(): Steps<Float64Array> {
    return sortedOf(this.size, (at) => this.seqs[at]! * PLACES + at)
  }

  /**
   * Divides the matches into equal parts, the best in the first, like SQL's ntile(), or into parts of one size. Of equals,
   * the newest go into the better part.
   * @returns the number of each match's part
   */
  *bucketsOf(buckets: Buckets, isFused: boolean): Steps<number[]> {
    const count = buckets.by === 'count' ? buckets.number : Math.max(1, Math.ceil(this.size / buckets.number))
    const lower = buckets.of === 'vector_distance' ? this.distances : isFused ? undefined : this.scores
    const goodness = (at: number) => orWorst(lower === undefined ? this.fused[at]! : -lower[at]!)
    const sorted = (yield* sortedOf(this.size, goodness)).reverse()
    const places = yield* this.#places()
    const taken = new Uint32Array(this.size)
    const larger = buckets.by === 'count' ? this.size % count : 0
    const size = buckets.by === 'count' ? Math.floor(this.size / count) : buckets.number
    const numbers = new Array<number>(this.size)
    const inLarger = larger * (size + 1)
    yield* stepwise(this.size, (older) => {
      const at = places[this.size - 1 - older]! % PLACES
      const own = goodness(at)
      const first = firstPlace(sorted.length, (place) => sorted[place]! <= own)
      const place = first + taken[first]!++
      numbers[at] =
        place < inLarger
          ? Math.floor(place / (size + 1)) + 1
          : larger + Math.floor((place - inLarger) / Math.max(1, size)) + 1
    })
    return numbers
  }
}

const orWorst = (value: number): number => (Number.isNaN(value) ? Number.NEGATIVE_INFINITY : value)

/**
 * Rank fusion, as in Typesense:
 *
 *     fused = (1 - alpha) / text rank + alpha / vector rank
 *
 * Text ranks are dense: documents with equal scores share one. Vector ranks count from 1 by distance. A side that did
 * not find the document adds nothing.
 *
 * @param text keyword matches
 * @param neighbours nearest first
 */
export function* fuse(text: Gathered, neighbours: readonly Neighbour[], alpha: number): Steps<Gathered> {
  const byVector = new Map(neighbours.map(({ seq, distance }, index) => [seq, { distance, rank: index + 1 }]))
  const rankOf = yield* denseRanks(text.scores)
  const fused = new Gathered()
  yield* stepwise(text.size, (at) => {
    const [seq, score] = [text.seqs[at]!, text.scores[at]!]
    const near = byVector.get(seq)
    const share = (1 - alpha) / rankOf(score)
    fused.add(seq, score, near?.distance ?? Number.NaN, share + (near === undefined ? 0 : alpha / near.rank))
    byVector.delete(seq)
  })
  for (const [seq, { distance, rank }] of byVector) fused.add(seq, Number.NaN, distance, alpha / rank)
  return fused
}

/** The dense rank of a score among these, 1 for the lowest. */
function* denseRanks(scores: readonly number[]): Steps<(score: number) => number> {
  const sorted = yield* sortedOf(scores.length, (at) => scores[at]!)
  let count = 0
  for (const score of sorted) if (count === 0 || score !== sorted[count - 1]) sorted[count++] = score
  return (score) => firstPlace(count, (place) => sorted[place]! >= score) + 1
}

/** Nearest neighbours as matches. */
export function neighboursGathered(found: readonly Neighbour[]): Gathered {
  const gathered = new Gathered()
  for (const { seq, distance } of found) gathered.add(seq, Number.NaN, distance)
  return gathered
}
