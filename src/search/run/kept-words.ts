/** Caches the places of words of a collection's index of words, until something is written. */
import { type Holder, MemoryBudget } from '../memory-budget'
import type { Range } from '../range'
import { TermMemory } from '../text/term-memory'
import type { Places } from '../text/word-pages'

/** Bytes that all collections of an isolate keep together. */
const MOST_BYTES = 8 << 20
const BYTES_A_WORD = 300
const budget = new MemoryBudget(MOST_BYTES)

/** `whole`: no longer word begins with it; `unread`: left to FTS5 */
type Kept = Places | 'whole' | 'unread'

/** The words of a collection's index. */
export class WordMemory implements Holder {
  readonly #words = new Map<string, Kept>()
  /**
   * By column, or for all columns together: how many words documents have and one more, by their distance from the first
   * document; 0 if that is not known
   */
  readonly lengths = new Map<number | undefined, Uint32Array>()
  readonly terms = new TermMemory()
  totals: { documents: number; words: number } | undefined
  /** the first and the last document */
  ends: Range | undefined
  #changes = -1
  #bytes = 0

  /**
   * Call this before a search: words are forgotten after any write.
   * @param changes what `changesOf` returns now
   */
  begin(changes: number): void {
    if (changes !== this.#changes) this.evict()
    this.#changes = changes
    this.#use()
  }

  has(key: string): boolean {
    return this.#words.has(key)
  }

  find(key: string): Kept | undefined {
    const kept = this.#words.get(key)
    if (kept === undefined) return undefined
    this.#words.delete(key)
    this.#words.set(key, kept)
    return kept
  }

  keep(key: string, kept: Kept): void {
    this.#drop(key)
    this.#words.set(key, kept)
    this.#bytes += bytesOf(kept)
    for (const oldest of this.#words.keys()) {
      if (this.#bytes <= MOST_BYTES) break
      this.#drop(oldest)
    }
    this.#use()
  }

  #use(): void {
    let bytes = this.#bytes
    for (const { byteLength } of this.lengths.values()) bytes += byteLength
    budget.use(this, bytes)
  }

  #drop(key: string): void {
    const kept = this.#words.get(key)
    if (kept !== undefined) this.#bytes -= bytesOf(kept)
    this.#words.delete(key)
  }

  evict(): void {
    this.#words.clear()
    this.lengths.clear()
    this.totals = undefined
    this.ends = undefined
    this.#bytes = 0
    budget.release(this)
  }
}

const bytesOf = (kept: Kept): number =>
  BYTES_A_WORD + (typeof kept === 'string' ? 0 : 4 * (2 * kept.seqs.length + kept.places.length))
