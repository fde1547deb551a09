/** The collection that a route names. */

import { findCollection } from '../../registry/names'
import { collectionObject } from '../../search/collection/handle'
import type { CollectionRpc } from '../../search/collection/rpc'

/** @throws ApiError 404 when neither a collection nor an alias has that name */
export async function openCollection(env: Cloudflare.Env, name: string): Promise<CollectionRpc> {
  return collectionObject(env, (await findCollection(env, name)).objectId)
}
