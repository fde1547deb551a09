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
const BYTES_A_DOCUMENT = 160
const BYTES_A_FIELD = 120
/** Documents of more characters are not cached. */
const LONGEST = 20_000

const LATIN = /^[\0-\xff]*$/

const budget = new MemoryBudget(MOST_BYTES)

/** The texts of a field. */
export interface FieldTexts {
  analyzer: Analyzer
  name: string
  /** the words of each text with blanks between */
  texts: readonly string[]
}

/** The texts of one document. */
export interface Texts {
  /** characters of the stored document */
  length: number
  fields: readonly FieldTexts[]
}

interface Kept extends Texts {
  bytes: number
}

/** The texts of one collection. */
export class RecentTexts {
  // Two generations take less time than an order of all documents: when the young ones fill half of the memory, they
  // become the old ones, and those that were not used again are forgotten.
  #young = new Map<number, Kept>()
  #old = new Map<number, Kept>()
  #youngBytes = 0
  #oldBytes = 0
  #changes = -1

  /** Call this before a search reads texts: they are forgotten after any write. */
  begin(sql: SqlStorage): void {
    const changes = changesOf(sql)
    if (changes !== this.#changes) this.evict()
    this.#changes = changes
  }

  find(seq: number): Texts | undefined {
    const young = this.#young.get(seq)
    if (young !== undefined) return young
    const old = this.#old.get(seq)
    if (old !== undefined) this.#put(seq, old)
    return old
  }

  /** Call `end` after the last of some texts. */
  keep(seq: number, texts: Texts): void {
    if (texts.length <= LONGEST) this.#put(seq, { ...texts, bytes: bytesOf(texts) })
  }

  #put(seq: number, kept: Kept): void {
    this.#youngBytes += kept.bytes - (this.#young.get(seq)?.bytes ?? 0)
    this.#young.set(seq, kept)
    if (this.#youngBytes <= MOST_BYTES / 2) return
    this.#old = this.#young
    this.#oldBytes = this.#youngBytes
    this.#young = new Map()
    this.#youngBytes = 0
  }

  /** Tells the other collections of the isolate how much memory this one takes now. */
  end(): void {
    budget.use(this, this.#youngBytes + this.#oldBytes)
  }

  /** Frees the memory. */
  evict(): void {
    this.#young = new Map()
    this.#old = new Map()
    this.#youngBytes = 0
    this.#oldBytes = 0
  }
}

function bytesOf({ fields }: Texts): number {
  let bytes = BYTES_A_DOCUMENT
  for (const { texts } of fields) {
    bytes += BYTES_A_FIELD
    for (const text of texts) bytes += LATIN.test(text) ? text.length : 2 * text.length
  }
  return bytes
}
