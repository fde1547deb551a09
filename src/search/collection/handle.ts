/** How the rest of the program reaches a collection's Durable Object. */
import type { CountingObject } from '../../durable/counting-object'
import { objectCalls, objectStubs } from '../../durable/objects'
import type { Collection } from './object'
import { COLLECTION_CALLS } from './rpc'

/** What a Collection object offers over RPC. */
export type CollectionRpc = Omit<Collection, keyof CountingObject>

/** A handle on a Collection object. Makes no call. */
export function collectionObject(env: Cloudflare.Env, objectId: string): CollectionRpc {
  const namespace = env.COLLECTION as DurableObjectNamespace
  return objectCalls(objectStubs<CollectionRpc>(namespace, env, objectId), COLLECTION_CALLS)
}
