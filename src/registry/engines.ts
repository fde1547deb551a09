/**
 * The ports to the engine of a collection. A conversation finds documents through a `Retriever` and stores messages in a
 * `HistoryStore`; routes of documents use a `DocumentStore`. The registry's row names the engine: `object` is the collection's own
 * Durable Object, the others are clusters (clusters.ts).
 */

import type { NodeHealth } from '../engines/cluster'
import { objectDocuments } from '../engines/object'
import type { DocumentStore } from '../engines/port'
import { ApiError } from '../errors'
import { collectionObject } from '../search/collection/handle'
import type { CollectionRpc } from '../search/collection/rpc'
import type { CollectionPlace } from '../search/types'
import { clusterStore, isCluster } from './clusters'

/** Finds documents for a turn. It needs the schema to keep vectors out of the prompt. */
export type Retriever = Pick<CollectionRpc, 'search' | 'abandon' | 'schema'>

/**
 * Stores the messages of conversations. A message need not come from a turn: callers can import messages, or write them through
 * the documents API.
 */
export type HistoryStore = Pick<
  CollectionRpc,
  | 'schema'
  | 'keepHistory'
  | 'messages'
  | 'recentMessages'
  | 'wholeTurns'
  | 'appendTurn'
  | 'importLines'
  | 'removeConversation'
  | 'remove'
  | 'expireMessages'
>

/** @throws ApiError 501 for an engine that this version does not know: a later version may have made the collection */
export function retrieverOf(env: Cloudflare.Env, { engine, objectId }: CollectionPlace): Retriever {
  if (engine === 'object') return collectionObject(env, objectId)
  if (isCluster(engine)) return clusterStore(env, engine, objectId)
  throw new ApiError(501, `This version of Parley cannot search collections of the engine \`${engine}\`.`)
}

/**
 * The documents of a collection, wherever they are.
 * @throws ApiError 501 as `retrieverOf`
 */
export function documentsOf(env: Cloudflare.Env, place: CollectionPlace): DocumentStore {
  const { engine, objectId } = place
  if (isCluster(engine)) return clusterStore(env, engine, objectId)
  return objectDocuments(ownObject(env, place))
}

/** The nodes of a collection's cluster, asked just now. A collection in Parley has none. */
export const nodesOf = async (
  env: Cloudflare.Env,
  { engine, objectId }: CollectionPlace,
): Promise<NodeHealth[]> => (isCluster(engine) ? clusterStore(env, engine, objectId).nodes() : [])

/**
 * The object of a collection, for what only Parley's own engine offers.
 * @throws ApiError 400 for a collection in a cluster, 501
 */
export function ownObject(env: Cloudflare.Env, { engine, objectId }: CollectionPlace): CollectionRpc {
  if (engine === 'object') return collectionObject(env, objectId)
  if (isCluster(engine)) {
    throw new ApiError(400, 'This is not available for a collection that lives in a cluster (`engine`).')
  }
  throw new ApiError(501, `This version of Parley does not know the engine \`${engine}\`.`)
}

/** Bytes that D1 holds. */
export async function databaseBytes(env: Pick<Cloudflare.Env, 'DB'>): Promise<number> {
  const { meta } = await env.DB.prepare('SELECT 1').run()
  return meta.size_after
}

/**
 * Parley always stores messages itself, whatever engine stores the documents.
 * @param historyId the id of a history collection's object
 */
export const historyStore = (env: Cloudflare.Env, historyId: string): HistoryStore =>
  collectionObject(env, historyId)
