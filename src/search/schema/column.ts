/**
 * The values of one field in memory (column-memory.ts), and how a block of them is read from the index.
 *
 * SQLite gathers the values of a block into one JSON value. Fractions are read row by row instead, because its JSON
 * drops their last digits. NotKept is thrown for values that memory cannot hold.
 */

import { readColumn } from '../../stored-json'
import { fragment, type Read } from '../fragment'
import { normalForm } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { Field } from '../types'
import { BLOCK, type Block, type Offsets } from './block'
import {
  columnsTable,
  hasValues,
  isArray,
  isBool,
  isNumber,
  isString,
  type StoredSchema,
  scalarColumn,
  valuesTable,
} from './layout'
import { packed, unpacked } from './packed-columns'

/** Different strings of a field: an id has 16 bits, and 0 stands for no value. */
const MOST_WORDS = 65_535
/** Characters of a field's different strings. */
const MOST_CHARACTERS = 2_000_000
/** Bytes of a block's values as JSON: it is read as one JSON value, and SQLite takes 2 MB. */
const MOST_BLOCK_BYTES = 1_000_000

/** A block of strings of this many bytes always fits: JSON writes up to six characters for a byte. */
const SHORT_BYTES = 64
/** Bytes of an offset as JSON, with its comma. */
const OFFSET_BYTES = 5
/** Bytes in memory of each distinct string besides its characters, and of a character in both of its forms. */
const [WORD_BYTES, CHARACTER_BYTES] = [150, 4]

/** A field cannot be kept in memory: SQL has to read it. */
export class NotKept extends Error {}

/** The values of a field. */
export class Column {
  /** strings by id */
  readonly words: string[] = ['']
  readonly isText: boolean
  readonly isList: boolean
  readonly blocks = new Map<number, Block>()
  bytes = 0
  /** when a search last used it */
  used = 0
  /** a block was dropped, so some of the strings may belong to values that no longer exist */
  isStale = false
  readonly #ids = new Map<string, number>()
  readonly #norms: string[] = []
  #characters = 0

  constructor(
    readonly field: Field,
    readonly schema: StoredSchema,
  ) {
    this.isText = isString(field)
    this.isList = isArray(field)
  }

  /** The normal form of a string (text/compared.ts). */
  norm(id: number): string {
    const known = this.#norms[id]
    if (known !== undefined) return known
    const norm = normalForm(this.words[id]!, rulesOf(this.schema, this.field))
    this.#norms[id] = norm
    return norm
  }

  /** Reads a block. @throws NotKept */
  read(sql: SqlStorage, number: number, read: Read): Block {
    const slot = this.schema.slots[this.field.name]!
    const low = number * BLOCK
    const high = low + BLOCK - 1
    const [table, value] = this.isList
      ? [valuesTable(slot), 'value']
      : [columnsTable(slot), scalarColumn(slot)]
    const isExact = this.field.type.startsWith('float')
    if (!isExact && !this.isList) {
      // One scan reads values and offsets. Each pass over the rows takes about as long as this whole statement.
      const [short, long] = this.isText
        ? [
            `iif(octet_length(${value}) > ${SHORT_BYTES}, NULL, ${value})`,
            `octet_length(${value}) > ${SHORT_BYTES}`,
          ]
        : [value, 'NULL']
      const [row] = read<Span & { found: string; long: number }>(
        sql,
        fragment(
          `SELECT json_group_array(${short}) AS found, total(${long}) AS long, ${SPAN} FROM ${table} NOT INDEXED WHERE seq BETWEEN ? AND ?`,
          low,
          high,
        ),
      )
      if (row!.long === 0) {
        return this.#block(offsetsIn(sql, table, low, row!, read), readColumn<string | number>(row!.found))
      }
    }
    const rows = `SELECT seq - ? AS at, ${value} AS value FROM ${table} WHERE seq BETWEEN ? AND ? AND ${value} IS NOT NULL ORDER BY seq${this.isList ? ', pos' : ''}`
    const bindings = [low, low, high]
    if (this.isText || this.isList) this.#requireShort(sql, { table, value, low }, read)
    // SQLite's JSON drops the last digits of a fraction, so fractions are read one by one.
    if (isExact) {
      const found = read<{ at: number; value: number }>(sql, fragment(rows, ...bindings))
      return this.#block(
        found.map(({ at }) => at),
        found.map((row) => row.value),
      )
    }
    const [row] = read<{ ats: string; found: string }>(
      sql,
      fragment(
        `SELECT json_group_array(at) AS ats, json_group_array(value) AS found FROM (${rows})`,
        ...bindings,
      ),
    )
    return this.#block(readColumn<number>(row!.ats), readColumn<string | number>(row!.found))
  }

  /** @throws NotKept for a block with more than fits into one value */
  #requireShort(
    sql: SqlStorage,
    { table, value, low }: { table: string; value: string; low: number },
    read: Read,
  ): void {
    const [row] = read<{ bytes: number }>(
      sql,
      fragment(
        `SELECT total(max(octet_length(json_quote(${value})) + 1, ${OFFSET_BYTES})) AS bytes FROM ${table} WHERE seq BETWEEN ? AND ? AND ${value} IS NOT NULL`,
        low,
        low + BLOCK - 1,
      ),
    )
    if (row!.bytes > MOST_BLOCK_BYTES) throw new NotKept()
  }

  #block(ats: ArrayLike<number> & Iterable<number>, found: (string | number | null)[]): Block {
    const size = this.isList ? found.length : BLOCK
    const values = this.isText ? new Uint16Array(size) : new Float64Array(size).fill(Number.NaN)
    for (let index = 0; index < found.length; index++) {
      const value = found[index]
      if (value === null || value === undefined) continue
      values[this.isList ? index : ats[index]!] = typeof value === 'string' ? this.#idOf(value) : exact(value)
    }
    if (!this.isList) return { values, starts: undefined }
    const starts = new Uint32Array(BLOCK + 1)
    for (const at of ats) starts[at + 1]!++
    for (let at = 0; at < BLOCK; at++) starts[at + 1]! += starts[at]!
    return { values, starts }
  }

  /** A block for storage (packed-columns.ts). */
  packed(block: Block): ArrayBuffer {
    return packed(block, this.isText ? this.words : undefined)
  }

  /** @throws NotKept */
  unpacked(bytes: ArrayBuffer): Block {
    return unpacked(bytes, (word) => this.#idOf(word))
  }

  /** @throws NotKept */
  #idOf(word: string): number {
    const known = this.#ids.get(word)
    if (known !== undefined) return known
    this.#characters += word.length
    if (this.words.length > MOST_WORDS || this.#characters > MOST_CHARACTERS) throw new NotKept()
    const id = this.words.push(word) - 1
    this.#ids.set(word, id)
    this.bytes += WORD_BYTES + CHARACTER_BYTES * word.length
    return id
  }
}

/** @throws NotKept for a number that may have been rounded, and for an infinite one */
function exact(value: number): number {
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) throw new NotKept()
  return value
}

/** Whether a field has values that can be kept. */
export const isKept = (field: Field): boolean =>
  hasValues(field) && (isString(field) || isNumber(field) || isBool(field))

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
