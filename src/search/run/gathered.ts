/**
 * Matches in memory, as columns of numbers, 32 bytes a match. Matches that must be ranked as a whole cannot stay in
 * parts.
 */
import { type Buckets, bucketColumn } from '../request/sort'
import { BLOCK } from '../schema/block'
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

  /** Numbers of the matches by block and offset; NaN for other documents. */
  numbers(values: readonly number[]): ReadonlyMap<number, Float64Array> {
    const blocks = new Map<number, Float64Array>()
    for (let at = 0; at < this.size; at++) {
      const number = Math.floor(this.seqs[at]! / BLOCK)
      let block = blocks.get(number)
      if (block === undefined) {
        block = new Float64Array(BLOCK).fill(Number.NaN)
        blocks.set(number, block)
      }
      block[this.seqs[at]! - number * BLOCK] = values[at]!
    }
    return blocks
  }

  /** Matches at least as good as the best `count`. Higher is better; missing values are the worst. */
  best(count: number, values: readonly number[]): Gathered {
    if (this.size <= Math.max(FEW, count)) return this
    const sorted = Float64Array.from(values, orWorst).sort()
    const least = sorted[sorted.length - count]!
    const best = new Gathered()
    for (let at = 0; at < this.size; at++) {
      if (orWorst(values[at]!) < least) continue
      best.add(this.seqs[at]!, this.scores[at]!, this.distances[at]!, this.fused[at]!)
    }
    return best
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
  for (const { seq, distance } of found) gathered.add(seq, Number.NaN, distance)
  return gathered
}
