/**
 * The values of one field in memory (column-memory.ts), and how a block of them is read from the index.
 *
 * SQLite gathers short values of a block into one JSON value. Others are read row by row: its JSON drops the last digits
 * of fractions. Long strings are read when they are needed.
 */
import { readColumn } from '../../lib/stored-json'
import { columnOf, fragment, type Read } from '../fragment'
import { rulesOf } from '../text/query'
import { normalForm } from '../text/terms'
import type { Field } from '../types'
import {
  columnsTable,
  isArray,
  isGeopoint,
  isGeopolygon,
  isInt64,
  isString,
  longitudeColumn,
  type StoredSchema,
  scalarColumn,
  valuesTable,
} from './layout'

/** A block of strings of this many bytes fits into one value as JSON: SQLite takes 2 MB, and JSON writes up to six characters for a byte. */
const SHORT_BYTES = 64
/** A longer string is not kept in memory. */
const LONG_BYTES = 2_000
/** Strings of a block whose ids have 16 bits. */
const MOST_SHORT_IDS = 65_536

const SAFE = Number.MAX_SAFE_INTEGER

interface Row {
  at: number
  value: string | number | null
  pos: number
  longitude: number
}

/** The values of a field. */
export class Column {
  readonly isText: boolean
  readonly isList: boolean
  readonly #table: string
  readonly #value: string

  constructor(
    readonly field: Field,
    readonly schema: StoredSchema,
  ) {
    // A polygon is the JSON of its corners.
    this.isText = isString(field) || isGeopolygon(field)
    this.isList = isArray(field)
    const slot = schema.slots[field.name]!
    this.#table = this.isList ? valuesTable(slot) : columnsTable(slot)
    this.#value = this.isList ? 'value' : scalarColumn(slot)
  }

  /** @param some of the documents, if not all are wanted: sequence numbers in ascending order */
  read(sql: SqlStorage, number: number, read: Read, some?: readonly number[]): Block {
    const low = number * BLOCK
    const high = low + BLOCK - 1
    const { field } = this
    const value = this.#value
    // SqlStorage would round whole numbers beyond 2^53, so those are read as text.
    const exact = isInt64(field)
      ? `iif(${value} BETWEEN -${SAFE} AND ${SAFE}, ${value}, CAST(${value} AS TEXT))`
      : value
    if (some === undefined && !this.isList && !isGeopoint(field) && !field.type.startsWith('float')) {
      // One scan reads values and offsets. Each pass over the rows takes about as long as this whole statement.
      const [short, long] = this.isText
        ? [
            `iif(octet_length(${value}) > ${SHORT_BYTES}, NULL, ${value})`,
            `octet_length(${value}) > ${SHORT_BYTES}`,
          ]
        : [exact, 'NULL']
      const [row] = read<Span & { found: string; long: number }>(
        sql,
        fragment(
          `SELECT json_group_array(${short}) AS found, total(${long}) AS long, ${SPAN} FROM ${this.#table} NOT INDEXED WHERE seq BETWEEN ? AND ?`,
          low,
          high,
        ),
      )
      if (row!.long === 0) {
        const ats = offsetsIn(sql, this.#table, low, row!, read)
        const found = readColumn<string | number | null>(row!.found)
        return this.#block(sql, number, ats, found)
      }
    }
    const [position, longitude] = [
      this.isList ? 'pos' : '0',
      this.isList ? 'norm' : longitudeColumn(this.schema.slots[field.name]!),
    ]
    const short = this.isText ? `iif(octet_length(${value}) > ${LONG_BYTES}, NULL, ${value})` : exact
    const among = some === undefined ? 'seq BETWEEN ? AND ?' : 'seq IN (SELECT value FROM json_each(?))'
    const rows = read<Row>(
      sql,
      fragment(
        `SELECT seq - ${low} AS at, ${short} AS value, ${position} AS pos${isGeopoint(field) ? `, ${longitude} AS longitude` : ''}
           FROM ${this.#table} WHERE ${among} AND ${value} IS NOT NULL ORDER BY seq${this.isList ? ', pos' : ''}`,
        ...(some === undefined ? [low, high] : [JSON.stringify(some)]),
      ),
    )
    const values = this.isText
      ? rows.map((row) => row.value ?? row.pos * BLOCK + row.at)
      : rows.map((row) => row.value)
    const longitudes = isGeopoint(field) ? rows.map((row) => row.longitude) : undefined
    const ats = rows.map(({ at }) => at)
    return this.#block(sql, number, ats, values, longitudes)
  }

  /** @param found by document: of a list, one value after the other. In a field of strings, a number is the place of a long one */
  #block(
    sql: SqlStorage,
    number: number,
    ats: ArrayLike<number>,
    found: readonly (string | number | null)[],
    longitudes?: readonly number[],
  ): Block {
    if (this.isText) return this.#textBlock(sql, number, ats, found)
    // A number beyond 2^53 came as text.
    const isBig = found.some((value) => typeof value === 'string')
    if (!this.isList && !isBig) {
      const values = new Float64Array(BLOCK).fill(Number.NaN)
      const seconds = longitudes && new Float64Array(BLOCK)
      for (let index = 0; index < found.length; index++) {
        const value = found[index]
        if (value === null) continue
        values[ats[index]!] = value as number
        if (seconds) seconds[ats[index]!] = longitudes![index]!
      }
      return { values, starts: undefined, ...(seconds && { longitudes: seconds }) }
    }
    const kept = found.flatMap((value, index) => (value === null ? [] : [index]))
    return {
      values: isBig
        ? BigInt64Array.from(kept, (index) => BigInt(found[index]!))
        : Float64Array.from(kept, (index) => found[index] as number),
      starts: startsOf(kept.map((index) => ats[index]!)),
      ...(longitudes && { longitudes: Float64Array.from(longitudes) }),
    }
  }

