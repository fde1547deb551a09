/**
 * The values of one field in memory (column-memory.ts), and how a block of them is read from the index.
 *
 * SQLite gathers short values of a block into one JSON value. Others are read row by row: its JSON drops the last digits
 * of fractions. Long strings are read when they are needed.
 */

import { readColumn } from '../../lib/stored-json'
import { fragment, type Read } from '../fragment'
import { normalForm } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { Field } from '../types'
import { BLOCK, type Block, type Forms, type Offsets, Words } from './block'
import {
  columnsTable,
  isArray,
  isGeopoint,
  isGeopolygon,
  isInt64,
  isString,
  normColumn,
  type StoredSchema,
  scalarColumn,
  valuesTable,
} from './layout'
import { unpacked } from './packed-columns'

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
  readonly blocks = new Map<number, Block>()
  bytes = 0
  /** when a search last used it */
  used = 0
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
      this.isList ? 'norm' : normColumn(this.schema.slots[field.name]!),
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

  /** A block from storage (packed-columns.ts). */
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
