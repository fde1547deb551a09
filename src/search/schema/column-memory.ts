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

import { fragment, type Read } from '../fragment'
import { MAX_COLUMN_BYTES } from '../limits'
import { MemoryBudget } from '../memory-budget'
import type { Field } from '../types'
import { BLOCK, type Offsets } from './block'
import { type Block, Column, isKept, NotKept, offsetsIn, SPAN, type Span } from './column'
import { columnsTable, hasValues, isArray, isString, type StoredSchema } from './layout'
import { MatchMemory } from './match-memory'

/** Matches take up to one part in this many of the memory. */
const MATCHES_PART = 3

const bytesOf = ({ values, starts }: Block): number => values.byteLength + (starts?.byteLength ?? 0)

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
    (each) =>
      hasValues(each) &&
      !isArray(each) &&
      !schema.filling?.includes(each.name) &&
      schema.slots[each.name] !== undefined,
  )
  if (field === undefined) return 'documents'
  const table = columnsTable(schema.slots[field.name]!)
  const { rows } = sql.exec<{ rows: number }>(`SELECT count(*) AS rows FROM ${table}`).one()
  return rows === count ? table : 'documents'
}
