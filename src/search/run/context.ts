/** What a search needs of its collection. The Collection object provides it, and so can tests. */
import type { EmbeddingModel } from '../../models/embedding-model'
import type { Reranker } from '../../models/reranker'
import type { PassageReader } from '../../models/static-embedder/reader'
import type { ColumnMemory } from '../schema/column-memory'
import type { StoredSchema } from '../schema/layout'
import type { Curation } from '../sets/curation'
import type { Synonym } from '../sets/synonym'
import type { Document, Field } from '../types'
import type { VectorIndex } from '../vectors/vector-index'
import type { EmbeddedAhead } from './embedded-ahead'
import type { JoinPort, SearchJoins } from './join-port'
import type { KeptReplies } from './kept-replies'

export interface SearchContext {
  sql: SqlStorage
  schema: StoredSchema
  /** @throws ApiError 404 when the collection has been deleted */
  requireOpen(): void
  /** how to reach other collections; absent in an object without a name */
  port?: JoinPort
  /** the joins of this search */
  joins?: SearchJoins
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