  #textBlock(
    sql: SqlStorage,
    number: number,
    ats: ArrayLike<number>,
    found: readonly (string | number | null)[],
  ): Block {
    const ids = new Map<string | number, number>()
    const texts: (string | number)[] = ['']
    const values = new Uint32Array(this.isList ? found.length : BLOCK)
    for (let index = 0; index < found.length; index++) {
      const text = found[index]
      if (text === null || text === undefined) continue
      let id = ids.get(text)
      if (id === undefined) {
        id = texts.push(text) - 1
        ids.set(text, id)
      }
      values[this.isList ? index : ats[index]!] = id
    }
    return {
      values: texts.length <= MOST_SHORT_IDS ? Uint16Array.from(values) : values,
      starts: this.isList ? startsOf(ats) : undefined,
      words: new Words(texts, this.#forms(sql, number)),
    }
  }

  #forms(sql: SqlStorage, number: number): Forms {
    const rules = rulesOf(this.schema, this.field)
    const [table, value] = [this.#table, this.#value]
    const position = this.isList ? 'AND pos = ?' : 'AND 0 = ?'
    return {
      form: (text) => normalForm(text, rules),
      long: (place) => {
        const [row] = sql
          .exec<{ text: string | null }>(
            `SELECT ${value} AS text FROM ${table} WHERE seq = ? ${position}`,
            number * BLOCK + (place % BLOCK),
            Math.floor(place / BLOCK),
          )
          .toArray()
        // The document may have been removed while a search waited.
        return row?.text ?? ''
      },
    }
  }

  /** A block from storage. */
  unpacked(sql: SqlStorage, number: number, bytes: ArrayBuffer): Block {
    return unpacked(bytes, this.#forms(sql, number))
  }
}

function startsOf(ats: ArrayLike<number>): Uint32Array {
  const starts = new Uint32Array(BLOCK + 1)
  for (let index = 0; index < ats.length; index++) starts[ats[index]! + 1]!++
  for (let at = 0; at < BLOCK; at++) starts[at + 1]! += starts[at]!
  return starts
}

/** What tells whether the rows of a block are without a gap. */
export const SPAN = 'count(*) AS count, min(seq) AS first, max(seq) AS last'
export interface Span {
  count: number
  first: number | null
  last: number | null
}

/** The offsets of a block in which no document is missing. */
let whole: Offsets | undefined

/** The offsets of the rows that a table has in a block. They are listed only if there are gaps. */
export function offsetsIn(
  sql: SqlStorage,
  table: string,
  low: number,
  { count, first, last }: Span,
  read: Read,
): Offsets {
  if (first === null || last! - first >= count) {
    const [row] = read<{ ats: string }>(
      sql,
      fragment(
        `SELECT json_group_array(seq - ?) AS ats FROM (SELECT seq FROM ${table} WHERE seq BETWEEN ? AND ? ORDER BY seq)`,
        low,
        low,
        low + BLOCK - 1,
      ),
    )
    return Uint16Array.from(readColumn<number>(row!.ats))
  }
  whole ??= Uint16Array.from({ length: BLOCK }, (_, at) => at)
  return count === BLOCK ? whole : whole.slice(first - low, last! - low + 1)
}

/** Sequence numbers of a block. Data of a collection is cached in memory, and dropped, by blocks. */
export const BLOCK = 4_096

/** The documents of a block: their sequence numbers less the block's first, in ascending order. */
export type Offsets = Uint16Array

/** A BigInt is a whole number that a double cannot hold. */
export type Scalar = string | number | bigint

/** A field's values in a block. */
export interface Block {
  /**
   * by offset: ids of strings with 0 for none, numbers with NaN for none, or latitudes. With `starts`, one value after the
   * other. Whole numbers that a double would round are all BigInts, and have `starts`
   */
  values: Uint16Array | Uint32Array | Float64Array | BigInt64Array
  /** where each document's values begin, and where the last one's end */
  starts: Uint32Array | undefined
  /** of strings */
  words?: Words
  /** of places */
  longitudes?: Float64Array
}

/** Bytes in memory of each string besides its characters, and of a character in both of its forms. */
const [WORD_BYTES, CHARACTER_BYTES] = [150, 4]

/** How the strings of a block become what is compared. */
interface Forms {
  form: (text: string) => string
  /** reads a long string */
  long: (place: number) => string
}

/** The different strings of a block, by id; 0 is no string. */
export class Words {
  /** A number is the place of a long string, which is read when it is asked for. */
  readonly texts: readonly (string | number)[]
  readonly #norms: string[] = []

  /** @param texts the first one is not used */
  constructor(
    texts: readonly (string | number)[],
    private readonly forms: Forms,
  ) {
    this.texts = texts
  }

  get size(): number {
    return this.texts.length
  }

  text(id: number): string {
    const text = this.texts[id]!
    return typeof text === 'string' ? text : this.forms.long(text)
  }

  /** The normal form of a string (text/terms.ts). */
  norm(id: number): string {
    const known = this.#norms[id]
    if (known !== undefined) return known
    const norm = this.forms.form(this.text(id))
    if (typeof this.texts[id] === 'string') this.#norms[id] = norm
    return norm
  }

  get bytes(): number {
    let bytes = 0
    for (const text of this.texts)
      bytes += WORD_BYTES + (typeof text === 'string' ? CHARACTER_BYTES * text.length : 0)
    return bytes
  }
}

/** A number of a block: a BigInt only if a double cannot hold it. */
export function numberAt(values: Block['values'], place: number): number | bigint {
  const value = values[place]!
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value
}

/** Where a document's only or first value is; -1 if it has none. */
export function placeAt({ values, starts, words }: Block, at: number): number {
  if (starts !== undefined) return starts[at]! < starts[at + 1]! ? starts[at]! : -1
  return (words === undefined ? Number.isNaN(values[at]) : values[at] === 0) ? -1 : at
}

/** The values of a document: strings, numbers, or latitudes and longitudes in turn. */
export function valuesAt(block: Block, at: number): Scalar[] {
  const { values, starts, words, longitudes } = block
  const first = placeAt(block, at)
  const found: Scalar[] = []
  if (first === -1) return found
  const end = starts === undefined ? first + 1 : starts[at + 1]!
  for (let place = first; place < end; place++) {
    found.push(words === undefined ? numberAt(values, place) : words.text(Number(values[place])))
    if (longitudes !== undefined) found.push(longitudes[place]!)
  }
  return found
}

// =============================================================================
// The values of a field in a block of documents, packed into one row: what a filter, an order or a facet needs of 4,096
// documents. An object that wakes reads this row instead of theirs.
//
// A search that had to read the documents' rows leaves the block to be packed, and so does an import that has changed one. A
// write removes what was packed of its block, in the same transaction. So what is there is true, and what is missing is read.

/** Takes the place of a slot for the documents that a block has. */
export const PRESENT = -1

/** The packed blocks of a collection. */
export class PackedColumns {
  constructor(private readonly sql: SqlStorage) {}

  read(block: number, slot: number): ArrayBuffer | undefined {
    const [row] = this.sql
      .exec<{ packed: ArrayBuffer }>(
        'SELECT packed FROM packed_columns WHERE block = ? AND slot = ?',
        block,
        slot,
      )
      .toArray()
    return row?.packed
  }

  write(block: number, slot: number, packed: ArrayBuffer): void {
    this.sql.exec(
      'INSERT OR REPLACE INTO packed_columns (block, slot, packed) VALUES (?, ?, ?)',
      block,
      slot,
      packed,
    )
  }

  /** @returns the slots that were packed */
  remove(block: number): number[] {
    return columnOf<number>(this.sql, 'DELETE FROM packed_columns WHERE block = ? RETURNING slot', block)
  }

  removeAll(): void {
    this.sql.exec('DELETE FROM packed_columns')
  }
}

/** Bytes of the head: the type of the values, and the bytes of each part. */
const HEAD = 4 * Uint32Array.BYTES_PER_ELEMENT
/** PLACES have as many longitudes behind their latitudes. */
const [TEXT, NUMBERS, WIDE_TEXT, BIG, PLACES] = [100, 101, 102, 103, 104]
/** Bytes of a row: SQLite takes 2 MB. */
const MOST_BYTES = 1_900_000

function typed({ values, longitudes }: Block): [type: number, values: ArrayBufferView] {
  if (longitudes !== undefined) {
    const both = new Float64Array(2 * values.length)
    both.set(values as Float64Array)
    both.set(longitudes, values.length)
    return [PLACES, both]
  }
  if (values instanceof Float64Array) return [NUMBERS, values]
  if (values instanceof BigInt64Array) return [BIG, values]
  return [values instanceof Uint16Array ? TEXT : WIDE_TEXT, values]
}

/** @returns undefined for a block that is too large for a row */
export function packed(block: Block): ArrayBuffer | undefined {
  const { starts, words } = block
  const [type, all] = typed(block)
  const texts = new TextEncoder().encode(words ? JSON.stringify(words.texts) : '')
  const parts = [starts ?? new Uint32Array(0), all, texts]
  const head = new Uint32Array(HEAD / Uint32Array.BYTES_PER_ELEMENT)
  head.set([type, ...parts.map(({ byteLength }) => byteLength)])
  // Every part begins where its type needs it: the head and the starts have multiples of 4 bytes, the values of 8 at most.
  const padding = (HEAD + parts[0]!.byteLength) % Float64Array.BYTES_PER_ELEMENT
  const size = HEAD + padding + parts.reduce((sum, { byteLength }) => sum + byteLength, 0)
  if (size > MOST_BYTES) return undefined
  const bytes = new Uint8Array(size)
  bytes.set(new Uint8Array(head.buffer))
  let at = HEAD
  for (const [number, { buffer, byteOffset, byteLength }] of parts.entries()) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at)
    at += byteLength + (number === 0 ? padding : 0)
  }
  return bytes.buffer
}

/** @param forms of its strings, if it has some */
export function unpacked(bytes: ArrayBuffer, forms: Forms): Block {
  const [type, startBytes, valueBytes, textBytes] = new Uint32Array(bytes, 0, 4)
  const padding = (HEAD + startBytes!) % Float64Array.BYTES_PER_ELEMENT
  const from = HEAD + startBytes! + padding
  const starts = startBytes === 0 ? undefined : new Uint32Array(bytes, HEAD, startBytes! / 4)
  if (type === TEXT || type === WIDE_TEXT) {
    const texts = readColumn<string | number>(
      new TextDecoder().decode(new Uint8Array(bytes, from + valueBytes!, textBytes)),
    )
    const values =
      type === TEXT
        ? new Uint16Array(bytes, from, valueBytes! / 2)
        : new Uint32Array(bytes, from, valueBytes! / 4)
    return { values, starts, words: new Words(texts, forms) }
  }
  if (type === BIG) return { values: new BigInt64Array(bytes, from, valueBytes! / 8), starts }
  const values = new Float64Array(bytes, from, valueBytes! / 8)
  if (type === NUMBERS) return { values, starts }
  const half = values.length / 2
  return { values: values.subarray(0, half), starts, longitudes: values.subarray(half) }
}
