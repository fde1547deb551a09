/**
 * Caches typed values in memory, for filters, facets, groups and orders, which look at every match of a search.
 * SQLite takes up to a microsecond for a value, this cache some nanoseconds.
 *
 * Values are kept in blocks of 4,096 sequence numbers, read when a search first needs them: from packed rows if there are any
 * (column.ts). A write forgets the block of its document, and a rollback everything. A string is a number of its
 * block's dictionary, 2 bytes a document; numbers and booleans take 8 bytes. Where memory is short, blocks are read and not kept.
 */
import { fragment, type Read, readAll } from '../fragment'
import { MAX_COLUMN_BYTES } from '../limits'
import { Kept, type Memory } from '../memory'
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

// =============================================================================
// Caches the matches of full-text expressions in memory, so that a repeated search and its further pages need not
// find them again. SQLite takes a third of a microsecond for a match, this cache next to nothing.
//
// Matches are kept in blocks, as values are (column-memory.ts), and a write forgets the block of its document. A
// block takes 2 bytes a match, or one bit a document if that is less. The expression that was used longest ago is
// dropped first.

/** Bytes of a block besides its matches, roughly. */
const BLOCK_BYTES = 120
const BITMAP_BYTES = BLOCK / 8

/** The matches of a block. */
export interface Packed {
  /** the writes that had been made when the block was read */
  writes: number
  size: number
  bytes: Uint8Array
  isBitmap: boolean
}

export function packedOffsets(offsets: Offsets, writes: number): Packed {
  const size = offsets.length
  if (offsets.byteLength <= BITMAP_BYTES) {
    return { writes, size, bytes: new Uint8Array(offsets.slice().buffer), isBitmap: false }
  }
  const bytes = new Uint8Array(BITMAP_BYTES)
  for (const at of offsets) bytes[at >> 3]! |= 1 << (at & 7)
  return { writes, size, bytes, isBitmap: true }
}

function offsetsOf(bits: Uint8Array, size: number): Uint16Array<ArrayBuffer> {
  const offsets = new Uint16Array(size)
  let count = 0
  // 32 bits at a time: workerd runs on little-endian machines alone.
  for (const [index, some] of new Uint32Array(bits.buffer).entries()) {
    for (let left = some; left !== 0; left &= left - 1) {
      offsets[count++] = index * 32 + 31 - Math.clz32(left & -left)
    }
  }
  return offsets
}

export const unpacked = ({ size, bytes, isBitmap }: Packed): Offsets =>
  isBitmap ? offsetsOf(bytes, size) : new Uint16Array(bytes.buffer)

/** The cached matches of one expression. */
export class KeptMatches {
  readonly #memory: MatchMemory
  readonly #blocks = new Map<number, Packed>()
  bytes = 0
  /** whether the memory has forgotten it, so that its bytes do not count */
  isDropped = false

  constructor(memory: MatchMemory) {
    this.#memory = memory
  }

  /** A block; undefined if its matches are not known. */
  block(number: number): Packed | undefined {
    const block = this.#blocks.get(number)
    return block !== undefined && block.writes >= this.#memory.lastWrite(number) ? block : undefined
  }

  /** @param writes the `writes` of the memory before the block was read */
  keep(number: number, offsets: Offsets, writes: number): Packed {
    const block = packedOffsets(offsets, writes)
    const before = this.#blocks.get(number)
    const freed = before === undefined ? 0 : BLOCK_BYTES + before.bytes.byteLength
    const more = BLOCK_BYTES + block.bytes.byteLength - freed
    this.#blocks.set(number, block)
    this.bytes += more
    if (!this.isDropped) this.#memory.bytes += more
    return block
  }
}

/** The cached matches of a collection's recent expressions. */
export class MatchMemory {
  /** the one asked for longest ago is first */
  readonly #kept = new Map<string, KeptMatches>()
  /** by block: the number of the last write */
  readonly #written = new Map<number, number>()
  /** how many writes there were */
  writes = 0
  /** of all kept expressions */
  bytes = 0

  /** @param limit bytes */
  constructor(readonly limit: number) {}

  /** @param key identifies the expression */
  find(key: string): KeptMatches | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    return kept
  }

  open(key: string): KeptMatches {
    const kept = this.find(key) ?? new KeptMatches(this)
    this.#kept.set(key, kept)
    return kept
  }

  /** Call this when matches were added. */
  makeRoom(limit = this.limit): void {
    for (const [key, kept] of this.#kept) {
      if (this.bytes <= limit) return
      this.bytes -= kept.bytes
      kept.isDropped = true
      this.#kept.delete(key)
    }
  }

  lastWrite = (number: number): number => this.#written.get(number) ?? 0

  /** Call this when a document of a block was written: the cached matches of the block become invalid. */
  forget(number: number): void {
    this.#written.set(number, ++this.writes)
  }

  /** A collection is also cleared when it is emptied, so a search that is under way must not go on with what it has. */
  clear(): void {
    this.writes += 1
    this.makeRoom(-1)
  }
}
