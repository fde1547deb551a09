/**
 * Reads the pages of an FTS5 index that words are on, and caches them: words that are alike, or that nobody asked for yet,
 * are on few pages together.
 *
 * SQLite looks up the page of a word in `<index>_idx`, once for each word and segment, and copies the page. After some
 * of these look-ups the table is read as a whole, and a word needs no statement if its pages were read before.
 */
import { fragment, type Read } from '../fragment'
import { type Holder, MemoryBudget } from '../memory-budget'
import { Page, type Segment, Unreadable } from './fts5-format'

/** Pages of words that are read together. A page has up to 4 KB. */
const MOST_PAGES = 40
/** To read the first words of all pages takes about as long as so many look-ups. */
const FIRST_READS = 16
/** The first words of more pages are not read. */
const MOST_INDEXED = 8_192
const SEGMENT_BITS = 37
/** What a page takes besides its bytes, and the first word of a page. */
const [BYTES_A_PAGE, BYTES_A_FIRST] = [300, 80]
/** Bytes that all indexes of an isolate keep together. */
const MOST_BYTES = 8 << 20
const budget = new MemoryBudget(MOST_BYTES)

/** The words of an index from one to another, as UTF-8 in lower-case hexadecimal digits. */
export interface Stretch {
  from: string
  until: string
}

/** The pages of a segment on which a word begins that is on no page before, ascending. */
interface Firsts {
  words: string[]
  numbers: number[]
}

export class Leaves implements Holder {
  readonly #table: string
  readonly #segments: readonly Segment[]
  readonly #pages = new Map<number, Page>()
  #firsts: ReadonlyMap<number, Firsts> | undefined
  #reads = 0
  #bytes = 0

  /** @param segments of the index, which must not change any more */
  constructor(table: string, segments: readonly Segment[]) {
    this.#table = table
    this.#segments = segments
  }

  evict(): void {
    this.#pages.clear()
    this.#firsts = undefined
    this.#reads = 0
    this.#bytes = 0
  }

  /**
   * The pages of some stretches by segment, and the page after each, where its last word may go on.
   * @returns undefined for the first stretch that makes it too many pages, and for all after it
   */
  read(sql: SqlStorage, stretches: readonly Stretch[], read: Read): (Page[][] | undefined)[] {
    const segments = this.#segments
    if (this.#firsts === undefined && ++this.#reads === FIRST_READS) this.#index(sql, read)
    if (this.#firsts === undefined) return this.#lookUp(sql, stretches, read)
    const missing = new Set<number>()
    const ids: number[][][] = []
    for (const stretch of stretches) {
      const own = segments.map((segment) => this.#idsOf(segment, stretch))
      const all = own.flat()
      const lacking = all.filter((id) => !this.#pages.has(id) && !missing.has(id))
      if (all.length > MOST_PAGES || missing.size + lacking.length > MOST_PAGES) break
      for (const id of lacking) missing.add(id)
      ids.push(own)
    }
    const pages = new Map<number, Page>()
    if (missing.size > 0) {
      const rows = read<{ id: number; block: ArrayBuffer }>(
        sql,
        fragment(
          `SELECT id, block FROM ${this.#table}_data WHERE id IN (SELECT value FROM json_each(?))`,
          JSON.stringify([...missing]),
        ),
      )
      if (rows.length !== missing.size) throw new Unreadable()
      for (const { id, block } of rows) pages.set(id, new Page(new Uint8Array(block)))
    }
    const found = ids.map((own) => own.map((some) => some.map((id) => pages.get(id) ?? this.#pages.get(id)!)))
    for (const [id, page] of pages) this.#keep(id, page)
    budget.use(this, this.#bytes)
    return stretches.map((_, at) => found[at])
  }

  #keep(id: number, page: Page): void {
    this.#pages.set(id, page)
    this.#bytes += page.bytes.length + BYTES_A_PAGE
    for (const [oldest, { bytes }] of this.#pages) {
      if (this.#bytes <= MOST_BYTES) return
      this.#pages.delete(oldest)
      this.#bytes -= bytes.length + BYTES_A_PAGE
    }
  }

  #idsOf({ id, first, last }: Segment, { from, until }: Stretch): number[] {
    const { words, numbers } = this.#firsts!.get(id) ?? { words: [], numbers: [] }
    // An unfinished merge may have emptied the first pages.
    const begin = Math.max(first, numbers[after(words, from) - 1] ?? 0)
    const end = numbers[after(words, until)] ?? last
    return Array.from(
      { length: Math.max(0, end - begin + 1) },
      (_, at) => id * 2 ** SEGMENT_BITS + begin + at,
    )
  }

  #index(sql: SqlStorage, read: Read): void {
    if (this.#segments.reduce((sum, { first, last }) => sum + last - first, 0) > MOST_INDEXED) return
    const rows = read<{ segment: number; words: string; numbers: string }>(
      sql,
      fragment(
        `SELECT segid AS segment, group_concat(lower(hex(term))) AS words, group_concat(pgno / 2) AS numbers
           FROM (SELECT segid, term, pgno FROM ${this.#table}_idx ORDER BY segid, term) GROUP BY segid`,
      ),
    )
    const firsts = new Map<number, Firsts>()
    for (const { segment, words, numbers } of rows) {
      const own = { words: words.split(','), numbers: numbers.split(',').map(Number) }
      firsts.set(segment, own)
      this.#bytes += BYTES_A_FIRST * own.words.length
    }
    this.#firsts = firsts
  }

  #lookUp(sql: SqlStorage, stretches: readonly Stretch[], read: Read): (Page[][] | undefined)[] {
    const parts = stretches.flatMap(({ from, until }, at) =>
      this.#segments.map(({ id, first, last }, segment) => [at, segment, id, first, last, from, until]),
    )
    const rows = read<{ asked: number; segment: number; block: ArrayBuffer }>(
      sql,
      fragment(
        `SELECT s.value ->> 0 AS asked, s.value ->> 1 AS segment, d.block FROM json_each(?) s CROSS JOIN ${this.#table}_data d
         ON d.id BETWEEN ((s.value ->> 2) << ${SEGMENT_BITS}) + max(s.value ->> 3, ifnull((SELECT pgno / 2
           FROM ${this.#table}_idx WHERE segid = s.value ->> 2 AND term <= unhex(s.value ->> 5) ORDER BY term DESC LIMIT 1), 0))
         AND ((s.value ->> 2) << ${SEGMENT_BITS}) + ifnull((SELECT pgno / 2
           FROM ${this.#table}_idx WHERE segid = s.value ->> 2 AND term > unhex(s.value ->> 6) ORDER BY term LIMIT 1), s.value ->> 4)
         LIMIT ${MOST_PAGES + 1}`,
        JSON.stringify(parts),
      ),
    )
    const end = rows.length > MOST_PAGES ? rows.at(-1)!.asked : stretches.length
    const found = stretches.map((_, at) => (at < end ? this.#segments.map((): Page[] => []) : undefined))
    for (const { asked, segment, block } of rows)
      found[asked]?.[segment]?.push(new Page(new Uint8Array(block)))
    return found
  }
}

/** How many of these words are not after one. @param words ascending */
function after(words: readonly string[], word: string): number {
  let [low, high] = [0, words.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (words[middle]! <= word) low = middle + 1
    else high = middle
  }
  return low
}
