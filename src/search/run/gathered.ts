/**
 * Matches in memory, as columns of numbers, 32 bytes a match. Matches that must be ranked as a whole cannot stay in
 * parts.
 */
import { ApiError } from '../../errors'
import type { SqlFragment } from '../fragment'
import { fragment, join } from '../fragment'
import { MAX_RANKED } from '../limits'
import type { Buckets } from '../request/order'
import { bucketColumn } from '../request/sort'
import type { Neighbour } from '../vectors/vector-index'
import type { Candidates, Part } from './candidates'
import type { Pace } from './pace'

/** Matches in a part. As JSON they fit into one bound value. */
const A_PART = 1_024
/** Numbers that differ by less than this part of theirs may be one to SQLite. */
const LAST_DIGITS = 1e-12

/** More than MAX_RANKED: a document and its place in the list are one number. */
const PLACES = 2 ** 20

export class Gathered {
  readonly seqs: number[] = []
  /** NaN stands for NULL, here and below */
  readonly scores: number[] = []
  readonly distances: number[] = []
  readonly fused: number[] = []
  /** by column: the bucket of each match */
  readonly buckets = new Map<string, number[]>()
  /** further columns by their names */
  readonly columns = new Map<string, number[]>()

  get size(): number {
    return this.seqs.length
  }

  add(seq: number, score: number, distance: number, fused: number): void {
    this.seqs.push(seq)
    this.scores.push(score)
    this.distances.push(distance)
    this.fused.push(fused)
  }

  /** The parts of a search's candidates. */
  readonly parts: Candidates['parts'] = (pace) => this.#parts(pace)

  async *#parts(pace: Pace): AsyncGenerator<Part> {
    for (let from = 0; from < Math.max(1, this.size); from += A_PART) {
      if (from > 0 && !(await pace.rest())) return
      yield this.#part(from, Math.min(this.size, from + A_PART))
    }
  }

  #part(from: number, to: number): Part {
    const added = [...this.buckets, ...this.columns]
    let low = Number.MAX_SAFE_INTEGER
    let high = 0
    const rows: (number | null)[][] = []
    for (let at = from; at < to; at++) {
      const seq = this.seqs[at]!
      low = Math.min(low, seq)
      high = Math.max(high, seq)
      // JSON writes NaN as null.
      rows.push([
        seq,
        this.scores[at]!,
        this.distances[at]!,
        this.fused[at]!,
        ...added.map(([, values]) => values[at]!),
      ])
    }
    const columns = ['seq', 'score', 'distance', 'fused', ...added.map(([name]) => name)]
    const select = columns.map((name, at) => `value ->> ${at} AS ${name}`).join(', ')
    const relation: SqlFragment = fragment(`SELECT ${select} FROM json_each(?)`, JSON.stringify(rows))
    return { relation, range: { low, high } }
  }

  /** Matches at least as good as the best `count`. Higher is better; missing values are the worst. */
  best(count: number, values: readonly number[]): Gathered {
    if (this.size <= Math.max(A_PART, count)) return this
    const sorted = Float64Array.from(values, orWorst).sort()
    const least = sorted[sorted.length - count]!
    const best = new Gathered()
    for (let at = 0; at < this.size; at++) {
      if (orWorst(values[at]!) < least) continue
      best.add(this.seqs[at]!, this.scores[at]!, this.distances[at]!, this.fused[at]!)
    }
    return best
  }

  /**
   * Matches that can be among the best `count`, in whatever order equal ones are. SQLite may not read a number from JSON to its
   * last digit, so those that are worse by so little stay.
   * @param isFused whether `fused` orders them, and not the score of their words
   */
  leading(count: number, isFused: boolean): Gathered {
    if (this.size <= count) return this
    const goodness = isFused ? this.fused : this.scores.map((score) => -score)
    const sorted = Float64Array.from(goodness, orWorst).sort()
    const least = sorted[sorted.length - count]!
    const enough = least - Math.abs(least) * LAST_DIGITS
    const leading = new Gathered()
    for (let at = 0; at < this.size; at++) {
      if (orWorst(goodness[at]!) < enough) continue
      leading.add(this.seqs[at]!, this.scores[at]!, this.distances[at]!, this.fused[at]!)
    }
    return leading
  }

  /** The places of the matches, those of the newest documents first: so come equals wherever a search orders them. */
  *#newestFirst(): Generator<number> {
    const places = Float64Array.from(this.seqs, (seq, at) => seq * PLACES + at).sort()
    for (let at = places.length - 1; at >= 0; at--) yield places[at]! % PLACES
  }

  /**
   * Divides the matches into equal parts, the best in the first, like SQL's ntile(), or into parts of one size. Of equals,
   * the newest go into the better part.
   */
  fill(buckets: Buckets, isFused: boolean): void {
    const count = buckets.by === 'count' ? buckets.number : Math.max(1, Math.ceil(this.size / buckets.number))
    const lower = buckets.of === 'vector_distance' ? this.distances : isFused ? undefined : this.scores
    const goodness = lower?.map((value) => -value) ?? this.fused
    // Native sorting of numbers: a JavaScript comparator would block other requests for too long.
    const sorted = Float64Array.from(goodness, orWorst).sort().reverse()
    const taken = new Uint32Array(this.size)
    const larger = buckets.by === 'count' ? this.size % count : 0
    const size = buckets.by === 'count' ? Math.floor(this.size / count) : buckets.number
    const numbers = new Array<number>(this.size)
    const inLarger = larger * (size + 1)
    for (const at of this.#newestFirst()) {
      const first = firstPlace(sorted, orWorst(goodness[at]!))
      const place = first + taken[first]!++
      numbers[at] =
        place < inLarger
          ? Math.floor(place / (size + 1)) + 1
          : larger + Math.floor((place - inLarger) / Math.max(1, size)) + 1
    }
    this.buckets.set(bucketColumn(buckets), numbers)
  }
}

