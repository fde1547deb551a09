/**
 * From a collection's name, or an alias of it, to the object that holds it.
 *
 * Answers are cached in the isolate for a few seconds; an unknown name never is, so that what was just
 * created is found.
 */
import type { CollectionRpc } from './rpc'

/** A handle on a Collection object. Makes no call. */
export function collectionObject(env: Cloudflare.Env, objectId: string): CollectionRpc {
  const namespace = env.COLLECTION as DurableObjectNamespace
  return namespace.get(namespace.idFromName(objectId)) as unknown as CollectionRpc
}
