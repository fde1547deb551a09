/** Caches whole replies of searches that ask for it (`use_cache`), until something is written that they depend on. */
import { changesOf } from '../changes'
import { type Holder, MemoryBudget } from '../memory-budget'

/** Bytes of all replies of an isolate; characters of a reply; bytes of a character. */
const MOST_BYTES = 8 << 20
const LONGEST = 1 << 20
const CHARACTER_BYTES = 2

const budget = new MemoryBudget(MOST_BYTES)

interface Kept {
  /** JSON: short lists and small objects take many times the bytes of their text */
  text: string
  /** the schema, and the synonyms, curations and dictionaries, which stay the same objects until they change */
  on: readonly unknown[]
  /** when it was kept, in unix milliseconds */
  at: number
  seconds: number
  bytes: number
}

/** The replies of a collection. */
export class KeptReplies implements Holder {
  /** the one that was asked for longest ago is first */
  readonly #kept = new Map<string, Kept>()
  #changes = -1
  #bytes = 0

  /** Frees the memory. */
  evict(): void {
    this.#kept.clear()
    this.#bytes = 0
  }

  /**
   * @param on what the reply depends on besides the documents
   * @param seconds how old it may be; it is never older than those allowed for whom it was made
   * @returns the reply's JSON text
   */
  find(sql: SqlStorage, key: string, on: readonly unknown[], seconds: number): string | undefined {
    this.#forgetStale(changesOf(sql))
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    this.#drop(key, kept)
    const age = Date.now() - kept.at
    if (age >= 1_000 * Math.min(kept.seconds, seconds) || !isSame(kept.on, on)) return undefined
    this.#keep(key, kept)
    return kept.text
  }

  /**
   * Keeps a reply, unless something was written since its search began.
   * @param changes what `changesOf` returned then
   */
  keep(
    sql: SqlStorage,
    key: string,
    changes: number,
    { text, on, seconds }: Pick<Kept, 'text' | 'on' | 'seconds'>,
  ): void {
    if (changesOf(sql) !== changes || text.length > LONGEST) return
    this.#forgetStale(changes)
    const before = this.#kept.get(key)
    if (before !== undefined) this.#drop(key, before)
    const bytes = CHARACTER_BYTES * (key.length + text.length)
    this.#keep(key, { text, on, at: Date.now(), seconds, bytes })
    for (const [oldest, kept] of this.#kept) if (this.#bytes > MOST_BYTES) this.#drop(oldest, kept)
    budget.use(this, this.#bytes)
  }

  #forgetStale(changes: number): void {
    if (changes !== this.#changes) this.evict()
    this.#changes = changes
  }

  #drop(key: string, { bytes }: Kept): void {
    this.#kept.delete(key)
    this.#bytes -= bytes
  }

  #keep(key: string, kept: Kept): void {
    this.#kept.set(key, kept)
    this.#bytes += kept.bytes
  }
}

const isSame = (some: readonly unknown[], others: readonly unknown[]): boolean =>
  some.length === others.length && some.every((each, at) => each === others[at])
