/**
 * Caches typed values in memory, for filters, facets, groups and orders, which look at every match of a search.
 * SQLite takes up to a microsecond for a value, this cache some nanoseconds.
 *
 * Values are kept in blocks of 4,096 sequence numbers, read when a search first needs them: from packed rows if there are any
 * (packed-columns.ts). A write forgets the block of its document, and a rollback everything. A string is a number of its
 * block's dictionary, 2 bytes a document; numbers and booleans take 8 bytes. Where memory is short, blocks are read and not kept.
 */

import { fragment, type Read, readAll } from '../fragment'
import { MAX_COLUMN_BYTES } from '../limits'
import { Kept, type Memory } from '../memory'
import type { Field } from '../types'
import { BLOCK, type Block, type Offsets } from './block'
import { Column, offsetsIn, SPAN, type Span } from './column'
import { columnsTable, hasValues, isArray, type StoredSchema } from './layout'
import { MatchMemory } from './match-memory'
import { type PackedColumns, PRESENT, packed } from './packed-columns'

/** In a collection of fewer documents, reading their rows takes less than packing them. */
const FEWEST_PACKED = 256

/** Matches take up to one part in this many of the memory. */
const MATCHES_PART = 3

const bytesOf = ({ values, starts, words, longitudes }: Block): number =>
  values.byteLength + (starts?.byteLength ?? 0) + (words?.bytes ?? 0) + (longitudes?.byteLength ?? 0)

/** Bytes of a form besides its characters. */
const BYTES_A_FORM = 64

/** So few documents of a block are read alone. */
const FEW = 64

/** The values of one collection. */
export class ColumnMemory {
  readonly #columns = new Map<number, Column>()
  readonly #present = new Map<number, Offsets>()
  #presentTable: string | undefined
  #clock = 0
  /** by block: slots that a search had to read from rows of documents */
  readonly #unpacked = new Map<number, Set<number>>()
  /** blocks with a write, and the slots that were packed */
  readonly #written = new Set<number>()
  readonly #wanted = new Set<number>()
  /** cached matches of expressions */
  readonly matches: MatchMemory
  readonly #kept: Kept<'all', true>
  /** by block and slot: the forms of a field's values, as `:=` compares them */
  readonly #forms: Kept<number, Map<number, ReadonlySet<string>>>

  /**
   * @param limit of this collection, in bytes
   * @param stored absent: nothing is packed
   */
  constructor(
    readonly limit = MAX_COLUMN_BYTES,
    memory?: Memory,
    readonly stored?: PackedColumns,
  ) {
    this.#kept = new Kept(memory, () => this.evict())
    this.#forms = new Kept(memory)
    this.matches = new MatchMemory(limit / MATCHES_PART)
  }

  /** Tells the isolate's memory what this collection takes. It may be too much. */
  #use(): void {
    this.#kept.set('all', true, this.bytes)
    if (!this.#kept.has('all')) this.evict()
  }

  /** Call this when matches were added. */
  keptMatches(): void {
    this.matches.makeRoom(Math.min(this.matches.limit, this.limit - (this.bytes - this.matches.bytes)))
    this.#use()
  }

