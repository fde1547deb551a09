/** Caches rows of D1 in the isolate's memory, so that a turn waits for no query. All caches share one policy. */
import { reasonOf } from '../errors'

/** Entries of one cache. A full cache is emptied. */
const MOST_CACHED = 1_000

/**
 * A cache of D1's rows by key.
 *
 * - An entry is used for `ms`. Another isolate sees a change that much later.
 * - An unknown key is never cached, so a new row is found at once.
 * - While D1 does not answer, an old entry is used further: it is better than none, and seldom wrong. Budgets turn this off.
 * - Code that writes a row must forget its key after the write. Before the write, a reader could cache the old row again.
 */
export class RowCache<Row> {
  readonly #entries = new Map<string, { row: Row; until: number }>()
  readonly #what: string
  readonly #ms: number
  readonly #outlives: boolean

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
   * @throws what `read` throws where nothing is remembered of the key
   */
  async find(key: string, read: () => Promise<Row | undefined>): Promise<Row | undefined> {
    const known = this.#entries.get(key)
    if (known && known.until > Date.now()) return known.row
    let row: Row | undefined
    try {
      row = await read()
    } catch (error) {
      if (!known || !this.#outlives) throw error
      console.error(`${this.#what} could not be read anew`, reasonOf(error))
      return known.row
    }
    this.#entries.delete(key)
    if (row !== undefined) {
      if (this.#entries.size >= MOST_CACHED) this.#entries.clear()
      this.#entries.set(key, { row, until: Date.now() + this.#ms })
    }
    return row
  }

  forget(key: string): void {
    this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }
}
