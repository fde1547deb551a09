/** Collections that live in an existing cluster: where each one is, and how it is reached. */
import { database } from '../db/client'
import { type CollectionRow, changeEngine, findCollectionByObject } from '../db/collections'
import { RowCache } from '../db/row-cache'
import { open, seal } from '../db/sealing'
import { AiSearchStore } from '../engines/ai-search/store'
import { type Connection, parseCredentials, parseEngine, parseStoredEngine } from '../engines/config'
import { OpenSearchStore } from '../engines/opensearch/store'
import { TypesenseStore } from '../engines/typesense/store'
import { collectionGone } from '../errors'

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

export type ClusterStore = InstanceType<(typeof ADAPTERS)[keyof typeof ADAPTERS]>

export const isCluster = (engine: string): engine is keyof typeof ADAPTERS => Object.hasOwn(ADAPTERS, engine)

/** The documents of a collection in a cluster. Its row is read by the first call. */
export const clusterStore = (
  env: Cloudflare.Env,
  engine: keyof typeof ADAPTERS,
  objectId: string,
): ClusterStore => new ADAPTERS[engine](() => connectionOf(env, objectId))

/** @throws ApiError 404, 400 when the credentials cannot be opened */
async function connectionOf(env: Cloudflare.Env, objectId: string): Promise<Connection> {
  const connection = await connections.find(objectId, async () => {
    const row = await findCollectionByObject(database(env), objectId)
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

export interface NewConnection {
  columns: EngineColumns
  /** the adapter, before the row exists */
  store: ClusterStore
}

/**
 * Reads the `engine` of a request.
 * @param name of the collection
 * @throws ApiError 400 for an engine that is not one, for a host that may not be called, and without an ENCRYPTION_KEY
 */
export async function connect(env: Cloudflare.Env, given: unknown, name: string): Promise<NewConnection> {
  const { engine, credentials } = parseEngine(given, name, env)
  return {
    columns: {
      engine: engine.type,
      engineConfig: JSON.stringify(engine),
      sealedCredentials: await seal(JSON.stringify(credentials), env),
    },
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
  if (!(await changeEngine(database(env), objectId, columns))) throw collectionGone()
  forgetConnection(objectId)
}
