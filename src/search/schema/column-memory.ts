/**
 * Caches typed values in memory, for filters, facets, groups and orders, which look at every match of a search.
 * SQLite takes up to a microsecond for a value, this cache some nanoseconds.
 *
 * Values are kept in blocks of 4,096 sequence numbers, read when a search first needs them. A write forgets the block
 * of its document, so nothing here is ever written back, and a rollback does no harm. Strings are numbers of a
 * dictionary, 2 bytes a document; numbers and booleans take 8 bytes.
 *
 * Some fields cannot be kept: those with too many different strings, with long strings or lists, and those with numbers
 * that a double would round or that are infinite. Then SQL reads them, as it does whenever memory is short.
 */

import { readColumn } from '../../stored-json'
import type { SqlFragment } from '../fragment'
import { fragment } from '../fragment'
import { MAX_COLUMN_BYTES } from '../limits'
import { MemoryBudget } from '../memory-budget'
import { rulesOf } from '../text/rules'
import { normalForm } from '../text/words'
import type { Field } from '../types'
import { BLOCK, type Offsets } from './block'
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
import { MatchMemory } from './match-memory'

/** Different strings of a field: an id has 16 bits, and 0 stands for no value. */
const MOST_WORDS = 65_535
/** Characters of a field's different strings. */
const MOST_CHARACTERS = 2_000_000
/** Bytes of a block's values as JSON: it is read as one JSON value, and SQLite takes 2 MB. */
const MOST_BLOCK_BYTES = 1_000_000

export { BLOCK, type Offsets }

/** Matches take up to one part in this many of the memory. */
const MATCHES_PART = 3
/** A block of strings of this many bytes always fits: JSON writes up to six characters for a byte. */
const SHORT_BYTES = 64
/** Bytes of an offset as JSON, with its comma. */
const OFFSET_BYTES = 5
/** Bytes in memory of each distinct string besides its characters, and of a character in both of its forms. */
const [WORD_BYTES, CHARACTER_BYTES] = [150, 4]

/** Runs a query, and counts what it reads. */
export type Read = <Row extends object>(sql: SqlStorage, query: SqlFragment) => Row[]

/** A field's values in a block. */
export interface Block {
  /** by offset: ids of strings with 0 for none, or numbers with NaN for none. Of a list, one value after the other */
  values: Uint16Array | Float64Array
  /** of a list: where each document's values begin, and where the last one's end */
  starts: Uint16Array | Uint32Array | undefined
}

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

  /** The normal form of a string (text/words.ts). */
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

const bytesOf = ({ values, starts }: Block): number => values.byteLength + (starts?.byteLength ?? 0)

/** Whether a field has values that can be kept. */
export const isKept = (field: Field): boolean =>
  hasValues(field) && (isString(field) || isNumber(field) || isBool(field))

/** What tells whether the rows of a block are without a gap. */
const SPAN = 'count(*) AS count, min(seq) AS first, max(seq) AS last'
interface Span {
  count: number
  first: number | null
  last: number | null
}

/** The offsets of a block in which no document is missing. */
let whole: Offsets | undefined

