/**
 * Caches the texts of recently ranked documents, in the form of the index. A user who types a query matches the same
 * documents with each letter, and a common word finds the same ones again.
 */
import { changesOf } from '../changes'
import { Kept, type Memory } from '../memory'
import type { Analyzer } from '../text/analyzer'

const BYTES_A_DOCUMENT = 160
const BYTES_A_FIELD = 120
/** Documents of more characters are not cached. */
const LONGEST = 20_000

const LATIN = /^[\0-\xff]*$/

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

/** The texts of one collection. */
export class RecentTexts {
  readonly #kept: Kept<number, Texts>
  #changes = -1

  constructor(memory?: Memory) {
    this.#kept = new Kept(memory)
  }

  /** Call this before a search reads texts: they are forgotten after any write. */
  begin(sql: SqlStorage): void {
    const changes = changesOf(sql)
    if (changes !== this.#changes) this.#kept.clear()
    this.#changes = changes
  }

  find(seq: number): Texts | undefined {
    return this.#kept.get(seq)
  }

  keep(seq: number, texts: Texts): void {
    if (texts.length <= LONGEST) this.#kept.set(seq, texts, bytesOf(texts))
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
