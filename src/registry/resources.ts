/** Connectors, remote models and settings that OpenSearch's API registers, as the core reads and stores them. */
import * as v from 'valibot'
import {
  deleteResource,
  findResource,
  insertResource,
  listResources,
  mergeResource,
  type NewResource,
  putResource,
  type ResourceRow,
} from '../db/resources'
import { open, seal } from '../db/sealing'
import { ApiError } from '../errors'
import { once } from '../lib/once'
import { type Connector, namesIn, predict, predictPieces, urlOf } from '../models/connector'
import type { ConversationModelConfig } from '../models/language-model'
import { createCollection, findCollection } from './collections'
import { ownObject } from './engines'

const Strings = once(() => v.record(v.string(), v.string()))

const Action = once(() =>
  v.object({
    action_type: v.string(),
    method: v.string(),
    url: v.string(),
    headers: v.optional(Strings()),
    request_body: v.optional(v.string()),
  }),
)

/** A connector as it is stored and shown: without its credential. */
const StoredConnector = once(() =>
  v.object({
    name: v.string(),
    description: v.optional(v.string()),
    version: v.string(),
    protocol: v.picklist(['http', 'aws_sigv4']),
    parameters: Strings(),
    actions: v.array(Action()),
  }),
)

export type StoredConnector = v.InferOutput<ReturnType<typeof StoredConnector>>

/** A model as it is stored. */
const StoredModel = once(() =>
  v.object({
    name: v.string(),
    description: v.optional(v.string()),
    /** REMOTE, or what a local embedding model is registered as */
    algorithm: v.string(),
    group: v.optional(v.string()),
    version: v.string(),
    state: v.picklist(['REGISTERED', 'DEPLOYED']),
    /** absent: a model that Parley runs itself */
    connector: v.optional(v.string()),
  }),
)

export type StoredModel = v.InferOutput<ReturnType<typeof StoredModel>>

const Settings = once(() => v.record(v.string(), v.union([v.string(), v.array(v.string())])))

export const connectorIn = ({ body }: ResourceRow): StoredConnector =>
  v.parse(StoredConnector(), JSON.parse(body))
export const modelIn = ({ body }: ResourceRow): StoredModel => v.parse(StoredModel(), JSON.parse(body))

/**
 * Stores a connector, or changes the one of this id.
 * @param credential undefined: the one that is stored stays
 * @returns its version
 * @throws ApiError 400 when the deployment has no ENCRYPTION_KEY
 */
export async function storeConnector(
  env: Cloudflare.Env,
  id: string,
  stored: StoredConnector,
  credential: Record<string, string> | undefined,
  kept: string | null = null,
): Promise<number> {
  const sealed = credential === undefined ? kept : await seal(JSON.stringify(credential), env)
  return putResource(env.DB, { kind: 'connector', id, body: JSON.stringify(stored), sealed })
}

/** Finds a resource of a kind. */
export type FindResource = (kind: string, id: string) => Promise<ResourceRow | undefined>

/** @param known rows that were read ahead, those of the settings among them if there are any */
export const finder =
  (env: Cloudflare.Env, known?: ResourceRow[]): FindResource =>
  async (kind, id) =>
    known?.find((row) => row.kind === kind && row.id === id) ??
    (known && kind === 'settings' ? undefined : findResource(env.DB, kind, id))

/** Reads a connector for a call, with its credential in clear; undefined for an unknown id. @throws ApiError 400 */
async function openConnector(
  env: Cloudflare.Env,
  id: string,
  find = finder(env),
): Promise<Connector | undefined> {
  const [row, settings] = await Promise.all([find('connector', id), readSettings(env, find)])
  if (row === undefined) return undefined
  const credential = row.sealed === null ? {} : v.parse(Strings(), JSON.parse(await open(row.sealed, env)))
  return connectorOf(connectorIn(row), credential, settings)
}

/** A stored connector as it is called: by its first action. */
function connectorOf(
  { protocol, parameters, actions }: StoredConnector,
  credential: Record<string, string>,
  { [TRUSTED]: trusted }: ClusterSettings,
): Connector {
  const { url, method, headers = {}, request_body: body } = actions[0]!
  return {
    ...{ protocol, parameters, credential, url, method, headers },
    ...(body !== undefined && { body }),
    ...(Array.isArray(trusted) && { trusted }),
  }
}

/**
 * Checks that a connector's URL may be called, as far as it can be filled in.
 * @throws ApiError 400
 */
export async function requireCallable(env: Cloudflare.Env, stored: StoredConnector): Promise<void> {
  const connector = connectorOf(stored, {}, await readSettings(env))
  const filled = Object.fromEntries(namesIn(connector.url, 'parameters').map((name) => [name, 'x']))
  urlOf({ ...connector, parameters: { ...filled, ...stored.parameters } }, {}, env)
}

/**
 * Calls a connector.
 * @returns the provider's own reply; undefined for an unknown id
 * @throws ProviderError, ApiError 400
 */
