/** The collection that a route names. */
import { ApiError } from '../../errors'
import { collectionObject, findCollection } from '../../search/catalog'
import type { CollectionRpc } from '../../search/rpc'

/** @throws ApiError 404 when neither a collection nor an alias has that name */
export async function openCollection(env: Cloudflare.Env, name: string): Promise<CollectionRpc> {
  const found = await findCollection(env, name)
  if (!found) throw new ApiError(404, 'Collection not found')
  return collectionObject(env, found.objectId)
}
