/**
 * The format of an FTS5 index: numbers, leaves, segments and places (https://sqlite.org/fts5.html, fts5_index.c).
 */

/** The version of the format that is read. Version 5 allows secure deletes, which change the postings differently. */
export const VERSION = 4
export const AVERAGES_ID = 1
export const STRUCTURE_ID = 10
/** An id is the number of its segment, this many bits to the left, and the number of its page. */
export const SEGMENT_BITS = 37
export const TOMBSTONE_SEGMENTS = 65_536

/** The index has an unknown format, or a word has too many forms. The caller must use FTS5 itself. */
export class Unreadable extends Error {}

/** Bytes before the content of a leaf. */
export const HEADER = 4
/** The first bytes of the structure record if the index keeps deleted documents in tombstone tables. */
const WITH_TOMBSTONES = 0xff000001

/** A part of the index, with all of its words in order. */
export interface Segment {
  id: number
  first: number
  last: number
  tombstones: number
}

/** Words of the index begin with this byte. Others belong to indexes of prefixes, which no collection has. */
const MAIN = 0x30
const TOMBSTONE_HEADER = 8

/** A word as the index has it. */
export const encoded = (text: string): Uint8Array =>
  new TextEncoder().encode(String.fromCharCode(MAIN) + text)

export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** The documents that a page of a tombstone table has. */
export function* tombstonesOf(bytes: Uint8Array): Generator<number> {
  const size = bytes[0] === 4 ? 4 : 8
  if (bytes[1] === 1) yield 0
  for (let at = TOMBSTONE_HEADER; at + size <= bytes.length; at += size) {
    const seq = size === 4 ? u32(bytes, at) : u32(bytes, at) * 2 ** 32 + u32(bytes, at + 4)
    if (seq !== 0) yield seq
  }
}

/** The position after the last number that `varint` read. */
export let after = 0

/** A number of up to 53 bits: seven bits a byte, the most significant first, nine bytes at most. */
export function varint(bytes: Uint8Array, from: number): number {
  let at = from
  let value = 0
  for (let count = 1; ; count++) {
    const byte = bytes[at++]
    if (byte === undefined || count > 8) throw new Unreadable()
    if (byte < 0x80) {
      after = at
      return value * 128 + byte
    }
    value = value * 128 + (byte & 0x7f)
  }
}

const u16 = (bytes: Uint8Array, at: number): number => bytes[at]! * 256 + bytes[at + 1]!
const u32 = (bytes: Uint8Array, at: number): number => u16(bytes, at) * 65_536 + u16(bytes, at + 2)

/** A word of a leaf, and where its postings begin and end. `end` is undefined if they continue on the next page. */
export interface LeafWord {
  word: Uint8Array
  at: number
  end: number | undefined
}

/** A leaf. */
export class Page {
  /** where its content ends. The places of its words follow, each as the difference from the one before */
  readonly end: number

  constructor(readonly bytes: Uint8Array) {
    this.end = u16(bytes, 2)
  }

  /** the position of the first document among those of a word that began on an earlier page */
  get firstSeqAt(): number | undefined {
    return u16(this.bytes, 0) || undefined
  }

  get firstSeq(): number | undefined {
    return this.firstSeqAt && varint(this.bytes, this.firstSeqAt)
  }

  /** where the postings end that continue from the page before */
  get continuesTo(): number {
    return this.end < this.bytes.length ? varint(this.bytes, this.end) : this.end
  }

  /**
   * A word, or the words that begin with it, in order. A word is stored as the number of bytes that it shares with the
   * one before it, and its other bytes. So those before the asked one need not be put together.
   * @returns the words, and whether there is a later one
   */
  find(asked: Uint8Array, prefix: boolean): { words: LeafWord[]; isPast: boolean } {
    const { bytes } = this
    const words: LeafWord[] = []
    /** how many bytes the word before shares with the asked one */
    let same = 0
    let word: Uint8Array | undefined
    let offset = 0
    for (let place = this.end, isFirst = true; place < bytes.length; isFirst = false) {
      offset += varint(bytes, place)
      place = after
      const kept = isFirst ? 0 : varint(bytes, offset)
      const length = varint(bytes, isFirst ? offset : after)
      const from = after
      if (word === undefined) {
        if (kept > same) continue
        if (kept < same) return { words, isPast: true }
        let at = 0
        while (at < length && same < asked.length && bytes[from + at] === asked[same]) {
          at++
          same++
        }
        if (same < asked.length) {
          if (at < length && bytes[from + at]! > asked[same]!) return { words, isPast: true }
          continue
        }
      } else if (kept < asked.length) return { words, isPast: true }
      const whole = new Uint8Array(kept + length)
      whole.set((word ?? asked).subarray(0, kept))
      whole.set(bytes.subarray(from, from + length), kept)
      word = whole
      if (!prefix && whole.length > asked.length) return { words, isPast: true }
      const end = place < bytes.length ? offset + varint(bytes, place) : undefined
      words.push({ word, at: from + length, end })
      if (!prefix) return { words, isPast: true }
    }
    return { words, isPast: false }
  }
}

/** How many documents the record of averages counts, and how many words they have together. */
export function totalsOf(record: Uint8Array): { documents: number; words: number } {
  const documents = varint(record, 0)
  let words = 0
  while (after < record.length) words += varint(record, after)
  return { documents, words }
}

/** The segments that a structure record lists. @throws Unreadable */
export function segmentsOf(record: Uint8Array): Segment[] {
  if (u32(record, 4) !== WITH_TOMBSTONES) throw new Unreadable()
  const levels = varint(record, 8)
  const next = () => varint(record, after)
  next()
  next()
  const segments: Segment[] = []
  for (let level = 0; level < levels; level++) {
    next()
    for (let count = next(); count > 0; count--) {
      const [id, first, last] = [next(), next(), next()]
      next()
      next()
      const tombstones = next()
      next()
      next()
      // Skip a segment that an unfinished merge has emptied.
      if (first > 0) segments.push({ id, first, last, tombstones })
    }
  }
  return segments
}

/**
 * The sum of the weights of the places where a word is in a document. FTS5 writes places as numbers from 2, and a 1 and the
 * number of the column before those of each column but the first.
 * @param weights by column
 * @param any whether the first place with a weight is enough
 */
export function weightOfPlaces(
  bytes: Uint8Array,
  from: number,
  to: number,
  weights: ArrayLike<number | undefined>,
  any = false,
): number {
  let sum = 0
  let weight = weights[0] ?? 0
  for (let at = from; at < to; ) {
    if (bytes[at] !== 1) {
      sum += weight
      if (any && sum > 0) return sum
      while (bytes[at++]! >= 0x80);
      continue
    }
    weight = weights[varint(bytes, at + 1)] ?? 0
    at = after
  }
  return sum
}

/** The places of column n begin at n times this. */
export const COLUMN = 2 ** 32

/**
 * Calls `visit` with each place where a word is in a document: the number of the words before it in its column, and `COLUMN`
 * for each column before.
 * @param isWanted by column
 */
export function eachPlace(
  bytes: Uint8Array,
  from: number,
  to: number,
  isWanted: ArrayLike<number | undefined>,
  visit: (place: number) => void,
): void {
  let column = 0
  let place = 0
  for (let at = from; at < to; ) {
    const step = varint(bytes, at)
    at = after
    if (step !== 1) {
      place += step - 2
      if (isWanted[column]) visit(place)
      continue
    }
    column = varint(bytes, at)
    at = after
    place = column * COLUMN
  }
}
