/**
 * Matches in memory, as columns of numbers, 32 bytes a match. Matches that must be ranked as a whole cannot stay in
 * parts.
 */
import { type Buckets, bucketColumn } from '../request/sort'
import { BLOCK } from '../schema/block'
import { type Steps, stepwise } from '../steps'
import type { Neighbour } from '../vectors/vector-index'

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
  /** by column: the bucket of each match */
  readonly buckets = new Map<string, number[]>()

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
   */
  *fill(buckets: Buckets, isFused: boolean): Steps {
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
      const first = firstPlace(sorted, goodness(at))
      const place = first + taken[first]!++
      numbers[at] =
        place < inLarger
          ? Math.floor(place / (size + 1)) + 1
          : larger + Math.floor((place - inLarger) / Math.max(1, size)) + 1
    })
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
  for (const { seq, distance } of found) gathered.add(seq, Number.NaN, distance)
  return gathered
}
