/** Finds the object of a collection by name or alias. */
import { database } from '../db/client'
import { findCollectionRow } from '../db/collections'
import { RowCache } from '../db/row-cache'
import { collectionMissing } from '../errors'
import type { CollectionPlace } from '../search/types'

export interface CollectionHandle extends CollectionPlace {
  /** the collection's own name, also when an alias was given */
  name: string
}

/**
 * How long a name is cached, in milliseconds. If a collection is dropped and created again under its name, another
 * isolate may answer 404 for this long.
 */
const CACHE_MS = 3_000

const names = new RowCache<CollectionHandle>('a collection', CACHE_MS)

/** The collection of a name or alias, if there is one. */
export const lookUp = (env: Cloudflare.Env, name: string): Promise<CollectionHandle | undefined> =>
  names.find(name, async () => {
    const row = await findCollectionRow(database(env), name)
    return row && { name: row.name, engine: row.engine, objectId: row.objectId }
  })

/** @throws ApiError 404 `Collection not found` */
export async function findCollection(env: Cloudflare.Env, name: string): Promise<CollectionHandle> {
  const handle = await lookUp(env, name)
  if (handle === undefined) throw collectionMissing(name)
  return handle
}

/** Has a name looked up anew: after what it stands for was changed. */
export const forgetName = (name: string): void => names.forget(name)

/** The same for all names: aliases may have stood for a collection that is gone. */
export const forgetNames = (): void => names.clear()
