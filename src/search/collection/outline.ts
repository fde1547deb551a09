/**
 * What a collection can be searched by, for requests that do not say. Remembered in the isolate for a few seconds: a
 * question is then one hop away from its answer, and a field that was just added is searched that much later.
 */
import { unwrap } from '../../errors'
import { isVector } from '../schema/layout'
import type { CollectionSchema } from '../types'
import { collectionObject, findCollection } from './catalog'

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

const REMEMBERED_MS = 3_000
const MOST_REMEMBERED = 1_000

/** By the id of the collection's object: another collection of its name is another object. */
const remembered = new Map<string, { outline: Outline; until: number }>()

/** @throws ApiError 404 `Collection not found` */
export async function findOutline(env: Cloudflare.Env, collection: string): Promise<Outline> {
  const { objectId } = await findCollection(env, collection)
  const known = remembered.get(objectId)
  if (known && known.until > Date.now()) return known.outline
  const outline = outlineOf(unwrap(await collectionObject(env, objectId).schema()))
  if (remembered.size >= MOST_REMEMBERED) remembered.clear()
  remembered.set(objectId, { outline, until: Date.now() + REMEMBERED_MS })
  return outline
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
