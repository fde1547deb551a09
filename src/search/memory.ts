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
