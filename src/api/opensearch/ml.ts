/** OpenSearch's ML plugin as far as conversations need it: connectors, models and predictions. */
import { ApiError } from '../../errors'
import { readStoredObject } from '../../lib/stored-json'
import { isSensitiveHeader, namesIn } from '../../models/connector'
import { createEmbeddingModel } from '../../models/embedders'
import { ProviderError } from '../../models/provider-error'
import { STATIC_EMBEDDER } from '../../models/static-embedder'
import * as registry from '../../registry/resources'
import type { Call } from '../http/router'
import {
  illegalArgument as badRequest,
  errorEnvelope,
  OpenSearchError,
  requireKeys,
  statusError,
  unsupported,
  WRITTEN,
} from './errors'
import { LIST_PARAMETERS, searchEntries } from './json-query'
import { isObject, isOn, type Json, listed, type RouteRow, readObject } from './route'
import { newId } from './source'

// =============================================================================
// Shapes that the ML plugin's routes share.

/** The reply to a change or deletion of a document in a system index. */
export const written = (index: string, id: string, result: string, version = 1): Json => ({
  _index: index,
  _id: id,
  _version: version,
  result,
  forced_refresh: true,
  _shards: WRITTEN,
  _seq_no: version - 1,
  _primary_term: 1,
})

const notFound = (message: string): OpenSearchError => statusError(404, message)

/** Requires a text. @throws ApiError 400 `missing` */
export function requireText(value: unknown, missing: string): string {
  if (typeof value !== 'string' || value.trim() === '') throw badRequest(missing)
  return value
}

export function allowText(body: Json, name: string): string | undefined {
  const value = body[name] ?? undefined
  if (value === undefined || typeof value === 'string') return value
  throw badRequest(`[${name}] has to be a text`)
}

/** An object with all values as texts: a number becomes its digits. */
export function textsOf(given: unknown, name: string): Record<string, string> {
  const value = given ?? {}
  if (!isObject(value)) throw badRequest(`[${name}] has to be an object`)
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, typeof each === 'string' ? each : JSON.stringify(each)]),
  )
}

/** @throws ApiError 400 that names what is unknown */
export const requireKnown = (body: Json, known: string, what: string): void =>
  requireKeys(body, known, (key) => unsupported(`[${key}] of ${what}`))

// =============================================================================
// The plugin's resources: where OpenSearch keeps them, and what it says of them.

export interface Resource {
  kind: string
  /** OpenSearch's own index of them */
  index: string
  /** what an id that is none is told */
  missing(id: string): string
  shown(row: registry.ResourceRow): Json
}

export const timesOf = ({ createdAt, updatedAt }: registry.ResourceRow): Json => ({
  created_time: createdAt,
  last_updated_time: updatedAt,
})

const CONNECTOR: Resource = {
  kind: 'connector',
  index: '.plugins-ml-connector',
  missing: (id) => `Failed to find connector with the provided connector id: ${id}`,
  shown: (row) => ({ ...registry.connectorIn(row), ...timesOf(row) }),
}
const GROUP: Resource = {
  kind: 'model_group',
  index: '.plugins-ml-model-group',
  missing: (id) => `Failed to find model group with ID: ${id}`,
  shown: (row) => ({ ...readStoredObject(row.body), ...timesOf(row) }),
}
export const MODEL: Resource = {
  kind: 'model',
  index: '.plugins-ml-model',
  missing: (id) => `Failed to find model with the provided model id: ${id}`,
  shown: (row) => {
    const { name, description, algorithm, group, version, state, connector } = registry.modelIn(row)
    return {
      name,
      model_group_id: group,
      algorithm,
      model_version: version,
      description,
      model_state: state,
      ...timesOf(row),
      connector_id: connector,
    }
  },
}
const TASK: Resource = {
  kind: 'task',
  index: '.plugins-ml-task',
  missing: (id) => `Failed to find task with the provided task id: ${id}`,
  shown: ({ body, createdAt, updatedAt }) => ({
    ...readStoredObject(body),
    create_time: createdAt,
    last_update_time: updatedAt,
  }),
}

/** @throws ApiError 404 */
export async function rowOf(
  env: Cloudflare.Env,
  { kind, missing }: Resource,
  id: string,
): Promise<registry.ResourceRow> {
  const row = await registry.findOne(env, kind, id)
  if (row === undefined) throw notFound(missing(id))
  return row
}

