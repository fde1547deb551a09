/** What a collection can be searched by, for requests that do not say. */
import { isVector } from '../schema/layout'
import type { CollectionSchema } from '../types'

/** Names of a collection's fields. No credentials of embedders, which a schema has in clear. */
export interface Outline {
  name: string
  /** indexed fields of text */
  texts: string[]
  /** indexed fields with an embedder */
  embeddings: string[]
  /** those of them whose vectors know words and no meaning */
  hashed: string[]
  /** all vectors, whoever makes them */
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
    hashed: namesOf(
      indexed.filter(({ embed }) => embed?.model_config.model_name.startsWith('local/hash') === true),
    ),
    vectors: namesOf(fields.filter(isVector)),
    indexed: namesOf(indexed),
  }
}

/** What a search looks through by itself: an embedding field, if there is one, and all text. It takes no second one. */
export const searchableFields = ({ embeddings, texts }: Outline): string[] => [
  ...embeddings.slice(0, 1),
  ...texts,
]
