/** Named sets as searches read them from D1. A collection that names none never asks. */
import { type Database, RowCache } from '../db/client'
import { type Entries, entriesOf, findNewer, type Stamp } from '../db/resources'

/** How long a set is cached, in milliseconds. Another isolate searches with a changed one that much later. */
const CACHE_MS = 3_000

type Stamped<Value> = Stamp & { value: Value }

/** Sets of a kind, each read again only when it has changed. */
export class KeptSets<Value> {
  readonly #rows: RowCache<Stamped<Value>>
  /** the last known state, beyond the time of the cache */
  readonly #known = new Map<string, Stamped<Value>>()

  constructor(
    what: string,
    private readonly kind: string,
    private readonly read: (entries: Entries) => Value,
  ) {
    this.#rows = new RowCache(what, CACHE_MS)
  }

  /** The set of this name, the same object as long as it does not change. */
  async find(db: Database, name: string): Promise<Value | undefined> {
    const found = await this.#rows.find(name, async () => {
      const known = this.#known.get(name)
      const row = await findNewer(db, this.kind, name, known)
      if (row === undefined) {
        this.#known.delete(name)
        return undefined
      }
      if (row.body === undefined) return known
      const { version, createdAt } = row
      const stamped = { version, createdAt, value: this.read(entriesOf(row.body)) }
      if (this.#known.size >= MOST_KNOWN) this.#known.clear()
      this.#known.set(name, stamped)
      return stamped
    })
    return found?.value
  }

  /** Has a set read anew: after it was written. */
  forget(name: string): void {
    this.#rows.forget(name)
  }
}

/** Sets that an isolate remembers. */
const MOST_KNOWN = 100
