/**
 * Model groups, models and tasks. A remote model is called through its connector. A local embedding model stands for
 * the one that Parley embeds with. What OpenSearch does in a task is done at once here, and the task reports it as
 * done.
 */

import { readStoredObject } from '../../../lib/stored-json'
import {
  deleteOne,
  findAll,
  findOne,
  modelIn,
  type ResourceRow,
  type StoredModel,
  storeNew,
  storeOne,
} from '../../../registry/resources'
import type { Call } from '../../http/route'
import { OpenSearchError } from '../errors'
import { isObject, isOn, type Json, readObject } from '../route'
import { newId } from '../source'
import { makeConnector } from './connectors'
import { allowText, badRequest, notFound, requireKnown, requireText, written } from './shapes'

export const MODELS = '.plugins-ml-model'
export const GROUPS = '.plugins-ml-model-group'
export const TASKS = '.plugins-ml-task'
const NODE = 'parley'

export async function registerGroup({ env, request }: Call): Promise<Json> {
  const body = await readObject(request)
  requireKnown(
    body,
    ['name', 'description', 'access_mode', 'backend_roles', 'add_all_backend_roles'],
    'a model group',
  )
  const name = requireText(body.name, 'Model group name is null')
  const id = newId()
  const group = {
    name,
    latest_version: 0,
    description: allowText(body, 'description') ?? '',
    access: 'public',
  }
  if (!(await storeNew(env, 'model_group', id, group, name))) {
    const taken = (await findAll(env, 'model_group')).find((row) => row.uniqueName === name)
    throw badRequest(
      `The name you provided is already being used by a model group with ID: ${taken?.id ?? 'unknown'}.`,
    )
  }
  return { model_group_id: id, status: 'CREATED' }
}

const groupShown = ({ body, createdAt, updatedAt }: ResourceRow): Json => ({
  ...readStoredObject(body),
  created_time: createdAt,
  last_updated_time: updatedAt,
})

async function groupOf(env: Cloudflare.Env, id: string): Promise<ResourceRow> {
  const row = await findOne(env, 'model_group', id)
  if (row === undefined) throw notFound(`Failed to find model group with ID: ${id}`)
  return row
}

export const getGroup = async ({ env, path }: Call): Promise<Json> => groupShown(await groupOf(env, path.id!))

export async function updateGroup({ env, path, request }: Call): Promise<Json> {
  const row = await groupOf(env, path.id!)
  const body = await readObject(request)
  requireKnown(body, ['name', 'description'], 'a change of a model group')
  const name = allowText(body, 'name') ?? row.uniqueName
  const group = { ...readStoredObject(row.body), ...body }
  await storeOne(env, {
    ...row,
    uniqueName: name,
    body: JSON.stringify(group),
    updatedAt: Date.now(),
  })
  return { status: 'Updated' }
}

export async function deleteGroup({ env, path }: Call): Promise<Json> {
  const users = (await findAll(env, 'model')).filter((row) => modelIn(row).group === path.id)
  if (users.length > 0)
    throw badRequest('Cannot delete the model group when it has associated model versions')
  const deleted = await deleteOne(env, 'model_group', path.id!)
  return written(GROUPS, path.id!, deleted ? 'deleted' : 'not_found')
}

const REGISTERED = [
  'name',
  'description',
  'version',
  'function_name',
  'model_group_id',
  'connector_id',
  'connector',
  'model_format',
  'model_task_type',
  'model_content_size_in_bytes',
  'model_content_hash_value',
  'model_config',
  'url',
  'is_enabled',
]

export async function registerModel(call: Call): Promise<Json> {
  const { env, request, query } = call
  const body = await readObject(request)
  requireKnown(body, REGISTERED, 'a model')
  const name = requireText(body.name, 'Model name is null')
  const group = allowText(body, 'model_group_id')
  if (group !== undefined) await groupOf(env, group)
  const remote = String(body.function_name ?? 'TEXT_EMBEDDING').toUpperCase() === 'REMOTE'
  const algorithm = String(body.function_name ?? 'TEXT_EMBEDDING').toUpperCase()
  if (!remote && algorithm !== 'TEXT_EMBEDDING')
    throw badRequest(`[function_name: ${algorithm}] is not supported here`)
  const connector = remote ? await connectorOf(call, body) : undefined
  const description = allowText(body, 'description')
  const id = newId()
  const deploys = isOn(query.deploy)
  const model: StoredModel = {
    name,
    ...(description !== undefined && { description }),
    algorithm,
    ...(group !== undefined && { group }),
    version: String(body.version ?? '1'),
    state: deploys ? 'DEPLOYED' : 'REGISTERED',
    ...(connector !== undefined && { connector }),
  }
  await storeNew(env, 'model', id, model)
  return { task_id: await done(env, 'REGISTER_MODEL', id, algorithm), status: 'CREATED', model_id: id }
}

