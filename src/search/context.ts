/** What a search needs of the collection it runs in. The Collection object makes one; tests can too. */
import type { EmbeddingModel } from '../models/embedding-model'
import type { StoredSchema } from './layout'
import type { Document, Field } from './types'
import type { VectorIndex } from './vector-index'

export interface SearchContext {
  sql: SqlStorage
  schema: StoredSchema
  /** how many documents the collection has */
  count(): number
  /** the index of a vector field */
  vectors(field: Field): VectorIndex
  /** the embedder of an auto-embedding field */
  embedder(field: Field): EmbeddingModel
  /** Documents by sequence number, vectors put back in unless `withoutVectors`. Missing ones are left out. */
  read(seqs: number[], withoutVectors?: boolean): Map<number, Document>
}