export async function predictWith(
  env: Cloudflare.Env,
  id: string,
  parameters: Record<string, unknown>,
  signal: AbortSignal,
): Promise<{ reply: unknown } | undefined> {
  const connector = await openConnector(env, id)
  return connector && { reply: await predict(connector, parameters, env, signal) }
}

/** The same as a stream of text. @returns undefined for an unknown id @throws ProviderError, ApiError 400 */
export async function predictPiecesWith(
  env: Cloudflare.Env,
  id: string,
  parameters: Record<string, unknown>,
  signal: AbortSignal,
): Promise<AsyncGenerator<string> | undefined> {
  const connector = await openConnector(env, id)
  return connector && predictPieces(connector, parameters, env, signal)
}

/** Bytes of a remote model's prompt. Its own limit is not known here. */
const MAX_BYTES = 65_536
/** Ten years: what OpenSearch's memory holds does not expire. In seconds. */
export const TTL = 315_360_000

/** A remote model as a conversation model, ready to be asked; undefined for an unknown id. @throws ApiError 400 */
export async function findRemoteModel(
  env: Cloudflare.Env,
  id: string,
  find = finder(env),
): Promise<ConversationModelConfig | undefined> {
  const row = await find('model', id)
  const { connector: connectorId, name } =
    row === undefined ? { connector: undefined, name: '' } : modelIn(row)
  if (connectorId === undefined) return undefined
  const [connector, settings] = await Promise.all([
    openConnector(env, connectorId, find),
    readSettings(env, find),
  ])
  if (connector === undefined) return undefined
  return {
    id,
    model_name: `connector/${String(connector.parameters.model ?? name)}`,
    history_collection: historyNameOf(settings),
    max_bytes: MAX_BYTES,
    ttl: TTL,
    connector,
  }
}

export const TRUSTED = 'plugins.ml_commons.trusted_connector_endpoints_regex'
/** Parley's own setting: the history collection for memories. */
export const HISTORY = 'parley.history_collection'
const DEFAULT_HISTORY = 'opensearch_memory'

export type ClusterSettings = v.InferOutput<ReturnType<typeof Settings>>

/** The cluster's settings, by their dotted names. */
export async function readSettings(env: Cloudflare.Env, find = finder(env)): Promise<ClusterSettings> {
  const row = await find('settings', 'cluster')
  return row === undefined ? {} : v.parse(Settings(), JSON.parse(row.body))
}

/** Changes some settings. Concurrent changes are all kept. @param changes null: back to the default */
export const changeSettings = (
  env: Cloudflare.Env,
  changes: Record<string, string | string[] | null>,
): Promise<void> => mergeResource(env.DB, 'settings', 'cluster', changes)

const historyNameOf = (settings: ClusterSettings): string => {
  const name = settings[HISTORY]
  return typeof name === 'string' ? name : DEFAULT_HISTORY
}

/** The history collection for memories. Creates it if there is none yet. */
export async function memoryHistory(env: Cloudflare.Env): Promise<{ name: string; objectId: string }> {
  const name = historyNameOf(await readSettings(env))
  try {
    return await findCollection(env, name)
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
  }
  try {
    await createCollection(env, { name, fields: HISTORY_FIELDS })
  } catch (error) {
    // Another request has created it in the meantime.
    if (!(error instanceof ApiError) || error.status !== 409) throw error
  }
  const made = await findCollection(env, name)
  await ownObject(env, made).keepHistory()
  return made
}

const HISTORY_FIELDS = [
  { name: 'conversation_id', type: 'string' },
  { name: 'model_id', type: 'string' },
  { name: 'timestamp', type: 'int32' },
  { name: 'role', type: 'string', index: false },
  { name: 'message', type: 'string', index: false },
]

/** @returns false where the name is taken by another of its kind, or the id is */
export const storeNew = (
  env: Cloudflare.Env,
  kind: string,
  id: string,
  body: unknown,
  uniqueName: string | null = null,
): Promise<boolean> => insertResource(env.DB, { kind, id, body: JSON.stringify(body), uniqueName })

export type { ResourceRow }

/** A resource of a kind; undefined if there is none of this id. */
export const findOne = (env: Cloudflare.Env, kind: string, id: string): Promise<ResourceRow | undefined> =>
  finder(env)(kind, id)

/** All resources of a kind, the oldest first. */
export const findAll = (env: Cloudflare.Env, kind: string): Promise<ResourceRow[]> =>
  listResources(env.DB, kind)

/** Stores a resource. It replaces one of the same id. @returns its version */
export const storeOne = (env: Cloudflare.Env, given: NewResource): Promise<number> =>
  putResource(env.DB, given)

/** @returns false if there is none */
export const deleteOne = (env: Cloudflare.Env, kind: string, id: string): Promise<boolean> =>
  deleteResource(env.DB, kind, id)
