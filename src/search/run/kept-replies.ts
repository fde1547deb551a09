/** Caches whole replies of searches that ask for it (`use_cache`), until something is written that they depend on. */
import { changesOf } from '../changes'
import { KeptUntilWrite, type Memory } from '../memory'

/** Characters of a reply; bytes of a character. */
const LONGEST = 1 << 20
const CHARACTER_BYTES = 2

interface Reply {
  /** JSON: short lists and small objects take many times the bytes of their text */
  text: string
  /** the schema, and the synonyms, curations and dictionaries, which stay the same objects until they change */
  on: readonly unknown[]
  /** when it was kept, in unix milliseconds */
  at: number
  seconds: number
}

/** The replies of a collection. */
export class KeptReplies {
  readonly #kept: KeptUntilWrite<string, Reply>

  constructor(memory?: Memory) {
    this.#kept = new KeptUntilWrite(memory)
  }

  /**
   * @param on what the reply depends on besides the documents
   * @param seconds how old it may be; it is never older than those allowed for whom it was made
   * @returns the reply's JSON text
   */
  find(sql: SqlStorage, key: string, on: readonly unknown[], seconds: number): string | undefined {
    const all = this.#kept.in(sql)
    const kept = all.get(key)
    if (kept === undefined) return undefined
    const age = Date.now() - kept.at
    if (age < 1_000 * Math.min(kept.seconds, seconds) && isSame(kept.on, on)) return kept.text
    all.delete(key)
    return undefined
  }

  /**
   * Keeps a reply, unless something was written since its search began.
   * @param changes what `changesOf` returned then
   */
  keep(sql: SqlStorage, key: string, changes: number, reply: Omit<Reply, 'at'>): void {
    if (changesOf(sql) !== changes || reply.text.length > LONGEST) return
    const bytes = CHARACTER_BYTES * (key.length + reply.text.length)
    this.#kept.in(sql).set(key, { ...reply, at: Date.now() }, bytes)
  }
}

const isSame = (some: readonly unknown[], others: readonly unknown[]): boolean =>
  some.length === others.length && some.every((each, at) => each === others[at])
