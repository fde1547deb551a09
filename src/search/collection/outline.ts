/**
 * Which fields of a collection can be searched, for requests that do not name any. Cached in the isolate for a few
 * seconds: that saves a question a call, and delays new fields by as much.
 */
import { unwrap } from '../../errors'
import { isVector } from '../schema/layout'
import type { CollectionSchema } from '../types'
import { collectionObject, findCollection } from './catalog'

/** Names of a collection's fields. Unlike the schema, it contains no credentials. */
export interface Outline {
  name: string
  /** indexed fields of text */
  texts: string[]
  /** indexed fields with an embedder */
  embeddings: string[]
  /** those with built-in hash vectors, which match words and not meaning */
  hashed: string[]
  /** all vector fields, whoever makes the vectors */
  vectors: string[]
  indexed: string[]
}

const REMEMBERED_MS = 3_000
const MOST_REMEMBERED = 1_000

/** Keyed by object id, since another collection of the same name is another object. */
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

/**
 * The default query_by: one embedding field, if there is any, and all text. A search takes only one embedding field.
 */
export const searchableFields = ({ embeddings, texts }: Outline): string[] => [
  ...embeddings.slice(0, 1),
  ...texts,
]