async function search({ env, request, query }: Call, { kind, index, shown }: Resource): Promise<Json> {
  const entries = (await registry.findAll(env, kind)).map((row) => {
    const source = shown(row)
    // Models are asked for by either name.
    const named = source.algorithm !== undefined && { function_name: source.algorithm }
    return { _index: index, _id: row.id, _version: row.version, _source: { ...source, ...named } }
  })
  return searchEntries(entries, await readObject(request, {}), query)
}

/** Deletes the one in the path, if it is there. */
export async function removed(
  { env, path }: Call,
  { kind, index }: Resource,
  version?: number,
): Promise<Json> {
  const deleted = await registry.deleteOne(env, kind, path.id!)
  return written(index, path.id!, deleted ? 'deleted' : 'not_found', version)
}

// =============================================================================
// Connectors: how a remote model is called. Secrets go in and never come out.

// Parley has its own timeouts and numbers of connections, whatever the [client_config].
const KEYS = `
  name description version protocol parameters credential actions
  backend_roles access_mode client_config
`
// Predictions take and return the provider's own JSON here, whatever processes it before and after.
const ACTION_KEYS = `
  action_type name method url headers request_body
  pre_process_function post_process_function
`

/** @returns its id @throws ApiError 400 */
async function makeConnector(env: Cloudflare.Env, body: Json): Promise<string> {
  const id = newId()
  const { stored, credential } = parseConnector(body)
  await registry.requireCallable(env, stored)
  await registry.storeConnector(env, id, stored, credential)
  return id
}

/**
 * Parses a definition, with the plugin's checks in the plugin's order.
 * @param keepsCredential whether a stored credential stays, and stands in the body under another name
 * @throws ApiError 400
 */
function parseConnector(body: Json, keepsCredential = false) {
  requireKnown(body, KEYS, 'a connector')
  const name = requireText(body.name, 'Connector name is null')
  const version = String(body.version ?? '')
  if (version === '') throw badRequest('Connector version is null')
  const protocol = requireText(body.protocol, 'Connector protocol is null')
  if (protocol !== 'http' && protocol !== 'aws_sigv4')
    throw badRequest(`Unsupported connector protocol: ${protocol}`)
  const credential = textsOf(body.credential, 'credential')
  if (Object.keys(credential).length === 0) throw badRequest('Connector credential is null or empty list')
  if (protocol === 'aws_sigv4' && !keepsCredential && !(credential.access_key && credential.secret_key)) {
    throw badRequest('Missing credential: aws_sigv4 takes [access_key] and [secret_key]')
  }
  if (!Array.isArray(body.actions) || body.actions.length === 0) {
    throw badRequest('No actions configured for this connector')
  }
  if (body.actions.length > 1) throw badRequest('A connector has one action here, [predict]')
  const description = allowText(body, 'description')
  const parameters = textsOf(body.parameters, 'parameters')
  const actions = body.actions.map(parseAction)
  const stored: registry.StoredConnector = { name, description, version, protocol, parameters, actions }
  return { stored, credential }
}

function parseAction(given: unknown): registry.StoredConnector['actions'][number] {
  if (!isObject(given)) throw badRequest('No actions configured for this connector')
  requireKnown(given, ACTION_KEYS, 'an action')
  const type = requireText(given.action_type, "action type can't be null").toUpperCase()
  if (type !== 'PREDICT') throw unsupported(`[action_type: ${type}]`)
  const url = requireText(given.url, "url can't be null")
  const method = requireText(given.method, "method can't be null").toUpperCase()
  if (method !== 'POST' && method !== 'GET') throw unsupported(`[method: ${method}]`)
  const headers = textsOf(given.headers, 'headers')
  for (const [name, value] of Object.entries(headers)) {
    if (isSensitiveHeader(name) && namesIn(value, 'parameters').length > 0) {
      throw badRequest(
        `Header '${name}' cannot use \${parameters.*} placeholders for security reasons. Use \${credential.*} instead.`,
      )
    }
  }
  const request_body = allowText(given, 'request_body')
  for (const template of [url, request_body ?? '']) {
    if (namesIn(template, 'credential').length > 0) {
      throw badRequest('Credentials stand in headers alone: elsewhere they could be logged.')
    }
  }
  return { action_type: type, method, url, headers, request_body }
}

