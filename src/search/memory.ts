/**
 * What the collections of an isolate keep in memory and can read again from storage, under one budget. The platform may run
 * several objects of a class in one isolate of 128 MB. What was used longest ago goes first, whoever keeps it.
 */
import { changesOf } from './changes'
import { MAX_KEPT_BYTES } from './limits'

/**
 * An entry in the order of use. It does not hold its keeper: the values of an object that is gone are left to the garbage
 * collector.
 */
interface Entry {
  keeper: WeakRef<Pick<Kept<unknown, unknown>, 'forget'>>
  key: unknown
  bytes: number
  older: Entry
  newer: Entry
}

export class Memory {
  readonly #most: number
  #bytes = 0
  /** `newer` is the oldest entry, `older` the newest one */
  readonly #ends: Entry

  /** @param most bytes of all that is kept */
  constructor(most: number) {
    this.#most = most
    const ends: Partial<Entry> = { keeper: new WeakRef({ forget() {} }), bytes: 0 }
    this.#ends = Object.assign(ends, { older: ends, newer: ends }) as Entry
  }

  /** Bytes of all that is kept. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds an entry, as the one that was used last. Others may have to go. @returns undefined if it is too large */
  add({ keeper, key, bytes }: Pick<Entry, 'keeper' | 'key' | 'bytes'>): Entry | undefined {
    if (bytes > this.#most) return undefined
    const entry = { keeper, key, bytes } as Entry
    this.#link(entry)
    this.#bytes += bytes
    while (this.#bytes > this.#most) {
      const oldest = this.#ends.newer
      this.remove(oldest)
      oldest.keeper.deref()?.forget(oldest.key)
    }
    return entry
  }

  use(entry: Entry): void {
    if (entry.newer === this.#ends) return
    unlink(entry)
    this.#link(entry)
  }

  remove(entry: Entry): void {
    unlink(entry)
    this.#bytes -= entry.bytes
  }

  #link(entry: Entry): void {
    const ends = this.#ends
    entry.newer = ends
    entry.older = ends.older
    ends.older.newer = entry
    ends.older = entry
  }
}

function unlink({ older, newer }: Entry): void {
  older.newer = newer
  newer.older = older
}

/** of this isolate */
const shared = new Memory(MAX_KEPT_BYTES)

/** A map whose entries may go at any time. */
export class Kept<Key, Value> {
  readonly #memory: Memory
  readonly #self = new WeakRef(this)
  readonly #values = new Map<Key, { value: Value; entry: Entry }>()

  constructor(memory = shared) {
    this.#memory = memory
  }

  get(key: Key): Value | undefined {
    const found = this.#values.get(key)
    if (found !== undefined) this.#memory.use(found.entry)
    return found?.value
  }

  has(key: Key): boolean {
    return this.#values.has(key)
  }

  /** @param bytes that the value takes */
  set(key: Key, value: Value, bytes: number): void {
    this.delete(key)
    const entry = this.#memory.add({ keeper: this.#self, key, bytes })
    if (entry !== undefined) this.#values.set(key, { value, entry })
  }

  /** The memory has dropped an entry. */
  forget(key: Key): void {
    this.#values.delete(key)
  }

  delete(key: Key): void {
    const found = this.#values.get(key)
    if (found === undefined) return
    this.#memory.remove(found.entry)
    this.#values.delete(key)
  }

  clear(): void {
    for (const { entry } of this.#values.values()) this.#memory.remove(entry)
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