const orWorst = (value: number): number => (Number.isNaN(value) ? Number.NEGATIVE_INFINITY : value)

/** The first position of a value in a descending array. */
function firstPlace(falling: Float64Array, value: number): number {
  let [low, high] = [0, falling.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (falling[middle]! > value) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Loads candidates into memory.
 * @param into already has some of them
 * @throws ApiError 422 when there are too many
 */
export async function gather(
  sql: SqlStorage,
  parts: Candidates['parts'],
  pace: Pace,
  into = new Gathered(),
): Promise<Gathered> {
  for await (const { relation } of parts(pace)) {
    for (const { seq, score, distance, fused } of pace.query<Record<string, number | null>>(sql, relation)) {
      into.add(seq!, score ?? Number.NaN, distance ?? Number.NaN, fused ?? Number.NaN)
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
 * Loads text matches into memory: `seq` and `score`, which takes half the time of all four columns.
 * @throws ApiError 422 when there are too many
 */
export const gatherScores = (sql: SqlStorage, parts: Candidates['parts'], pace: Pace): Promise<Gathered> =>
  gather(sql, withColumns(parts, 'd.seq, d.score'), pace)

/** The same matches with these columns alone. */
export const withColumns = (parts: Candidates['parts'], columns: string): Candidates['parts'] =>
  async function* (pace) {
    for await (const { relation, range } of parts(pace)) {
      yield { relation: join([fragment(`SELECT ${columns} FROM (`), relation, fragment(') d')], ''), range }
    }
  }

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
export function fuse(text: Gathered, neighbours: readonly Neighbour[], alpha: number): Gathered {
  const byVector = new Map(neighbours.map(({ seq, distance }, index) => [seq, { distance, rank: index + 1 }]))
  const rankOf = denseRanks(text.scores)
  const fused = new Gathered()
  for (const [at, seq] of text.seqs.entries()) {
    const score = text.scores[at]!
    const near = byVector.get(seq)
    const share = (1 - alpha) / rankOf(score)
    fused.add(seq, score, near?.distance ?? Number.NaN, share + (near === undefined ? 0 : alpha / near.rank))
    byVector.delete(seq)
  }
  for (const [seq, { distance, rank }] of byVector) fused.add(seq, Number.NaN, distance, alpha / rank)
  return fused
}

/** The dense rank of a score among these, 1 for the lowest. */
function denseRanks(scores: readonly number[]): (score: number) => number {
  const sorted = Float64Array.from(scores).sort()
  let count = 0
  for (const score of sorted) if (count === 0 || score !== sorted[count - 1]) sorted[count++] = score
  return (score) => {
    let [low, high] = [0, count]
    while (low < high) {
      const middle = (low + high) >> 1
      if (sorted[middle]! < score) low = middle + 1
      else high = middle
    }
    return low + 1
  }
}

/** Nearest neighbours as matches. */
export function neighboursGathered(found: readonly Neighbour[]): Gathered {
  const gathered = new Gathered()
  for (const { seq, distance } of found) gathered.add(seq, Number.NaN, distance, Number.NaN)
  return gathered
}
