/** Documents that have words, from the places of the words (word-pages.ts). Documents are in ascending order. */
import { MOST_COLUMNS, PLACE_BITS, type Places } from './word-pages'

/** The bits of a place that are 0 for the first word of a column. */
const FIRST = 2 ** PLACE_BITS - 1

export const bitsOf = (columns: readonly number[]): number =>
  columns.reduce((bits, column) => (column < MOST_COLUMNS ? bits | (1 << column) : bits), 0)

export function hasColumn({ starts, places }: Places, at: number, wanted: number): boolean {
  for (let index = starts[at]!; index < starts[at + 1]!; index++) {
    if ((wanted & (1 << (places[index]! >>> PLACE_BITS))) !== 0) return true
  }
  return false
}

/** The first index from `from` on whose number is not less. */
export function reach(seqs: Uint32Array, seq: number, from: number): number {
  let step = 1
  let [low, high] = [from, from]
  while (high < seqs.length && seqs[high]! < seq) {
    low = high + 1
    high += step
    step *= 2
  }
  high = Math.min(high, seqs.length)
  while (low < high) {
    const middle = (low + high) >> 1
    if (seqs[middle]! < seq) low = middle + 1
    else high = middle
  }
  return low
}

export function intersect(one: Uint32Array, other: Uint32Array): Uint32Array {
  const both = new Uint32Array(Math.min(one.length, other.length))
  let [size, at] = [0, 0]
  for (const seq of one) {
    at = reach(other, seq, at)
    if (at === other.length) break
    if (other[at] === seq) both[size++] = seq
  }
  return both.slice(0, size)
}

export function unite(one: Uint32Array, other: Uint32Array): Uint32Array {
  const either = new Uint32Array(one.length + other.length)
  let [size, a, b] = [0, 0, 0]
  while (a < one.length && b < other.length) {
    const left = one[a]!
    const right = other[b]!
    either[size++] = Math.min(left, right)
    if (left <= right) a++
    if (right <= left) b++
  }
  const rest = a < one.length ? one.subarray(a) : other.subarray(b)
  either.set(rest, size)
  return either.slice(0, size + rest.length)
}

export function subtract(one: Uint32Array, other: Uint32Array): Uint32Array {
  let at = 0
  return one.filter((seq) => {
    at = reach(other, seq, at)
    return other[at] !== seq
  })
}

/** Whether the words follow each other in one of the columns. @param cursors the document in each list */
export function follow(
  words: readonly Places[],
  cursors: Uint32Array,
  wanted: number,
  initial: boolean,
): boolean {
  const [first] = words
  for (let index = first!.starts[cursors[0]!]!; index < first!.starts[cursors[0]! + 1]!; index++) {
    const place = first!.places[index]!
    if ((wanted & (1 << (place >>> PLACE_BITS))) === 0) continue
    if (initial && (place & FIRST) !== 0) continue
    let at = 1
    while (at < words.length && has(words[at]!, cursors[at]!, place + at)) at++
    if (at === words.length) return true
  }
  return false
}

/** Halves the places, since one document can have a hundred thousand of a word. */
function has({ starts, places }: Places, at: number, place: number): boolean {
  let [low, high] = [starts[at]!, starts[at + 1]!]
  while (low < high) {
    const middle = (low + high) >> 1
    if (places[middle]! < place) low = middle + 1
    else high = middle
  }
  return low < starts[at + 1]! && places[low] === place
}

/** Whether a stretch of a column has each word, with so many words between the first and the last. */
export function isNear(
  words: readonly Places[],
  cursors: Uint32Array,
  wanted: number,
  most: number,
): boolean {
  const next = words.map(({ starts }, at) => starts[cursors[at]!]!)
  for (;;) {
    let [least, low, high] = [0, Infinity, 0]
    for (let at = 0; at < words.length; at++) {
      const { starts, places } = words[at]!
      const end = starts[cursors[at]! + 1]!
      while (next[at]! < end && (wanted & (1 << (places[next[at]!]! >>> PLACE_BITS))) === 0) next[at]!++
      if (next[at]! >= end) return false
      const place = places[next[at]!]!
      if (place < low) [least, low] = [at, place]
      if (place > high) high = place
    }
    if (high - low <= most + 1) return true
    next[least]!++
  }
}
