/** How the rest of the program reaches a collection's Durable Object. */
import { objectCalls } from '../../object-calls'
import { COLLECTION_CALLS, type CollectionRpc } from './rpc'

/** A handle on a Collection object. Makes no call. */
export function collectionObject(env: Cloudflare.Env, objectId: string): CollectionRpc {
  const namespace = env.COLLECTION as DurableObjectNamespace
  const id = namespace.idFromName(objectId)
  return objectCalls(() => namespace.get(id) as unknown as CollectionRpc, COLLECTION_CALLS)
}
