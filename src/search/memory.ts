/**
 * What the collections of an isolate keep in memory and can read again from storage, under one budget. The platform may run
 * several objects of a class in one isolate of 128 MB. What was used longest ago goes first, whoever keeps it.
 */
import { changesOf } from './changes'
import { MAX_KEPT_BYTES } from './limits'

/** An entry. It does not hold its keeper: the values of an object that is gone are left to the garbage collector. */
interface Entry {
  keeper: WeakRef<Pick<Kept<unknown, unknown>, 'forget'>>
  key: unknown
  bytes: number
}

export class Memory {
  #bytes = 0
  /** in the order of use, the oldest first */
  readonly #entries = new Set<Entry>()

  /** @param most bytes of all that is kept */
  constructor(private readonly most: number) {}

  /** Bytes of all that is kept. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds an entry, as the one that was used last. Others may have to go. @returns whether it is not too large */
  add(entry: Entry): boolean {
    if (entry.bytes > this.most) return false
    this.#entries.add(entry)
    this.#bytes += entry.bytes
    for (const oldest of this.#entries) {
      if (this.#bytes <= this.most) break
      this.remove(oldest)
      oldest.keeper.deref()?.forget(oldest.key)
    }
    return true
  }

  use(entry: Entry): void {
    this.#entries.delete(entry)
    this.#entries.add(entry)
  }

  remove(entry: Entry): void {
    this.#entries.delete(entry)
    this.#bytes -= entry.bytes
  }
}

/** of this isolate */
const shared = new Memory(MAX_KEPT_BYTES)

/** A map whose entries may go at any time. */
export class Kept<Key, Value> {
  readonly #self = new WeakRef(this)
  readonly #values = new Map<Key, { value: Value; entry: Entry }>()

  constructor(private readonly memory = shared) {}

  get(key: Key): Value | undefined {
    const found = this.#values.get(key)
    if (found !== undefined) this.memory.use(found.entry)
    return found?.value
  }

  has(key: Key): boolean {
    return this.#values.has(key)
  }

  /** @param bytes that the value takes */
  set(key: Key, value: Value, bytes: number): void {
    this.delete(key)
    const entry = { keeper: this.#self, key, bytes }
    if (this.memory.add(entry)) this.#values.set(key, { value, entry })
  }

  /** The memory has dropped an entry. */
  forget(key: Key): void {
    this.#values.delete(key)
  }

  delete(key: Key): void {
    const found = this.#values.get(key)
    if (found === undefined) return
    this.memory.remove(found.entry)
    this.#values.delete(key)
  }

  clear(): void {
    for (const { entry } of this.#values.values()) this.memory.remove(entry)
    this.#values.clear()
  }
}

/** Entries about the documents of a collection: a write forgets them all. */
export class KeptUntilWrite<Key, Value> {
  readonly #kept: Kept<Key, Value>
  #changes = -1

  constructor(memory?: Memory) {
    this.#kept = new Kept(memory)
  }

  /** The entries that hold for what is stored now. */
  in(sql: SqlStorage): Kept<Key, Value> {
    const changes = changesOf(sql)
    if (changes !== this.#changes) this.#kept.clear()
    this.#changes = changes
    return this.#kept
  }
}

/** Bytes of an entry of `KeptBlocks` besides its value, roughly. */
const BLOCK_BYTES = 120

/** What is kept under one key: values by block, each with the writes that had been made before it was read. */
interface Group<Value> {
  bytes: number
  readonly blocks: Map<number, { value: Value; bytes: number; since: number }>
}

/**
 * What is known of blocks of documents, such as their values and matches. A write makes wrong what is known of its block. All
 * blocks of a key go together.
 */
export class KeptBlocks<Key, Value> {
  readonly #groups: Kept<Key, Group<Value>>
  /** by block: the number of the last write */
  readonly #written = new Map<number, number>()
  /** the number of the last write of all documents */
  #cleared = 0
  /** how many writes there were */
  writes = 0

  constructor(memory?: Memory) {
    this.#groups = new Kept(memory)
  }

  get(key: Key, number: number): Value | undefined {
    const known = this.#groups.get(key)?.blocks.get(number)
    return known !== undefined && this.#isTrue(number, known.since) ? known.value : undefined
  }

  #isTrue(number: number, since: number): boolean {
    return since >= (this.#written.get(number) ?? this.#cleared)
  }

  /** @param since `writes` before the value was read. It is not kept if a write has made it wrong since */
  set(key: Key, number: number, value: Value, bytes: number, since = this.writes): void {
    if (!this.#isTrue(number, since)) return
    const group = this.#groups.get(key) ?? { bytes: 0, blocks: new Map() }
    const all = bytes + BLOCK_BYTES
    group.bytes += all - (group.blocks.get(number)?.bytes ?? 0)
    group.blocks.set(number, { value, bytes: all, since })
    this.#groups.set(key, group, group.bytes)
  }

  /** A document of a block was written. */
  forget(number: number): void {
    this.#written.set(number, ++this.writes)
  }

  /** Forgets everything. A search under way does not keep what it has read before. */
  clear(): void {
    this.#cleared = ++this.writes
    this.#written.clear()
    this.#groups.clear()
  }
}
