/**
 * Reads all places of some words, or of all words with a beginning, from an FTS5 index with one statement. Postings
 * (postings.ts) reads parts of long lists; this is for words of few pages.
 */
import type { Read } from '../fragment'
import { after, HEADER, type Page, Unreadable, varint } from './fts5-format'
import type { Postings } from './postings'

/** Words of the index begin with this character. */
const MAIN = '0'
/** A place is the number of the column to the left of these bits, and the number of the words before it in that column. */
export const PLACE_BITS = 24
export const MOST_COLUMNS = 31

/** Where a word is, or all words with a beginning. */
export interface Places {
  /** documents, ascending */
  seqs: Uint32Array
  /** by document: where its places begin; and where the last ones end */
  starts: Uint32Array
  /** ascending in each document */
  places: Uint32Array
  /** the columns that have it, a bit each */
  columns: number
}

/** A word to read. */
export interface Asked {
  word: string
  /** whether words that begin with it are read too */
  prefix: boolean
}

/**
 * @returns by asked word: the places of the word itself, and of all words that begin with it if there are longer ones;
 *   undefined from the first word on that has too many pages, together with those before it
 * @throws Unreadable
 */
export function readPlaces(
  sql: SqlStorage,
  postings: Postings,
  asked: readonly Asked[],
  read: Read,
): ({ whole: Places; all: Places | undefined } | undefined)[] {
  const { segments } = postings
  const encoded = asked.map(({ word }) => new TextEncoder().encode(MAIN + word))
  const stretches = asked.map(({ prefix }, at) => {
    const from = hexOf(encoded[at]!)
    // No word has these bytes, so all that begin with the asked one are before it.
    return { from, until: prefix ? `${from}ff` : from }
  })
  const pages = postings.leaves.read(sql, stretches, read)
  return asked.map(({ prefix }, at) => {
    const own = pages[at]
    if (own === undefined) return undefined
    const list = new List()
    for (const [index, segment] of segments.entries()) {
      const gone = segment.tombstones > 0 ? postings.goneFrom(segment) : undefined
      const reader = new SegmentReader(list, gone)
      for (const page of own[index]!) reader.read(page, encoded[at]!, prefix)
      reader.end()
    }
    const whole = list.places(true)
    return { whole, all: list.hasLonger ? list.places(false) : undefined }
  })
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

function hexOf(bytes: Uint8Array): string {
  let digits = ''
  for (const byte of bytes) digits += HEX[byte]
  return digits
}

/** Reads the pages of a segment in order. */
class SegmentReader {
  readonly #list: List
  readonly #gone: ReadonlySet<number> | undefined
  /** the last word of the page before may go on */
  #isOpen = false
  #isLonger = false
  #seq = 0
  /** places of a document that go on in the next page, and how many bytes are missing */
  #begun: Uint8Array | undefined
  #missing = 0

  constructor(list: List, gone: ReadonlySet<number> | undefined) {
    this.#list = list
    this.#gone = gone
  }

  read(page: Page, asked: Uint8Array, prefix: boolean): void {
    const { bytes } = page
    if (this.#isOpen) {
      const end = page.continuesTo
      this.#isOpen = end === page.end && end === bytes.length
      if (this.#begun !== undefined) {
        const more = Math.min(this.#missing, end - HEADER)
        this.#begun = joined(this.#begun, bytes.subarray(HEADER, HEADER + more))
        this.#missing -= more
        if (this.#missing > 0) return
        this.#add(this.#begun, 0, this.#begun.length)
        this.#begun = undefined
      }
      this.#documents(bytes, page.firstSeqAt ?? end, end)
    }
    for (const { word, at, end } of page.find(asked, prefix).words) {
      this.#isLonger = word.length > asked.length
      this.#isOpen = end === undefined
      this.#documents(bytes, at, end ?? page.end)
    }
  }

  end(): void {
    if (this.#begun !== undefined) throw new Unreadable()
  }

  #documents(bytes: Uint8Array, from: number, end: number): void {
    // The first document of a page is stored as its full number, each further one as the difference from the one before.
    let seq = 0
    for (let at = from; at < end; ) {
      let size = bytes[at++]!
      if (size < 0x80) seq += size
      else {
        seq += varint(bytes, at - 1)
        at = after
      }
      size = bytes[at++]!
      if (size >= 0x80) {
        size = varint(bytes, at - 1)
        at = after
      }
      // A deletion in the list itself, as in an index with contents.
      if (size % 2 === 1) throw new Unreadable()
      const to = at + size / 2
      this.#seq = seq
      if (to > end) {
        this.#begun = bytes.slice(at, end)
        this.#missing = to - end
        return
      }
      this.#add(bytes, at, to)
      at = to
    }
  }

  #add(bytes: Uint8Array, from: number, to: number): void {
    if (!this.#gone?.has(this.#seq)) this.#list.add(this.#seq, bytes, from, to, this.#isLonger)
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length)
  both.set(one)
  both.set(other, one.length)
  return both
}

/** Postings in the order in which they were read. */
class List {
  hasLonger = false
  #columns = 0
  #isOrdered = true
  #last = -1
  readonly #seqs: number[] = []
  readonly #starts: number[] = []
  readonly #isLonger: boolean[] = []
  readonly #places: number[] = []

  add(seq: number, bytes: Uint8Array, from: number, to: number, isLonger: boolean): void {
    const places = this.#places
    this.#seqs.push(seq)
    this.#starts.push(places.length)
    this.#isLonger.push(isLonger)
    this.#isOrdered &&= seq > this.#last
    this.#last = seq
    this.hasLonger ||= isLonger
    let column = 0
    let place = 0
    for (let at = from; at < to; ) {
      let step = bytes[at++]!
      if (step >= 0x80) {
        step = varint(bytes, at - 1)
        at = after
      }
      if (step === 1) {
        column = varint(bytes, at)
        at = after
        place = 0
        if (column >= MOST_COLUMNS) throw new Unreadable()
        continue
      }
      place += step - 2
      if (place >= 2 ** PLACE_BITS) throw new Unreadable()
      places.push((column << PLACE_BITS) | place)
      this.#columns |= 1 << column
    }
  }

  /** @param wholeOnly without longer words */
  places(wholeOnly: boolean): Places {
    this.#starts[this.#seqs.length] = this.#places.length
    if (this.#isOrdered && !(wholeOnly && this.hasLonger)) {
      return {
        seqs: new Uint32Array(this.#seqs),
        starts: new Uint32Array(this.#starts),
        places: new Uint32Array(this.#places),
        columns: this.#columns,
      }
    }
    const order = this.#order(wholeOnly)
    const seqs = new Uint32Array(order.length)
    const starts = new Uint32Array(order.length + 1)
    const places = new Uint32Array(this.#places.length)
    let documents = 0
    let size = 0
    let isMixed = false
    const arrange = () => {
      if (isMixed) places.subarray(starts[documents - 1], size).sort()
      isMixed = false
    }
    for (const at of order) {
      const seq = this.#seqs[at]!
      if (documents > 0 && seqs[documents - 1] === seq) isMixed = true
      else {
        arrange()
        seqs[documents] = seq
        starts[documents++] = size
      }
      const end = this.#starts[at + 1]!
      for (let index = this.#starts[at]!; index < end; index++) places[size++] = this.#places[index]!
    }
    arrange()
    starts[documents] = size
    return {
      seqs: seqs.slice(0, documents),
      starts: starts.slice(0, documents + 1),
      places: places.slice(0, size),
      columns: this.#columns,
    }
  }

  /**
   * The postings by document. Those of each word and segment are in order, so counting takes less time than comparing.
   */
  #order(wholeOnly: boolean): Uint32Array {
    const seqs = this.#seqs
    let low = Number.POSITIVE_INFINITY
    let high = 0
    for (const seq of seqs) {
      if (seq < low) low = seq
      if (seq > high) high = seq
    }
    const next = new Uint32Array(Math.max(0, high - low) + 2)
    let size = 0
    for (let at = 0; at < seqs.length; at++) {
      if (wholeOnly && this.#isLonger[at]) continue
      next[seqs[at]! - low + 1]!++
      size++
    }
    for (let at = 1; at < next.length; at++) next[at]! += next[at - 1]!
    const order = new Uint32Array(size)
    for (let at = 0; at < seqs.length; at++) {
      if (!(wholeOnly && this.#isLonger[at])) order[next[seqs[at]! - low]!++] = at
    }
    return order
  }
}
