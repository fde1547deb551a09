/**
 * Reads the postings of an FTS5 index: which documents have a word, and where.
 *
 * For BM25, FTS5 reads all documents of a word in one statement, which cannot be interrupted, and needs a quarter of
 * a microsecond for each match. The leaves of its b-tree, read here a range of documents at a time, take a tenth of
 * that.
 *
 * `<index>_data` has the pages, `<index>_idx` the first word of each (fts5-format.ts). The version of the format is
 * checked, and any other format makes the caller use FTS5 itself.
 */
import { fragment, type Read } from '../fragment'
import { Kept } from '../memory'
import type { Range } from '../range'
import type { TextIndex } from './analyzer'
import {
  AVERAGES_ID,
  after,
  encoded,
  HEADER,
  joined,
  Page,
  SEGMENT_BITS,
  type Segment,
  STRUCTURE_ID,
  segmentsOf,
  TOMBSTONE_SEGMENTS,
  tombstonesOf,
  totalsOf,
  Unreadable,
  VERSION,
  varint,
} from './fts5-format'
import type { List, Visit } from './posting-list'

/** The most pages that one statement reads: 256 KB. */
const MOST_PAGES = 64
/** The most words of a prefix whose lists are remembered. More are read one after the other (`sweep`). */
const MOST_WORDS = 2_000
/** Postings of fewer bytes are remembered with their list. */
const FEW_BYTES = 512
/** So many pages before the one that is looked for are near enough to it: to read them all takes as long as to search on. */
const NEAR = 3

/** Bytes that all indexes of an isolate remember together, and roughly what a list, a deleted document and a page take. */
const MOST_BYTES = 8 << 20
const [LIST_BYTES, GONE_BYTES, FIRST_BYTES] = [400, 16, 32]

/** A snapshot of an index. After a write it must be opened again. */
export class Postings {
  #sql: SqlStorage
  #read: Read
  readonly #table: TextIndex['table']
  readonly segments: readonly Segment[]
  readonly #gone = new Map<number, Set<number>>()
  /** by word and whether it is a beginning */
  readonly #lists = new Map<string, List[] | 'too many'>()
  #bytes = 0
  readonly #kept = new Kept<'all', true>(undefined, () => this.evict())

  /** @throws Unreadable */
  constructor(sql: SqlStorage, table: TextIndex['table'], read: Read) {
    this.#sql = sql
    this.#read = read
    this.#table = table
    const [config] = read<{ v: unknown }>(sql, fragment(`SELECT v FROM ${table}_config WHERE k = 'version'`))
    if (config?.v !== VERSION) throw new Unreadable()
    this.segments = segmentsOf(this.#record(STRUCTURE_ID))
  }

  /** Sets the function that reads, so that each search counts its own reads. */
  readBy(sql: SqlStorage, read: Read): this {
    this.#sql = sql
    this.#read = read
    return this
  }

  /** Frees the memory. What is asked for again is read again. */
  evict(): void {
    this.#lists.clear()
    this.#gone.clear()
    this.#bytes = 0
  }

  /** @param bytes that it takes more from now on */
  #remember(bytes: number): void {
    if (this.#bytes + bytes > MOST_BYTES) this.evict()
    this.#bytes += bytes
    this.#kept.set('all', true, this.#bytes)
  }

  /** How many documents the index has, and how many words they have together: BM25 needs both. */
  totals(): { documents: number; words: number } {
    return totalsOf(this.#record(AVERAGES_ID))
  }

  /**
   * Visits every document of a range that has a word. In a segment they come in order. With `prefix`, a document
   * comes once for each of its words with that beginning.
   * @returns how many it visited
   * @throws Unreadable
   */
  visit(word: string, prefix: boolean, range: Range, visit: Visit): number {
    let count = 0
    for (const list of this.#listsOf(word, prefix)) {
      const known = list.firsts.size
      count += this.#visitList(list, range, visit)
      if (list.firsts.size > known) this.#remember(FIRST_BYTES * (list.firsts.size - known))
    }
    return count
  }

  /** Whether a prefix stands for too many words to visit some of their documents. */
  isBroad(word: string, prefix: boolean): boolean {
    return this.#lookUp(word, prefix) === 'too many'
  }

  /**
   * Visits the documents of all words with a beginning, however many words those are. A document comes once for each of them.
   * @returns after each of many steps, how many postings it visited
   * @throws Unreadable
   */
  *sweep(beginning: string, high: number, visit: Visit): Generator<number> {
    const asked = encoded(beginning)
    const pages = this.#pagesWith(asked)
    for (const segment of this.segments) {
      for (const list of this.#listsIn(segment, asked, pages.get(segment.id)!, {
        prefix: true,
        isSwept: true,
      })) {
        const parts = Math.ceil((list.last - list.page + 1) / MOST_PAGES)
        const width = Math.ceil((high + 1) / parts)
        for (let low = 0; low <= high; low += width) {
          yield this.#visitList(list, { low, high: low + width - 1 }, visit)
        }
      }
    }
  }

