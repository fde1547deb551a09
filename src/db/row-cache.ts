/** Caches rows of D1 in the isolate's memory, so that a turn waits for no query. All caches share one policy. */
import { reasonOf } from '../errors'

/** Entries of one cache. A full cache is emptied. */
const MOST_CACHED = 1_000

/** How long `held` uses an entry, in milliseconds. */
export const HELD_MS = 60_000

/** After this many milliseconds a renewal counts as lost: workerd cancels it if the request that began it ends. */
const RENEWAL_MS = 5_000

/** How often the log says that one entry cannot be read anew, in milliseconds: as often as a cluster at rest is asked again. */
const TOLD_MS = 60_000

interface Entry<Row> {
  row: Row
  /** when it was read, in unix milliseconds */
  read: number
  /** when its renewal began; 0: it has not */
  renewed: number
  /** when the log last said that a read of it failed, in unix milliseconds; 0: not since it was read */
  told: number
}

/**
 * A cache of D1's rows by key.
 *
 * - `find` uses an entry for `ms`. Another isolate sees a change that much later.
 * - `held` uses it for a minute. From `ms` on it reads the row again, while the caller goes on with the old one.
 * - An unknown key is never cached, so a new row is found at once.
 * - While D1 does not answer, expired entries are still used: they are seldom wrong. Budgets turn this off.
 * - Code that writes a row must forget its key after the write. If it did so before, a reader could cache the old row
 *   again. A read that was under way then is not cached.
 *
 * Callers never share a read: if the request that began it ends, workerd never settles its promise.
 */
export class RowCache<Row> {
  readonly #entries = new Map<string, Entry<Row>>()
  readonly #what: string
  readonly #ms: number
  readonly #outlives: boolean
  /** counts what was forgotten */
  #changes = 0

  /**
   * @param what names a row in the log: `a conversation model`
   * @param ms how long an entry is used
   * @param options.outlives false: an entry is not used beyond its time
   */
  constructor(what: string, ms: number, { outlives = true } = {}) {
    this.#what = what
    this.#ms = ms
    this.#outlives = outlives
  }

  /**
   * @param read asks D1
   * @throws what `read` throws, if the cache has no entry of the key
   */
  async find(key: string, read: () => Promise<Row | undefined>): Promise<Row | undefined> {
    const known = this.#entries.get(key)
    return known && this.isFresh(key) ? known.row : this.#read(key, read)
  }

  /**
   * For questions, which wait for as little as possible.
   * @param behind keeps a renewal alive beyond the request: `waitUntil`
   * @throws what `read` throws where nothing is remembered of the key
   */
  async held(
    key: string,
    read: () => Promise<Row | undefined>,
    behind: (renewal: Promise<unknown>) => void,
  ): Promise<Row | undefined> {
    const known = this.#entries.get(key)
    if (!known || !this.isHeld(key)) return this.find(key, read)
    const now = Date.now()
    if (!this.isFresh(key) && now >= known.renewed + RENEWAL_MS) {
      known.renewed = now
      behind(this.#read(key, read).catch(() => {}))
    }
    return known.row
  }

  async #read(key: string, read: () => Promise<Row | undefined>): Promise<Row | undefined> {
    const keep = this.reading()
    try {
      const row = await read()
      keep(key, row)
      return row
    } catch (error) {
      const known = this.#entries.get(key)
      if (!known || !this.#outlives) throw error
      // While the source is away, every caller comes here.
      const now = Date.now()
      if (now - known.told >= TOLD_MS) {
        known.told = now
        console.error(`${this.#what} could not be read anew`, reasonOf(error))
      }
      return known.row
    }
  }

  /**
   * Call this before rows are read, and the returned function with each row and its key. If any key was forgotten
   * meanwhile, nothing is cached, because a row may be the old one.
   */
  reading(): (key: string, row: Row | undefined) => void {
    const changes = this.#changes
    return (key, row) => {
      if (changes !== this.#changes) return
      this.#entries.delete(key)
      if (row === undefined) return
      if (this.#entries.size >= MOST_CACHED) this.#entries.clear()
      this.#entries.set(key, { row, read: Date.now(), renewed: 0, told: 0 })
    }
  }

  /** Whether `find` answers without a read. */
  isFresh(key: string): boolean {
    return this.#isYounger(key, this.#ms)
  }

  /** Whether `held` answers without waiting for a read. */
  isHeld(key: string): boolean {
    return this.#isYounger(key, HELD_MS)
  }

  #isYounger(key: string, ms: number): boolean {
    const known = this.#entries.get(key)
    return known !== undefined && Date.now() - known.read < ms
  }

  forget(key: string): void {
    this.#entries.delete(key)
    this.#changes += 1
  }

  clear(): void {
    this.#entries.clear()
    this.#changes += 1
  }
}
