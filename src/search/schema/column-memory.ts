/**
 * Caches typed values in memory, for filters, facets, groups and orders, which look at every match of a search.
 * SQLite takes up to a microsecond for a value, this cache some nanoseconds.
 *
 * Values are kept in blocks of 4,096 sequence numbers, read when a search first needs them: from packed rows if there are any
 * (column.ts). A write forgets the block of its document, and a rollback everything. A string is a number of its
 * block's dictionary, 2 bytes a document; numbers and booleans take 8 bytes. All of it may go at any time (memory.ts).
 */
import { fragment, type Read, readAll } from '../fragment'
import { KeptBlocks, type Memory } from '../memory'
import type { Field } from '../types'
import {
  BLOCK,
  type Block,
  Column,
  type Offsets,
  offsetsIn,
  type PackedColumns,
  PRESENT,
  packed,
  SPAN,
  type Span,
} from './column'
import { columnsTable, hasValues, isArray, type StoredSchema } from './layout'

/** In a collection of fewer documents, reading their rows takes less than packing them. */
const FEWEST_PACKED = 256

/** So few documents of a block are read alone. */
const FEW = 64

/** The values of a field in a block. @param wanted the documents whose values are needed, if not all are */
export type BlockOf = (field: Field, number: number, wanted?: Offsets) => Block

/** The values of one collection. */
export class ColumnMemory {
  /** by slot */
  readonly #blocks: KeptBlocks<number, Block>
  readonly #present: KeptBlocks<typeof PRESENT, Offsets>
  #presentTable: string | undefined
  /** by block: slots that a search had to read from rows of documents */
  readonly #unpacked = new Map<number, Set<number>>()
  /** blocks with a write, and the slots that were packed */
  readonly #written = new Set<number>()
  readonly #wanted = new Set<number>()
  /** Matches by expression: SQLite takes a third of a microsecond to find one. */
  readonly matches: KeptBlocks<string, Offsets>
  /** by slot: the forms of a field's values, as `:=` compares them */
  readonly forms: KeptBlocks<number, ReadonlySet<string>>

  /**
   * @param memory of the isolate
   * @param stored absent: nothing is packed
   */
  constructor(
    memory?: Memory,
    readonly stored?: PackedColumns,
  ) {
    this.#blocks = new KeptBlocks(memory)
    this.#present = new KeptBlocks(memory)
    this.forms = new KeptBlocks(memory)
    this.matches = new KeptBlocks(memory)
  }

  get #kept() {
    return [this.#blocks, this.#present, this.forms, this.matches]
  }

  /** Drops the blocks of documents. Belongs in the transaction that writes them. */
  forget(seqs: readonly number[]): void {
    for (const number of new Set(seqs.map((seq) => Math.floor(seq / BLOCK)))) {
      for (const slot of this.stored?.remove(number) ?? []) this.#wanted.add(slot)
      this.#unpacked.delete(number)
      this.#written.add(number)
      for (const kept of this.#kept) kept.forget(number)
    }
  }

  /** Forgets everything: the schema has changed, or there are no more documents. */
  clear(): void {
    this.evict()
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
    for (const kept of this.#kept) kept.clear()
  }

  /** Reads the blocks of fields with values. */
  blocks(sql: SqlStorage, schema: StoredSchema, read: Read): BlockOf {
    return (field, number, wanted) => {
      const { slot } = schema.slots[field.name]!
      return (
        this.#blocks.get(slot, number) ??
        this.#block(sql, new Column(field, schema), slot, number, read, wanted)
      )
    }
  }

  #block(sql: SqlStorage, column: Column, slot: number, number: number, read: Read, wanted?: Offsets): Block {
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
    const { values, starts, words, longitudes } = block
    const numbers = values.byteLength + (starts?.byteLength ?? 0) + (longitudes?.byteLength ?? 0)
    this.#blocks.set(slot, number, block, numbers + (words?.bytes ?? 0))
    return block
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
    const known = this.#present.get(PRESENT, number)
    if (known !== undefined) return known
    const stored = this.stored?.read(number, PRESENT)
    if (stored === undefined) this.#leave(number, PRESENT)
    const offsets =
      stored === undefined ? this.#readPresent(sql, schema, count, number, read) : new Uint16Array(stored)
    this.#present.set(PRESENT, number, offsets, offsets.byteLength)
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
