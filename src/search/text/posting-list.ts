/** Where the postings of a word are. */
import type { Segment } from './fts5-format'

/** The postings of a word in a segment: from a byte of a page, up to a byte of another one. */
export interface List {
  segment: Segment
  page: number
  at: number
  /** where they end on that page; undefined if they go on */
  end: number | undefined
  last: number
  /** by page: its first document, if known */
  firsts: Map<number, number | undefined>
  /** all of them, if they are few */
  bytes?: Uint8Array
  /** the last document, if known */
  lastSeq?: number
}

/** @param positions bytes of which those from `from` to `to` tell where in the document the word is */
export type Visit = (seq: number, positions: Uint8Array, from: number, to: number) => void
