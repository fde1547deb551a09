/**
 * The ports to the engine of a collection. A conversation finds documents through a `Retriever` and stores messages in a
 * `HistoryStore`; routes of documents use a `DocumentStore`. The registry's row names the engine: `object` is the collection's own
 * Durable Object, the others are clusters.
 */

import { RowCache } from '../db/client'
import { type CollectionRow, changeEngine, findCollectionByObject } from '../db/registry'
import { open, seal } from '../db/sealing'
import { AiSearchStore } from '../engines/ai-search/store'
import type { NodeHealth } from '../engines/cluster'
import { type Connection, parseCredentials, parseEngine, parseStoredEngine } from '../engines/config'
import { OpenSearchStore } from '../engines/opensearch/store'
import { type DocumentStore, objectDocuments } from '../engines/port'
import { TypesenseStore } from '../engines/typesense/store'
import { ApiError, badRequest, collectionGone } from '../errors'
import type { CollectionRpc } from '../search/collection/handle'
import { collectionObject } from '../search/collection/handle'
import type { CollectionPlace } from '../search/types'

/** Finds documents for a turn. It needs the schema to keep vectors out of the prompt. */
type Retriever = Pick<CollectionRpc, 'search' | 'abandon' | 'schema'>

/**
 * Stores the messages of conversations. A message need not come from a turn: callers can import messages, or write them through
 * the documents API.
 */
type HistoryStore = Pick<
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
    throw badRequest('This is not available for a collection that lives in a cluster (`engine`).')
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

// Collections that live in an existing cluster: where each one is, and how it is reached.

/** How long another isolate may use credentials that were replaced, in milliseconds. */
const CACHE_MS = 10_000

/** The key is the id of the collection. */
const connections = new RowCache<Connection>('the cluster of a collection', CACHE_MS)

/** The adapter of each type of cluster. To add an engine, add an entry. */
const ADAPTERS = {
  typesense: TypesenseStore,
  opensearch: OpenSearchStore,
  'ai-search': AiSearchStore,
} as const

type ClusterStore = InstanceType<(typeof ADAPTERS)[keyof typeof ADAPTERS]>

const isCluster = (engine: string): engine is keyof typeof ADAPTERS => Object.hasOwn(ADAPTERS, engine)

/** The documents of a collection in a cluster. Its row is read by the first call. */
const clusterStore = (env: Cloudflare.Env, engine: keyof typeof ADAPTERS, objectId: string): ClusterStore =>
  new ADAPTERS[engine](() => connectionOf(env, objectId))

/** @throws ApiError 404, 400 when the credentials cannot be opened */
async function connectionOf(env: Cloudflare.Env, objectId: string): Promise<Connection> {
  const connection = await connections.find(objectId, async () => {
    const row = await findCollectionByObject(env.DB, objectId)
    if (!row?.engineConfig || !row.sealedCredentials) return undefined
    return {
      name: row.name,
      engine: parseStoredEngine(row.engineConfig),
      credentials: parseCredentials(await open(row.sealedCredentials, env)),
      env,
    }
  })
  if (connection === undefined) throw collectionGone()
  return connection
}

type EngineColumns = Pick<CollectionRow, 'engine' | 'engineConfig' | 'sealedCredentials'>

/**
 * Reads the `engine` of a request.
 * @param name of the collection
 * @throws ApiError 400 for an engine that is not one, for a host that may not be called, and without an ENCRYPTION_KEY
 */
export async function connect(env: Cloudflare.Env, given: unknown, name: string) {
  const { engine, credentials } = parseEngine(given, name, env)
  return {
    columns: {
      engine: engine.type,
      engineConfig: JSON.stringify(engine),
      sealedCredentials: await seal(JSON.stringify(credentials), env),
    },
    /** the adapter, before the row exists */
    store: new ADAPTERS[engine.type](async () => ({ name, engine, credentials, env })),
  }
}

/** Drops a connection from the cache, after its row was changed. */
export const forgetConnection = (objectId: string): void => connections.forget(objectId)

/** Changes where a collection is stored. @throws ApiError 404 */
export async function reconnect(
  env: Cloudflare.Env,
  objectId: string,
  columns: EngineColumns,
): Promise<void> {
  if (!(await changeEngine(env.DB, objectId, columns))) throw collectionGone()
  forgetConnection(objectId)
}