/** Given values replace stored ones. If the host changes, the credential must be sent too. */
async function updateConnector({ env, path, request }: Call): Promise<Json> {
  const id = path.id!
  const body = await readObject(request)
  const row = await rowOf(env, CONNECTOR, id)
  await requireUnused(env, id)
  const old = registry.connectorIn(row)
  const keeps = body.credential === undefined
  const { stored, credential } = parseConnector({ credential: { kept: 'kept' }, ...old, ...body }, keeps)
  await registry.requireCallable(env, stored)
  const moves =
    JSON.stringify([old.protocol, old.parameters, old.actions.map(({ url }) => url)]) !==
    JSON.stringify([stored.protocol, stored.parameters, stored.actions.map(({ url }) => url)])
  if (keeps && moves) {
    throw badRequest(
      'The change may have the connector call elsewhere, where its stored credential does not go. Send [credential] again.',
    )
  }
  const given = keeps ? undefined : credential
  return written(
    CONNECTOR.index,
    id,
    'updated',
    await registry.storeConnector(env, id, stored, given, row.sealed),
  )
}

async function deleteConnector(call: Call): Promise<Json> {
  await requireUnused(call.env, call.path.id!)
  return removed(call, CONNECTOR, 2)
}

/** @throws ApiError 409 while a model uses it */
async function requireUnused(env: Cloudflare.Env, id: string): Promise<void> {
  const users = (await registry.findAll(env, 'model')).filter((row) => registry.modelIn(row).connector === id)
  if (users.length === 0) return
  const ids = users.map((row) => row.id).join(', ')
  throw statusError(
    409,
    `${users.length} models are still using this connector, please delete or update the models first: [${ids}]`,
  )
}

// =============================================================================
// Model groups, models and tasks. A remote model is called through its connector. A local embedding model stands for
// the one that Parley embeds with. What OpenSearch does in a task is done at once here, and the task reports it as
// done.

const NODE = 'parley'
const MOST_MODELS = 100

const GROUP_KEYS = 'name description access_mode backend_roles add_all_backend_roles'

async function registerGroup({ env, request }: Call): Promise<Json> {
  const body = await readObject(request)
  requireKnown(body, GROUP_KEYS, 'a model group')
  const name = requireText(body.name, 'Model group name is null')
  const id = newId()
  const group = {
    name,
    latest_version: 0,
    description: allowText(body, 'description') ?? '',
    access: 'public',
  }
  if (!(await registry.storeNew(env, 'model_group', id, group, name))) {
    const taken = (await registry.findAll(env, 'model_group')).find((row) => row.uniqueName === name)
    throw badRequest(
      `The name you provided is already being used by a model group with ID: ${taken?.id ?? 'unknown'}.`,
    )
  }
  return { model_group_id: id, status: 'CREATED' }
}

async function updateGroup({ env, path, request }: Call): Promise<Json> {
  const row = await rowOf(env, GROUP, path.id!)
  const body = await readObject(request)
  requireKnown(body, 'name description', 'a change of a model group')
  const name = allowText(body, 'name') ?? row.uniqueName
  const group = JSON.stringify({ ...readStoredObject(row.body), ...body })
  await registry.storeOne(env, { ...row, uniqueName: name, body: group, updatedAt: Date.now() })
  return { status: 'Updated' }
}

async function deleteGroup(call: Call): Promise<Json> {
  const models = await registry.findAll(call.env, 'model')
  if (models.some((row) => registry.modelIn(row).group === call.path.id))
    throw badRequest('Cannot delete the model group when it has associated model versions')
  return removed(call, GROUP)
}

const REGISTERED = `
  name description version function_name model_group_id connector_id connector model_format
  model_task_type model_content_size_in_bytes model_content_hash_value model_config url is_enabled
`