  /** Whether a longer word begins with this one. It may belong to deleted documents. @throws Unreadable */
  hasLonger(text: string): boolean {
    const word = encoded(text)
    const pages = this.#pagesWith(word)
    return this.segments.some((segment) => {
      const { words, isPast } = pages.get(segment.id)!.page.find(word, true)
      if (words.some((own) => own.word.length > word.length)) return true
      const next = isPast ? undefined : this.#pageAfter(segment, word)
      return next !== undefined && this.#page(segment, next).find(word, true).words.length > 0
    })
  }

  /** How many pages the postings of a word take: at least one for each of its lists. */
  pagesOf(word: string, prefix: boolean): number {
    return this.#listsOf(word, prefix).reduce((sum, { page, last }) => sum + last - page + 1, 0)
  }

  #record(id: number): Uint8Array {
    const [row] = this.#read<{ block: ArrayBuffer }>(
      this.#sql,
      fragment(`SELECT block FROM ${this.#table}_data WHERE id = ?`, id),
    )
    if (row === undefined) throw new Unreadable()
    return new Uint8Array(row.block)
  }

  /** @throws Unreadable if one is missing: the pages after it would be taken for others */
  #pages(segment: Segment, first: number, count: number): Page[] {
    const id = segment.id * 2 ** SEGMENT_BITS
    const rows = this.#read<{ block: ArrayBuffer }>(
      this.#sql,
      fragment(
        `SELECT block FROM ${this.#table}_data WHERE id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER) ORDER BY id`,
        id + first,
        id + first + count - 1,
      ),
    )
    if (rows.length !== count) throw new Unreadable()
    return rows.map(({ block }) => new Page(new Uint8Array(block)))
  }

  #page = (segment: Segment, number: number): Page => this.#pages(segment, number, 1)[0]!

  /** By segment: the page of the last word that is not after this one, and its number. */
  #pagesWith(word: Uint8Array): Map<number, { number: number; page: Page }> {
    const rows = this.#read<{ segment: number; number: number; block: ArrayBuffer }>(
      this.#sql,
      // An unfinished merge may have emptied the first pages.
      fragment(
        `SELECT segment, number, block FROM (
           SELECT value ->> 0 AS segment, max(value ->> 1, ifnull((SELECT pgno / 2 FROM ${this.#table}_idx
             WHERE segid = value ->> 0 AND term <= ? ORDER BY term DESC LIMIT 1), 0)) AS number FROM json_each(?)
         ) JOIN ${this.#table}_data ON id = (segment << ${SEGMENT_BITS}) + number`,
        word.slice().buffer,
        JSON.stringify(this.segments.map(({ id, first }) => [id, first])),
      ),
    )
    if (rows.length !== this.segments.length) throw new Unreadable()
    return new Map(
      rows.map(({ segment, number, block }) => [segment, { number, page: new Page(new Uint8Array(block)) }]),
    )
  }

  /** The first page after this word on which a word begins. */
  #pageAfter(segment: Segment, word: Uint8Array): number | undefined {
    const [row] = this.#read<{ pgno: number }>(
      this.#sql,
      fragment(
        `SELECT pgno FROM ${this.#table}_idx WHERE segid = ? AND term > ? ORDER BY term LIMIT 1`,
        segment.id,
        word.slice().buffer,
      ),
    )
    return row && Math.floor(row.pgno / 2)
  }

  #listsOf(text: string, prefix: boolean): List[] {
    const lists = this.#lookUp(text, prefix)
    if (lists === 'too many') throw new Unreadable()
    return lists
  }

  #lookUp(text: string, prefix: boolean): List[] | 'too many' {
    const key = JSON.stringify([text, prefix])
    const known = this.#lists.get(key)
    if (known !== undefined) return known
    const word = encoded(text)
    const lists: List[] = []
    const pages = this.#pagesWith(word)
    for (const segment of this.segments) {
      for (const list of this.#listsIn(segment, word, pages.get(segment.id)!, { prefix, isSwept: false })) {
        if (lists.push(list) <= MOST_WORDS) continue
        this.#remember(LIST_BYTES)
        this.#lists.set(key, 'too many')
        return 'too many'
      }
    }
    const own = lists.reduce((sum, { bytes }) => sum + (bytes?.length ?? 0), 0)
    this.#remember(LIST_BYTES * (lists.length + 1) + own)
    this.#lists.set(key, lists)
    return lists
  }

  *#listsIn(
    segment: Segment,
    asked: Uint8Array,
    from: { number: number; page: Page },
    { prefix, isSwept }: { prefix: boolean; isSwept: boolean },
  ): Generator<List> {
    let next: number | undefined = from.number
    let { page } = from
    for (let count = 0; next !== undefined && next <= segment.last; count++) {
      if (count > MOST_WORDS && !isSwept) throw new Unreadable()
      const number: number = next
      if (count > 0) page = this.#page(segment, number)
      const { words, isPast } = page.find(asked, prefix)
      for (const { word, at, end } of words) {
        const until: number = end === undefined ? (this.#pageAfter(segment, word) ?? segment.last) : number
        const firsts = new Map(at < page.end ? [[number, varint(page.bytes, at)]] : [])
        const to = end ?? page.end
        const isFew = until === number && (isSwept || to - at < FEW_BYTES)
        // A copy does not keep the whole page in memory.
        const bytes = isFew ? { bytes: isSwept ? page.bytes.subarray(at, to) : page.bytes.slice(at, to) } : {}
        yield { segment, page: number, at, end, last: until, firsts, ...bytes }
      }
      if (isPast || !prefix) return
      next = this.#pageAfter(segment, words.at(-1)?.word ?? asked)
    }
  }

  /** Documents of a segment that are deleted. */
  goneFrom({ id, tombstones }: Segment): Set<number> {
    const known = this.#gone.get(id)
    if (known !== undefined) return known
    const gone = new Set<number>()
    // These ids have more bits than a double.
    const pages = this.#read<{ block: ArrayBuffer }>(
      this.#sql,
      fragment(
        `SELECT block FROM ${this.#table}_data, (SELECT CAST(? AS INTEGER) << ${SEGMENT_BITS} AS first)
          WHERE id >= first AND id < first + CAST(? AS INTEGER)`,
        id + TOMBSTONE_SEGMENTS,
        tombstones,
      ),
    )
    if (pages.length !== tombstones) throw new Unreadable()
    for (const { block } of pages) {
      for (const seq of tombstonesOf(new Uint8Array(block))) gone.add(seq)
    }
    this.#remember(GONE_BYTES * gone.size)
    this.#gone.set(id, gone)
    return gone
  }

  /** The last page of a list whose first document is not after `low`, or one before it. */
  #pageFor(list: List, low: number): number {
    const { segment, firsts } = list
    let [from, to] = [list.page, list.last]
    let [least, most] = [firsts.get(from), undefined as number | undefined]
    for (const [page, first] of firsts) {
      if (first === undefined) continue
      if (first > low) {
        if (page <= to) [to, most] = [page - 1, first]
      } else if (page > from) [from, least] = [page, first]
    }
    for (let step = 0; from < to; step++) {
      // Documents are spread evenly more often than not, but two guesses in a row may be wrong.
      const share = least === undefined || most === undefined ? undefined : (low - least) / (most - least)
      const pages = (to + 1 - from) * (share ?? 1)
      if (share !== undefined && pages < NEAR) break
      const isGuess = share !== undefined && step % 2 === 0
      let number = isGuess
        ? Math.max(from + 1, Math.min(to, from + Math.floor(pages)))
        : Math.ceil((from + to) / 2)
      let first: number | undefined
      // A page in the middle of one document's positions has no first document.
      for (; number > from; number--) {
        if (!firsts.has(number)) firsts.set(number, this.#page(segment, number).firstSeq)
        first = firsts.get(number)
        if (first !== undefined) break
      }
      if (first !== undefined && first <= low) [from, least] = [number, first]
      else [to, most] = [Math.max(from, number - 1), first ?? most]
    }
    return from
  }

  #visitList(list: List, { low, high }: Range, visit: Visit): number {
    const { segment } = list
    if ((list.firsts.get(list.page) ?? low) > high || (list.lastSeq ?? low) < low) return 0
    const gone = segment.tombstones > 0 ? this.goneFrom(segment) : undefined
    let number = this.#pageFor(list, low)
    let count = 0
    let seq = 0
    /** positions of a document that go on in the next page: what of them was read, and how many bytes are missing */
    let begun: Uint8Array[] | undefined
    let missing = 0
    let last = list.last
    for (const [page, first] of list.firsts)
      if (page < last && first !== undefined && first > high) last = page
    let ahead = last < list.last ? MOST_PAGES : 1
    for (; number <= list.last; ahead = Math.min(MOST_PAGES, ahead * 2)) {
      const some = Math.min(ahead, Math.max(1, last - number + 1))
      for (const page of list.bytes ? [undefined] : this.#pages(segment, number, some)) {
        const isFirst = number === list.page
        const bytes = page?.bytes ?? list.bytes!
        const end = page === undefined ? bytes.length : isFirst ? (list.end ?? page.end) : page.continuesTo
        let at = page === undefined ? 0 : isFirst ? list.at : (page.firstSeqAt ?? end)
        if (!isFirst) list.firsts.set(number, page?.firstSeq)
        number++
        if (begun !== undefined) {
          const more = Math.min(missing, end - HEADER)
          begun.push(bytes.subarray(HEADER, HEADER + more))
          missing -= more
          if (missing > 0) continue
          if (seq >= low && !gone?.has(seq)) {
            const positions = joined(begun)
            count++
            visit(seq, positions, 0, positions.length)
          }
          begun = undefined
        }
        // The first document of a page is stored as its full number, each further one as the difference from the one
        // before.
        if (at < end) seq = 0
        while (at < end) {
          // Most numbers have one byte.
          let size = bytes[at++]!
          if (size < 0x80) seq += size
          else {
            seq += varint(bytes, at - 1)
            at = after
          }
          if (seq > high) return count
          size = bytes[at++]!
          if (size >= 0x80) {
            size = varint(bytes, at - 1)
            at = after
          }
          // A deletion in the list itself, as in an index with contents.
          if (size % 2 === 1) throw new Unreadable()
          const to = at + size / 2
          if (to > end) {
            begun = [bytes.subarray(at, end)]
            missing = to - end
            break
          }
          if (seq >= low && !gone?.has(seq)) {
            count++
            visit(seq, bytes, at, to)
          }
          at = to
        }
      }
    }
    list.lastSeq = seq
    return count
  }
}
