/** How the rest of the program reaches a collection's Durable Object. */
import { objectCalls, objectStubs } from '../../durable/objects'
import { COLLECTION_CALLS, type CollectionRpc } from './rpc'

/** A handle on a Collection object. Makes no call. */
export function collectionObject(env: Cloudflare.Env, objectId: string): CollectionRpc {
  const namespace = env.COLLECTION as DurableObjectNamespace
  return objectCalls(objectStubs<CollectionRpc>(namespace, env, objectId), COLLECTION_CALLS)
}