/** The offsets of the rows that a table has in a block. They are listed only if there are gaps. */
function offsetsIn(
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

/** of this isolate */
const values = new MemoryBudget(MAX_COLUMN_BYTES)

/** The values of one collection. */
export class ColumnMemory {
  readonly #columns = new Map<number, Column>()
  /** slots of fields that cannot be kept */
  readonly #refused = new Set<number>()
  readonly #present = new Map<number, Offsets>()
  #presentTable: string | undefined
  #clock = 0
  /** cached matches of expressions */
  readonly matches: MatchMemory

  /** @param budget that all collections share */
  constructor(
    readonly limit = MAX_COLUMN_BYTES,
    readonly budget = values,
  ) {
    this.matches = new MatchMemory(limit / MATCHES_PART)
  }

  /** Call this when matches were added. */
  keptMatches(): void {
    this.matches.makeRoom(Math.min(this.matches.limit, this.limit - (this.bytes - this.matches.bytes)))
    this.budget.use(this, this.bytes)
  }

  /** Drops the block of a document. */
  forget(seq: number): void {
    const number = Math.floor(seq / BLOCK)
    this.matches.forget(number)
    this.#present.delete(number)
    for (const column of this.#columns.values()) this.#drop(column, number)
  }

  /** Forgets everything: the schema has changed, or there are no more documents. */
  clear(): void {
    this.evict()
    this.budget.release(this)
    this.#refused.clear()
    this.#presentTable = undefined
  }

  /** Frees the memory. Searches read again what they need. */
  evict(): void {
    // Empty the columns too: a search may still hold one.
    for (const column of this.#columns.values()) column.blocks.clear()
    this.#columns.clear()
    this.#present.clear()
    this.matches.clear()
  }

  #drop(column: Column, number: number): void {
    const block = column.blocks.get(number)
    if (block === undefined) return
    column.isStale = true
    column.blocks.delete(number)
    column.bytes -= bytesOf(block)
  }

  /** Bytes that are in use. */
  get bytes(): number {
    let bytes = this.#present.size * BLOCK * Uint16Array.BYTES_PER_ELEMENT + this.matches.bytes
    for (const column of this.#columns.values()) bytes += column.bytes
    return bytes
  }

  /**
   * The columns of fields, for a search that needs all of them together.
   * @param count documents of the collection
   * @returns undefined if they cannot be kept, or would not fit
   */
  columns(schema: StoredSchema, fields: readonly Field[], count: number): Column[] | undefined {
    let needed = 0
    for (const field of fields) {
      const slot = schema.slots[field.name]
      if (slot === undefined || !isKept(field) || this.#refused.has(slot.slot)) return undefined
      needed += count * (isString(field) ? 2 : 8)
    }
    if (needed > this.limit) return undefined
    this.#clock++
    this.budget.use(this, this.bytes)
    return fields.map((field) => {
      const { slot } = schema.slots[field.name]!
      const column = this.#columns.get(slot) ?? new Column(field, schema)
      column.used = this.#clock
      this.#columns.set(slot, column)
      return column
    })
  }

  /** Whether a block is in memory. */
  has = (column: Column, number: number): boolean => column.blocks.has(number)

  /** The block of a column. @throws NotKept */
  block(sql: SqlStorage, column: Column, number: number, read: Read): Block {
    const known = column.blocks.get(number)
    if (known !== undefined) return known
    const { slot } = column.schema.slots[column.field.name]!
    let block: Block
    try {
      block = column.read(sql, number, read)
    } catch (error) {
      if (!(error instanceof NotKept)) throw error
      this.#columns.delete(slot)
      // If it is stale it may fit later, without the strings of former values.
      if (!column.isStale) this.#refused.add(slot)
      throw error
    }
    // Do not add to a column that was dropped while a search still uses it.
    if (this.#columns.get(slot) !== column) return block
    column.blocks.set(number, block)
    column.bytes += bytesOf(block)
    this.#makeRoom(column, number)
    this.budget.use(this, this.bytes)
    return block
  }

  /**
   * Drops the columns that no search has used for longest. Columns of the same search stay. If they do not all fit,
   * their blocks are read without being cached.
   */
  #makeRoom(column: Column, number: number): void {
    // Values have priority over matches.
    this.matches.makeRoom(Math.max(0, this.limit - (this.bytes - this.matches.bytes)))
    while (this.bytes > this.limit) {
      const [oldest] = [...this.#columns]
        .filter(([, { used }]) => used !== column.used)
        .sort(([, a], [, b]) => a.used - b.used)
      if (oldest === undefined) {
        this.#drop(column, number)
        return
      }
      const [slot, dropped] = oldest
      this.#columns.delete(slot)
      // A search may still hold it.
      dropped.blocks.clear()
    }
  }

  /**
   * The documents of a block.
   * @param count documents of the collection
   */
  present(sql: SqlStorage, schema: StoredSchema, count: number, number: number, read: Read): Offsets {
    const known = this.#present.get(number)
    if (known !== undefined) return known
    const low = number * BLOCK
    this.#presentTable ??= smallestTable(sql, schema, count)
    const [span] = read<Span>(
      sql,
      fragment(
        `SELECT ${SPAN} FROM ${this.#presentTable} NOT INDEXED WHERE seq BETWEEN ? AND ?`,
        low,
        low + BLOCK - 1,
      ),
    )
    const offsets = offsetsIn(sql, this.#presentTable, low, span!, read)
    this.#present.set(number, offsets)
    return offsets
  }
}

/**
 * The smallest table with a row for every document. Listing `documents` would read all their text. While a field is
 * being added, its table may lack some documents.
 */
function smallestTable(sql: SqlStorage, schema: StoredSchema, count: number): string {
  const field = schema.fields.find(
    (each) => hasValues(each) && !isArray(each) && schema.slots[each.name] !== undefined,
  )
  if (field === undefined) return 'documents'
  const table = columnsTable(schema.slots[field.name]!)
  const { rows } = sql.exec<{ rows: number }>(`SELECT count(*) AS rows FROM ${table}`).one()
  return rows === count ? table : 'documents'
}
