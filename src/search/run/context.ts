/** What a search needs of the collection it runs in. The Collection object makes one; tests can too. */
import type { EmbeddingModel } from '../../models/embedding-model'
import type { Reranker } from '../../models/reranker'
import type { StoredSchema } from '../schema/layout'
import type { Document, Field } from '../types'
import type { VectorIndex } from '../vectors/vector-index'

export interface SearchContext {
  sql: SqlStorage
  schema: StoredSchema
  /** @throws ApiError 404 when the collection has been deleted */
  requireOpen(): void
  /** how many documents the collection has */
  count(): number
  /** the index of a vector field */
  vectors(field: Field): VectorIndex
  /** the embedder of an auto-embedding field */
  embedder(field: Field): EmbeddingModel
  /** A reranking model by its name; undefined where this deployment cannot serve it. @throws ApiError 400 */
  reranker(name: string): Reranker | undefined
  /** Documents by sequence number, vectors put back in unless `withoutVectors`. Missing ones are left out. */
  read(seqs: number[], withoutVectors?: boolean): Map<number, Document>
}
