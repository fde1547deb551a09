/** Which fields of a collection can be searched, for requests that do not name any. */
import { isVector } from '../schema/layout'
import type { CollectionSchema } from '../types'

/** Names of a collection's fields. Unlike the schema, it contains no credentials. */
export interface Outline {
  name: string
  /** indexed fields of text */
  texts: string[]
  /** indexed fields with an embedder */
  embeddings: string[]
  /** all vector fields, with or without an embedder */
  vectors: string[]
  indexed: string[]
}

export function outlineOf({ name, fields }: Pick<CollectionSchema, 'name' | 'fields'>): Outline {
  const indexed = fields.filter((field) => field.index)
  const namesOf = (some: typeof fields) => some.map((field) => field.name)
  return {
    name,
    texts: namesOf(indexed.filter(({ type }) => type === 'string' || type === 'string[]')),
    embeddings: namesOf(indexed.filter(({ embed }) => embed)),
    vectors: namesOf(fields.filter(isVector)),
    indexed: namesOf(indexed),
  }
}

/**
 * The default query_by: one embedding field, if there is any, and all text. A search takes only one embedding field.
 */
export const searchableFields = ({ embeddings, texts }: Outline): string[] => [
  ...embeddings.slice(0, 1),
  ...texts,
]