async function registerModel(call: Call): Promise<Json> {
  const { env, request, query } = call
  const body = await readObject(request)
  requireKnown(body, REGISTERED, 'a model')
  const name = requireText(body.name, 'Model name is null')
  const group = allowText(body, 'model_group_id')
  if (group !== undefined) await rowOf(env, GROUP, group)
  const algorithm = String(body.function_name ?? 'TEXT_EMBEDDING').toUpperCase()
  if (!['REMOTE', 'TEXT_EMBEDDING'].includes(algorithm)) throw unsupported(`[function_name: ${algorithm}]`)
  const connector = algorithm === 'REMOTE' ? await connectorOf(call, body) : undefined
  const id = newId()
  const model: registry.StoredModel = {
    name,
    description: allowText(body, 'description'),
    algorithm,
    group,
    version: String(body.version ?? '1'),
    state: isOn(query.deploy) ? 'DEPLOYED' : 'REGISTERED',
    connector,
  }
  await registry.storeNew(env, 'model', id, model)
  return { task_id: await done(env, 'REGISTER_MODEL', id, algorithm), status: 'CREATED', model_id: id }
}

async function connectorOf({ env }: Call, { connector_id: id, connector }: Json): Promise<string> {
  if (typeof id === 'string' && id !== '') {
    await rowOf(env, CONNECTOR, id)
    return id
  }
  if (!isObject(connector)) {
    throw badRequest(
      'You must provide connector content when creating a remote model without providing connector id!',
    )
  }
  return makeConnector(env, connector)
}

/** Stores a finished task for what was done. @returns its id */
async function done(env: Cloudflare.Env, type: string, model: string, algorithm: string): Promise<string> {
  const id = newId()
  await registry.storeNew(env, 'task', id, {
    model_id: model,
    task_type: type,
    function_name: algorithm,
    state: 'COMPLETED',
    worker_node: [NODE],
    is_async: false,
  })
  return id
}

async function setState(
  env: Cloudflare.Env,
  id: string,
  state: registry.StoredModel['state'],
): Promise<registry.StoredModel> {
  const row = await rowOf(env, MODEL, id)
  const changed = { ...registry.modelIn(row), state }
  await registry.storeOne(env, { ...row, body: JSON.stringify(changed), updatedAt: Date.now() })
  return changed
}

async function deployModel({ env, path }: Call): Promise<Json> {
  const { algorithm } = await setState(env, path.id!, 'DEPLOYED')
  const task_id = await done(env, 'DEPLOY_MODEL', path.id!, algorithm)
  return { task_id, task_type: 'DEPLOY_MODEL', status: 'COMPLETED' }
}

/** Undeploys the model of the path, or those that the body names. */
async function undeployModels({ env, path, request }: Call): Promise<Json> {
  const { model_ids, node_ids: _, ...others } = path.id === undefined ? await readObject(request) : {}
  requireKnown(others, '', 'what is undeployed')
  const ids = path.id === undefined ? listed(model_ids).map(String) : [path.id]
  if (ids.length === 0 || ids.length > MOST_MODELS)
    throw badRequest(`[model_ids] takes from 1 to ${MOST_MODELS} models`)
  for (const id of ids) await setState(env, id, 'REGISTERED')
  return { [NODE]: { stats: Object.fromEntries(ids.map((id) => [id, 'undeployed'])) } }
}

/** Given values replace stored ones. */
async function updateModel({ env, path, request }: Call): Promise<Json> {
  const row = await rowOf(env, MODEL, path.id!)
  const body = await readObject(request)
  requireKnown(body, 'name description model_group_id', 'a change of a model')
  const { model_group_id: group, ...texts } = body
  if (group !== undefined) await rowOf(env, GROUP, String(group))
  for (const name of Object.keys(texts)) requireText(texts[name], `[${name}] has to be a text`)
  const model = { ...registry.modelIn(row), ...texts, ...(group !== undefined && { group }) }
  const version = await registry.storeOne(env, { ...row, body: JSON.stringify(model) })
  return written(MODEL.index, path.id!, 'updated', version)
}

async function deleteModel({ env, path }: Call): Promise<Json> {
  const row = await registry.findOne(env, 'model', path.id!)
  if (row === undefined) throw notFound('Failed to find model')
  if (registry.modelIn(row).state === 'DEPLOYED') {
    throw statusError(
      400,
      'Model cannot be deleted in deploying or deployed state. Try undeploy model first then delete',
    )
  }
  await registry.deleteOne(env, 'model', path.id!)
  return written(MODEL.index, path.id!, 'deleted', row.version + 1)
}

// =============================================================================
// Predictions of remote models, whole and in pieces.

