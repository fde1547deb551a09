/** What a search runs with: its collection, other collections, and the replies that are kept. */
import type { EmbeddingModel } from '../../models/embedding-model'
import type { Reranker } from '../../models/reranker'
import type { PassageReader } from '../../models/static-embedder/reader'
import { changesOf } from '../changes'
import { CUTOFF_MS } from '../limits'
import { KeptUntilWrite, type Memory } from '../memory'
import type { ColumnMemory } from '../schema/column-memory'
import type { StoredSchema } from '../schema/layout'
import type { Curation } from '../sets/curation'
import type { Synonym } from '../sets/synonym'
import type { Document, Field } from '../types'
import type { VectorIndex } from '../vectors/vector-index'
import type { EmbeddedAhead } from './embedded-ahead'
import type { JoinPort, Joins } from './joins'
import { type LongSearches, Pace } from './pace'

// =============================================================================
// Caches whole replies of searches that ask for it (`use_cache`), until something is written that they depend on.

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
    const isSame = kept.on.length === on.length && kept.on.every((each, at) => each === on[at])
    if (age < 1_000 * Math.min(kept.seconds, seconds) && isSame) return kept.text
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

// =============================================================================
// What a search needs of its collection. The Collection object provides it, and so can tests.

export interface SearchContext {
  sql: SqlStorage
  schema: StoredSchema
  /** @throws ApiError 404 when the collection has been deleted */
  requireOpen(): void
  /** how to reach other collections; absent in an object without a name */
  port?: JoinPort
  /** the joins of this search */
  joins?: Joins
  /** cached replies; without it nothing is cached */
  replies?: KeptReplies
  /** how many documents the collection has */
  count(): number
  /** values of its fields in memory */
  columns: ColumnMemory
  /** the index of a vector field */
  vectors(field: Field): VectorIndex
  /** the model of an embedding field */
  embedder(field: Field): EmbeddingModel
  /** The reader of passages, which needs no vectors; absent: searches by words alone read nothing. @throws ApiError 503 */
  reader?(): Promise<PassageReader>
  /** questions that were embedded before their search came; without it nothing is kept */
  ahead?: EmbeddedAhead
  /** A reranking model by name; undefined if this deployment cannot serve it. @throws ApiError 400 */
  reranker(name: string): Reranker | undefined
  /** a synonym set by name, undefined for none */
  synonymSet(name: string): Promise<readonly Synonym[] | undefined>
  /** a curation set by name, in the order in which its items are tried */
  curationSet(name: string): Promise<readonly Curation[] | undefined>
  /** a stemming dictionary by name: from words to their roots */
  stemmingDictionary(name: string): Promise<ReadonlyMap<string, string> | undefined>
  /** Documents by sequence number, with their vectors unless `withoutVectors`. Missing ones are left out. */
  read(seqs: number[], withoutVectors?: boolean): Map<number, Document>
}

/** The same for a search that runs, at its pace. */
export interface Running extends SearchContext {
  pace: Pace
}

/** The schema and the joins stay those of the search that runs, whatever becomes of them meanwhile. */
export const runningAt = (context: SearchContext, pace: Pace): Running =>
  Object.create(context, { pace: { value: pace } })

/** Runs work at a pace of its own, before the search that needs it. */
export type Pacing = <Result>(work: (running: Running) => Promise<Result>) => Promise<Result>

export const pacing =
  (context: SearchContext, others: LongSearches, caller?: AbortSignal): Pacing =>
  async (work) => {
    const pace = new Pace(others, CUTOFF_MS, () => context.requireOpen(), caller)
    try {
      return await work(runningAt(context, pace))
    } finally {
      pace.end()
    }
  }
