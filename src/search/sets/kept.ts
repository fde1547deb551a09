/**
 * Named sets as searches read them from D1: synonym sets, curation sets, stemming dictionaries. A collection that names
 * none never asks.
 */
import type { Database } from '../../db/client'
import { type Entries, entriesOf, findNewer, type Stamp } from '../../db/resource-entries'
import { RowCache } from '../../db/row-cache'
import { type Curation, curationOf } from './curation'
import { type Synonym, synonymOf } from './synonym'

export const SYNONYM_SET = 'synonym_set'
export const CURATION_SET = 'curation_set'
export const STEMMING_DICTIONARY = 'stemming_dictionary'

/** How long a set is cached, in milliseconds. Another isolate searches with a changed one that much later. */
const CACHE_MS = 3_000

type Stamped<Value> = Stamp & { value: Value }

/** Sets of a kind, each read again only when it has changed. */
export class KeptSets<Value> {
  readonly #rows: RowCache<Stamped<Value>>
  /** the last known state, beyond the time of the cache */
  readonly #known = new Map<string, Stamped<Value>>()
  readonly #kind: string
  readonly #read: (entries: Entries) => Value

  constructor(what: string, kind: string, read: (entries: Entries) => Value) {
    this.#rows = new RowCache(what, CACHE_MS)
    this.#kind = kind
    this.#read = read
  }

  /** The set of this name, the same object as long as it does not change. */
  async find(db: Database, name: string): Promise<Value | undefined> {
    const found = await this.#rows.find(name, async () => {
      const known = this.#known.get(name)
      const row = await findNewer(db, this.#kind, name, known)
      if (row === undefined) {
        this.#known.delete(name)
        return undefined
      }
      if (row.body === undefined) return known
      const { version, createdAt } = row
      const stamped = { version, createdAt, value: this.#read(entriesOf(row.body)) }
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

export const synonymSets = new KeptSets<readonly Synonym[]>('a synonym set', SYNONYM_SET, (entries) =>
  [...entries.values()].map((entry) => synonymOf(JSON.parse(entry))),
)

/** In the order of their ids, as Typesense tries them. */
export const curationSets = new KeptSets<readonly Curation[]>('a curation set', CURATION_SET, (entries) =>
  [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => curationOf(JSON.parse(entry))),
)

/** From a word to its root. */
export const stemmingDictionaries = new KeptSets<ReadonlyMap<string, string>>(
  'a stemming dictionary',
  STEMMING_DICTIONARY,
  (entries) => entries,
)
