/** From a collection's name, or an alias of it, to the object that holds it. */
import { database } from '../db/client'
import { findCollectionRow } from '../db/collections'
import { RowCache } from '../db/row-cache'
import { ApiError } from '../errors'

export interface CollectionHandle {
  /** the collection's own name, where an alias was asked for */
  name: string
  objectId: string
}

/**
 * How long a name is taken to mean the same, in milliseconds. Another isolate may answer 404 for as long when a collection
 * was dropped and made again under its name.
 */
const CACHE_MS = 3_000

const names = new RowCache<CollectionHandle>('a collection', CACHE_MS)

/** The collection of a name or alias, if there is one. */
export const lookUp = (env: Cloudflare.Env, name: string): Promise<CollectionHandle | undefined> =>
  names.find(name, async () => {
    const row = await findCollectionRow(database(env), name)
    return row && { name: row.name, objectId: row.objectId }
  })

/** @throws ApiError 404 `Collection not found` */
export async function findCollection(env: Cloudflare.Env, name: string): Promise<CollectionHandle> {
  const handle = await lookUp(env, name)
  if (handle === undefined) throw new ApiError(404, 'Collection not found')
  return handle
}

/** Has a name looked up anew: after what it stands for was changed. */
export const forgetName = (name: string): void => names.forget(name)

/** The same for all names: aliases may have stood for a collection that is gone. */
export const forgetNames = (): void => names.clear()