async function connectorOf({ env }: Call, { connector_id: id, connector }: Json): Promise<string> {
  if (typeof id === 'string' && id !== '') {
    if ((await findOne(env, 'connector', id)) === undefined) {
      throw notFound(`Failed to find connector with the provided connector id: ${id}`)
    }
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
  await storeNew(env, 'task', id, {
    model_id: model,
    task_type: type,
    function_name: algorithm,
    state: 'COMPLETED',
    worker_node: [NODE],
    is_async: false,
  })
  return id
}

const taskShown = ({ body, createdAt, updatedAt }: ResourceRow): Json => ({
  ...readStoredObject(body),
  create_time: createdAt,
  last_update_time: updatedAt,
})

export async function getTask({ env, path }: Call): Promise<Json> {
  const row = await findOne(env, 'task', path.id!)
  if (row === undefined) throw notFound(`Failed to find task with the provided task id: ${path.id}`)
  return taskShown(row)
}

export async function deleteTask({ env, path }: Call): Promise<Json> {
  const deleted = await deleteOne(env, 'task', path.id!)
  return written(TASKS, path.id!, deleted ? 'deleted' : 'not_found')
}

export async function modelOf(
  env: Cloudflare.Env,
  id: string,
): Promise<{ row: ResourceRow; model: StoredModel }> {
  const row = await findOne(env, 'model', id)
  if (row === undefined) throw notFound(`Failed to find model with the provided model id: ${id}`)
  return { row, model: modelIn(row) }
}

const modelShown = (row: ResourceRow): Json => {
  const { name, description, algorithm, group, version, state, connector } = modelIn(row)
  return {
    name,
    ...(group !== undefined && { model_group_id: group }),
    algorithm,
    // Searches ask for it by either name.
    function_name: algorithm,
    model_version: version,
    ...(description !== undefined && { description }),
    model_state: state,
    created_time: row.createdAt,
    last_updated_time: row.updatedAt,
    ...(connector !== undefined && { connector_id: connector }),
  }
}

export const getModel = async ({ env, path }: Call): Promise<Json> =>
  modelShown((await modelOf(env, path.id!)).row)

async function setState(env: Cloudflare.Env, id: string, state: StoredModel['state']): Promise<StoredModel> {
  const { row, model } = await modelOf(env, id)
  const changed = { ...model, state }
  await storeOne(env, { ...row, body: JSON.stringify(changed), updatedAt: Date.now() })
  return changed
}

export async function deployModel({ env, path }: Call): Promise<Json> {
  const { algorithm } = await setState(env, path.id!, 'DEPLOYED')
  const task_id = await done(env, 'DEPLOY_MODEL', path.id!, algorithm)
  return { task_id, task_type: 'DEPLOY_MODEL', status: 'COMPLETED' }
}

export async function undeployModel({ env, path }: Call): Promise<Json> {
  await setState(env, path.id!, 'REGISTERED')
  return { [NODE]: { stats: { [path.id!]: 'undeployed' } } }
}

export async function deleteModel({ env, path }: Call): Promise<Json> {
  const row = await findOne(env, 'model', path.id!)
  if (row === undefined) throw notFound('Failed to find model')
  if (modelIn(row).state === 'DEPLOYED') {
    throw new OpenSearchError(
      400,
      'status_exception',
      'Model cannot be deleted in deploying or deployed state. Try undeploy model first then delete',
    )
  }
  await deleteOne(env, 'model', path.id!)
  return written(MODELS, path.id!, 'deleted', row.version + 1)
}

const entriesOf =
  (kind: string, index: string, shown: (row: ResourceRow) => Json) => async (env: Cloudflare.Env) =>
    (await findAll(env, kind)).map((row) => ({
      _index: index,
      _id: row.id,
      _version: row.version,
      _source: shown(row),
    }))

export const modelEntries = entriesOf('model', MODELS, modelShown)
export const groupEntries = entriesOf('model_group', GROUPS, groupShown)
export const taskEntries = entriesOf('task', TASKS, taskShown)