  /** Drops the blocks of documents. Belongs in the transaction that writes them. */
  forget(seqs: readonly number[]): void {
    for (const number of new Set(seqs.map((seq) => Math.floor(seq / BLOCK)))) {
      for (const slot of this.stored?.remove(number) ?? []) this.#wanted.add(slot)
      this.#unpacked.delete(number)
      this.#written.add(number)
      this.matches.forget(number)
      this.#present.delete(number)
      this.#forms.delete(number)
      for (const column of this.#columns.values()) this.#drop(column, number)
    }
  }

  /** Forgets everything: the schema has changed, or there are no more documents. */
  clear(): void {
    this.evict()
    this.#kept.clear()
    this.#presentTable = undefined
    for (const kept of [this.#unpacked, this.#written, this.#wanted]) kept.clear()
  }

  /** Forgets everything, and removes what is packed: there are no more documents. */
  removeAll(): void {
    this.clear()
    this.stored?.removeAll()
  }

  /** Frees the memory. Searches read again what they need. */
  evict(): void {
    // Empty the columns too: a search may still hold one.
    for (const column of this.#columns.values()) column.blocks.clear()
    this.#columns.clear()
    this.#present.clear()
    this.#forms.clear()
    this.matches.clear()
  }

  #drop(column: Column, number: number): void {
    const block = column.blocks.get(number)
    if (block === undefined) return
    column.blocks.delete(number)
    column.bytes -= bytesOf(block)
  }

  /** Bytes that are in use. */
  get bytes(): number {
    let bytes = this.#present.size * BLOCK * Uint16Array.BYTES_PER_ELEMENT + this.matches.bytes
    for (const column of this.#columns.values()) bytes += column.bytes
    return bytes
  }

  /** The columns of fields with values, for a search that needs all of them together. */
  columns(schema: StoredSchema, fields: readonly Field[]): Column[] {
    this.#clock++
    this.#use()
    return fields.map((field) => {
      const { slot } = schema.slots[field.name]!
      const column = this.#columns.get(slot) ?? new Column(field, schema)
      column.used = this.#clock
      this.#columns.set(slot, column)
      return column
    })
  }

  /**
   * The block of a column.
   * @param wanted the documents whose values are needed, if not all are
   */
  block(sql: SqlStorage, column: Column, number: number, read: Read, wanted?: Offsets): Block {
    const known = column.blocks.get(number)
    if (known !== undefined) return known
    const { slot } = column.schema.slots[column.field.name]!
    const stored = this.stored?.read(number, slot)
    if (stored === undefined && wanted !== undefined && wanted.length <= FEW) {
      return column.read(
        sql,
        number,
        read,
        Array.from(wanted, (at) => number * BLOCK + at),
      )
    }
    const block = stored === undefined ? column.read(sql, number, read) : column.unpacked(sql, number, stored)
    if (stored === undefined) this.#leave(number, slot)
    // Do not add to a column that was dropped while a search still uses it.
    if (this.#columns.get(slot) !== column) return block
    column.blocks.set(number, block)
    column.bytes += bytesOf(block)
    this.#makeRoom(column, number)
    this.#use()
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

  formsOf(number: number, slot: number): ReadonlySet<string> | undefined {
    return this.#forms.get(number)?.get(slot)
  }

  /** @param forms of the values that a field has in a block, which nothing has changed since */
  keepForms(number: number, slot: number, forms: ReadonlySet<string>): void {
    const bySlot = this.#forms.get(number) ?? new Map()
    bySlot.set(slot, forms)
    let bytes = 0
    for (const set of bySlot.values()) for (const form of set) bytes += BYTES_A_FORM + 2 * form.length
    this.#forms.set(number, bySlot, bytes)
  }

  /** Leaves a block to be packed. */
  #leave(number: number, slot: number): void {
    if (this.stored === undefined) return
    this.#wanted.add(slot)
    const slots = this.#unpacked.get(number) ?? new Set()
    this.#unpacked.set(number, slots.add(slot))
  }

  /** Leaves all blocks with a write to be packed, as far as they were. */
  leaveWritten(): void {
    for (const number of this.#written) for (const slot of this.#wanted) this.#leave(number, slot)
    this.#written.clear()
  }

  /** Whether there are blocks to be packed. */
  get hasUnpacked(): boolean {
    return this.#unpacked.size > 0
  }

  /**
   * Packs the values of a field in one block, or the documents that it has.
   * @param count documents of the collection; with fewer than `fewest`, nothing is packed
   * @returns whether there is more to do
   */
  pack(sql: SqlStorage, schema: StoredSchema, count: number, fewest = FEWEST_PACKED): boolean {
    const [next] = this.#unpacked
    if (next === undefined || this.stored === undefined) return false
    const [number, slots] = next
    const [slot] = slots
    if (slot === undefined || count < fewest) this.#unpacked.delete(number)
    else {
      const bytes = this.#packed(sql, schema, count, number, slot)
      if (bytes !== undefined) this.stored.write(number, slot, bytes)
      slots.delete(slot)
    }
    return this.hasUnpacked
  }

  /** Reads the rows again: what is in memory may be of another transaction. */
  #packed(
    sql: SqlStorage,
    schema: StoredSchema,
    count: number,
    number: number,
    slot: number,
  ): ArrayBuffer | undefined {
    if (slot === PRESENT) return this.#readPresent(sql, schema, count, number, readAll).slice().buffer
    const [name] = Object.entries(schema.slots).find(([, each]) => each.slot === slot) ?? []
    const field = schema.fields.find((each) => each.name === name)
    if (field === undefined) return undefined
    return packed(new Column(field, schema).read(sql, number, readAll))
  }

  /**
   * The documents of a block.
   * @param count documents of the collection
   */
  present(sql: SqlStorage, schema: StoredSchema, count: number, number: number, read: Read): Offsets {
    const known = this.#present.get(number)
    if (known !== undefined) return known
    const stored = this.stored?.read(number, PRESENT)
    if (stored === undefined) this.#leave(number, PRESENT)
    const offsets =
      stored === undefined ? this.#readPresent(sql, schema, count, number, read) : new Uint16Array(stored)
    this.#present.set(number, offsets)
    return offsets
  }

  #readPresent(sql: SqlStorage, schema: StoredSchema, count: number, number: number, read: Read): Offsets {
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
    return offsetsIn(sql, this.#presentTable, low, span!, read)
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
