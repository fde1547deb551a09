/**
 * Caches typed values in memory, for filters, facets, groups and orders, which look at every match of a search.
 * SQLite takes up to a microsecond for a value, this cache some nanoseconds.
 *
 * Values are kept in blocks of 4,096 sequence numbers, read when a search first needs them: from packed rows if there are any
 * (column.ts). A write forgets the block of its document, and a rollback everything. A string is a number of its
 * block's dictionary, 2 bytes a document; numbers and booleans take 8 bytes. All of it may go at any time (memory.ts).
 */
import { fragment, type Read, readAll } from '../fragment'
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

const keyOf = (slot: number, number: number): string => `${slot} ${number}`

/** Bytes of a form besides its characters. */
const BYTES_A_FORM = 64

/** So few documents of a block are read alone. */
const FEW = 64

/** The values of one collection. */
export class ColumnMemory {
  readonly #columns = new Map<number, Column>()
  /** by slot and number */
  readonly #blocks: Kept<string, Block>
  readonly #present: Kept<number, Offsets>
  #presentTable: string | undefined
  /** by block: slots that a search had to read from rows of documents */
  readonly #unpacked = new Map<number, Set<number>>()
  /** blocks with a write, and the slots that were packed */
  readonly #written = new Set<number>()
  readonly #wanted = new Set<number>()
  /** cached matches of expressions */
  readonly matches: MatchMemory
  /** by block and slot: the forms of a field's values, as `:=` compares them */
  readonly #forms: Kept<number, Map<number, ReadonlySet<string>>>

  /**
   * @param memory of the isolate
   * @param stored absent: nothing is packed
   */
  constructor(
    memory?: Memory,
    readonly stored?: PackedColumns,
  ) {
    this.#blocks = new Kept(memory)
    this.#present = new Kept(memory)
    this.#forms = new Kept(memory)
    this.matches = new MatchMemory(memory)
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
      for (const slot of this.#columns.keys()) this.#blocks.delete(keyOf(slot, number))
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
    this.#columns.clear()
    for (const kept of [this.#blocks, this.#present, this.#forms, this.matches]) kept.clear()
  }

  /** The columns of fields with values. */
  columns(schema: StoredSchema, fields: readonly Field[]): Column[] {
    return fields.map((field) => {
      const { slot } = schema.slots[field.name]!
      const column = this.#columns.get(slot) ?? new Column(field, schema)
      this.#columns.set(slot, column)
      return column
    })
  }

  /**
   * The block of a column.
   * @param wanted the documents whose values are needed, if not all are
   */
  block(sql: SqlStorage, column: Column, number: number, read: Read, wanted?: Offsets): Block {
    const { slot } = column.schema.slots[column.field.name]!
    // Of a column that was dropped while a search still uses it, nothing is kept.
    const isKept = this.#columns.get(slot) === column
    const known = isKept ? this.#blocks.get(keyOf(slot, number)) : undefined
    if (known !== undefined) return known
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
    if (isKept) {
      const { values, starts, words, longitudes } = block
      const numbers = values.byteLength + (starts?.byteLength ?? 0) + (longitudes?.byteLength ?? 0)
      this.#blocks.set(keyOf(slot, number), block, numbers + (words?.bytes ?? 0))
    }
    return block
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
    this.#present.set(number, offsets, offsets.byteLength)
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
// Matches are kept in blocks, as values are, and a write forgets the block of its document. A block takes 2 bytes a match. The
// blocks of an expression go together.

/** Bytes of a block besides its matches, roughly. */
const BLOCK_BYTES = 120

/** The matches of a block. */
interface KeptBlock {
  /** the writes that had been made when the block was read */
  writes: number
  offsets: Offsets
}

/** The cached matches of one expression. */
export class KeptMatches {
  readonly #blocks = new Map<number, KeptBlock>()
  bytes = 0

  constructor(private readonly memory: MatchMemory) {}

  /** A block; undefined if its matches are not known. */
  block(number: number): KeptBlock | undefined {
    const block = this.#blocks.get(number)
    return block !== undefined && block.writes >= this.memory.lastWrite(number) ? block : undefined
  }

  /** Adds a block. `MatchMemory.keep` keeps it. @param block its `writes` are those of the memory before it was read */
  add(number: number, block: KeptBlock): void {
    const before = this.#blocks.get(number)
    this.bytes += block.offsets.byteLength - (before?.offsets.byteLength ?? -BLOCK_BYTES)
    this.#blocks.set(number, block)
  }
}

/** The cached matches of a collection's recent expressions. */
export class MatchMemory {
  /** by expression */
  readonly #kept: Kept<string, KeptMatches>
  /** by block: the number of the last write */
  readonly #written = new Map<number, number>()
  /** how many writes there were */
  writes = 0
  /** the number of the last write of all documents */
  #cleared = 0

  constructor(memory?: Memory) {
    this.#kept = new Kept(memory)
  }

  /** @param key identifies the expression */
  open(key: string): KeptMatches {
    return this.#kept.get(key) ?? new KeptMatches(this)
  }

  /** Call this when matches were added. */
  keep(key: string, matches: KeptMatches): void {
    this.#kept.set(key, matches, matches.bytes)
  }

  lastWrite = (number: number): number => this.#written.get(number) ?? this.#cleared

  /** Call this when a document of a block was written: the cached matches of the block become invalid. */
  forget(number: number): void {
    this.#written.set(number, ++this.writes)
  }

  /** Forgets all matches. A collection is also cleared when it is emptied, so a search under way must not go on with what it has. */
  clear(): void {
    this.#cleared = ++this.writes
    this.#written.clear()
    this.#kept.clear()
  }
}
