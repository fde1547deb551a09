/**
 * Caches the texts of recently ranked documents, in the form of the index. A user who types a query matches the same
 * documents with each letter, and a common word finds the same ones again.
 *
 * All collections of an isolate share 8 MiB. The collection that was searched longest ago is evicted first; within a
 * collection, the documents that were read longest ago.
 */
import { changesOf } from '../changes'
import { MemoryBudget } from '../memory-budget'
import type { Analyzer } from '../text/analyzer'

const MOST_BYTES = 8 << 20
const BYTES_A_CHARACTER = 2
const BYTES_A_DOCUMENT = 200
/** Longer documents are not cached. */
const LONGEST = 20_000

const budget = new MemoryBudget(MOST_BYTES)

/** The texts of one document. */
export interface Texts {
  /** characters of the stored document */
  length: number
  /** by analyzer and field: the words of each text with blanks between */
  fields: Map<Analyzer, Map<string, string[]>>
}

/** The texts of one collection. */
export class RecentTexts {
  /** by sequence number, the longest unused first */
  readonly #known = new Map<number, Texts>()
  #bytes = 0
  #changes = -1

  /** Call this before a search reads texts: they are forgotten after any write. */
  begin(sql: SqlStorage): void {
    const changes = changesOf(sql)
    if (changes !== this.#changes) this.evict()
    this.#changes = changes
    budget.use(this, this.#bytes)
  }

  find(seq: number): Texts | undefined {
    const texts = this.#known.get(seq)
    if (texts === undefined) return undefined
    this.#known.delete(seq)
    this.#known.set(seq, texts)
    return texts
  }

  keep(seq: number, texts: Texts): void {
    if (texts.length > LONGEST || this.#known.has(seq)) return
    this.#known.set(seq, texts)
    this.#bytes += bytesOf(texts)
    for (const [oldest, others] of this.#known) {
      if (this.#bytes <= MOST_BYTES) break
      this.#known.delete(oldest)
      this.#bytes -= bytesOf(others)
    }
    budget.use(this, this.#bytes)
  }

  /** Frees the memory. */
  evict(): void {
    this.#known.clear()
    this.#bytes = 0
  }
}

const bytesOf = ({ length }: Texts): number => BYTES_A_DOCUMENT + BYTES_A_CHARACTER * length