/** The connector of the model in the path; none for a model that runs here. @throws ApiError 404 */
const connectorAt = async ({ env, path }: Call): Promise<string | undefined> =>
  registry.modelIn(await rowOf(env, MODEL, path.id!)).connector

async function parametersIn({ request }: Call): Promise<Json> {
  const body = await readObject(request)
  requireKnown(body, 'parameters', 'a prediction')
  return isObject(body.parameters) ? body.parameters : {}
}

const resultOf = (dataAsMap: unknown, more: Json = {}): Json => ({
  inference_results: [{ output: [{ name: 'response', dataAsMap }], ...more }],
})

const MOST_TEXTS = 100

/** Returns the provider's own reply to the request's parameters; the vectors of texts from a model that runs here. */
async function predictModel(call: Call): Promise<Json> {
  const connector = await connectorAt(call)
  if (connector === undefined) return embedded(call)
  const parameters = await parametersIn(call)
  try {
    const predicted = await registry.predictWith(call.env, connector, parameters, call.request.signal)
    if (predicted === undefined) throw notFound(CONNECTOR.missing(connector))
    return resultOf(predicted.reply, { status_code: 200 })
  } catch (error) {
    throw remoteError(error)
  }
}

async function embedded({ env, request }: Call): Promise<Json> {
  const { text_docs: texts, ...others } = await readObject(request)
  // The format of the vectors, which is always the same.
  requireKnown(others, 'return_number target_response parameters', 'a prediction')
  if (!Array.isArray(texts) || texts.length > MOST_TEXTS || !texts.every((text) => typeof text === 'string'))
    throw badRequest(`A prediction of this model takes [text_docs], a list of at most ${MOST_TEXTS} texts`)
  const model = createEmbeddingModel({ model_name: STATIC_EMBEDDER }, env)
  const vectors = await model.embed(texts, 'document')
  return {
    inference_results: vectors.map((vector) => ({
      output: [
        { name: 'sentence_embedding', data_type: 'FLOAT32', shape: [vector.length], data: [...vector] },
      ],
    })),
  }
}

/**
 * Streams the text of a reply as server-sent events. The last one has `is_last`. A failure before the first piece is an
 * ordinary error, and a later one is the last event.
 */
async function streamPrediction(call: Call): Promise<Response> {
  const connector = await connectorAt(call)
  const parameters = await parametersIn(call)
  if (connector === undefined) throw badRequest('Only remote models take predictions here')
  const abort = new AbortController()
  const signal = AbortSignal.any([abort.signal, call.request.signal])
  const pieces = await registry.predictPiecesWith(call.env, connector, parameters, signal)
  if (pieces === undefined) throw notFound(CONNECTOR.missing(connector))
  let next = await pieces.next().catch((error: unknown) => {
    throw remoteError(error)
  })
  const encoder = new TextEncoder()
  const event = (data: Json): Uint8Array => encoder.encode(`data: ${JSON.stringify(data)}\n\n`)
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (next.done) {
        controller.enqueue(event(resultOf({ content: '', is_last: true })))
        controller.close()
        return
      }
      controller.enqueue(event(resultOf({ content: next.value, is_last: false })))
      try {
        next = await pieces.next()
      } catch (error) {
        controller.enqueue(event(errorEnvelope(remoteError(error)).body))
        controller.close()
      }
    },
    cancel: () => abort.abort(),
  })
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform' }
  return new Response(body, { headers })
}

/** A provider's failure with its own status. The envelope replaces statuses that clients would retry. */
export function remoteError(error: unknown): unknown {
  if (!(error instanceof ProviderError)) return error
  const { upstream, message } = error
  if (error.fault === 'silent') return new OpenSearchError(500, 'timeout_exception', message)
  if (upstream === undefined || upstream === 200)
    return new ApiError(500, `Error communicating with remote model: ${message}`)
  const told = message.replace(/^Error from remote service: /, '')
  return statusError(upstream, `Error from remote service: ${told}`)
}

// =============================================================================
// What the plugin tells of itself. There is one node, and nothing is under way.

/** GET /stats, all of them or those that the path names. */
async function stats({ env, path }: Call): Promise<Json> {
  const counted = await Promise.all(
    [CONNECTOR, MODEL, TASK].map(
      async ({ kind }) => [kind, (await registry.findAll(env, kind)).length] as const,
    ),
  )
  const all: Json = Object.fromEntries(
    counted.flatMap(([kind, count]) => [
      [`ml_${kind}_count`, count],
      [`ml_${kind}_index_status`, count === 0 ? 'non-existent' : 'green'],
    ]),
  )
  const { ml_task_count: _, ...known } = all
  const wanted = path.stat?.split(',') ?? Object.keys(known)
  const unknown = wanted.find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined) throw unsupported(`The stat [${unknown}]`)
  return { ...Object.fromEntries(wanted.map((name) => [name, known[name]])), nodes: {} }
}

/** GET /profile of models: those that are deployed. */
async function profile({ env, path }: Call): Promise<Json> {
  const deployed = (await registry.findAll(env, 'model')).filter(
    (row) => registry.modelIn(row).state === 'DEPLOYED' && (path.id ?? row.id) === row.id,
  )
  const models = deployed.map(({ id }) => [id, { model_state: 'DEPLOYED', worker_nodes: [NODE] }])
  return models.length === 0 ? {} : { nodes: { [NODE]: { models: Object.fromEntries(models) } } }
}

// =============================================================================
export const ML = '/_plugins/_ml'
/** The same rights as for conversation models: whoever may write one can have calls made with its credentials. */
export const may = (verb: string): string[] => [`conversations/models:${verb}`]

export const found = (path: string, resource: Resource): RouteRow[] => [
  ['GET POST', `${ML}/${path}/_search`, may('list'), (call) => search(call, resource), LIST_PARAMETERS],
  [
    'GET',
    `${ML}/${path}/:id`,
    may('get'),
    async ({ env, path: { id } }) => resource.shown(await rowOf(env, resource, id!)),
  ],
]

export const mlRoutes: RouteRow[] = [
  [
    'POST',
    `${ML}/connectors/_create`,
    may('create'),
    async ({ env, request }) => ({ connector_id: await makeConnector(env, await readObject(request)) }),
  ],
  ...found('connectors', CONNECTOR),
  ['PUT', `${ML}/connectors/:id`, may('upsert'), updateConnector],
  ['DELETE', `${ML}/connectors/:id`, may('delete'), deleteConnector],
  ['POST', `${ML}/model_groups/_register`, may('create'), registerGroup],
  ...found('model_groups', GROUP),
  ['PUT', `${ML}/model_groups/:id`, may('upsert'), updateGroup],
  ['DELETE', `${ML}/model_groups/:id`, may('delete'), deleteGroup],
  // Some have two names, of which the second one is that of OpenSearch before 2.7.
  ...['_register', '_upload'].map(
    (verb): RouteRow => ['POST', `${ML}/models/${verb}`, may('create'), registerModel, 'deploy'],
  ),
  ...found('models', MODEL),
  ['PUT', `${ML}/models/:id`, may('upsert'), updateModel],
  ...['_deploy', '_load'].map(
    (verb): RouteRow => ['POST', `${ML}/models/:id/${verb}`, may('upsert'), deployModel],
  ),
  ...['_undeploy', '_unload'].flatMap((verb) =>
    ['models', 'models/:id'].map(
      (path): RouteRow => ['POST', `${ML}/${path}/${verb}`, may('upsert'), undeployModels],
    ),
  ),
  ['POST', `${ML}/models/:id/_predict`, may('create'), predictModel],
  ['POST', `${ML}/models/:id/_predict/stream`, may('create'), streamPrediction],
  ['POST', `${ML}/_predict/:algorithm/:id`, may('create'), predictModel],
  ['DELETE', `${ML}/models/:id`, may('delete'), deleteModel],
  ...found('tasks', TASK),
  ['DELETE', `${ML}/tasks/:id`, may('delete'), (call) => removed(call, TASK)],
  ...['stats', 'stats/:stat', ':node/stats', ':node/stats/:stat'].map(
    (path): RouteRow => ['GET', `${ML}/${path}`, may('list'), stats],
  ),
  ...['profile', 'profile/models', 'profile/models/:id'].map(
    (path): RouteRow => ['GET POST', `${ML}/${path}`, may('list'), profile],
  ),
  ['GET POST', `${ML}/profile/tasks`, may('list'), () => ({})],
  ['GET POST', `${ML}/profile/tasks/:id`, may('list'), () => ({})],
]
