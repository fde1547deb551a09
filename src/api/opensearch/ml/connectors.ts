/** Connectors: how a remote model is called. Secrets go in and never come out. */

import { isSensitiveHeader } from '../../../models/connector'
import { namesIn } from '../../../models/connector/template'
import {
  connectorIn,
  deleteOne,
  findAll,
  findOne,
  modelIn,
  type ResourceRow,
  requireCallable,
  type StoredConnector,
  storeConnector,
} from '../../../registry/resources'
import type { Call } from '../../http/route'
import { OpenSearchError } from '../errors'
import { isObject, type Json, readObject } from '../route'
import { newId } from '../source'
import { allowText, badRequest, notFound, requireKnown, requireText, textsOf, written } from './shapes'

export const CONNECTORS = '.plugins-ml-connector'
const KEYS = [
  'name',
  'description',
  'version',
  'protocol',
  'parameters',
  'credential',
  'actions',
  'backend_roles',
  'access_mode',
  // Its timeouts and numbers of connections are Parley's own here.
  'client_config',
]
const ACTION_KEYS = [
  'action_type',
  'name',
  'method',
  'url',
  'headers',
  'request_body',
  // How texts become vectors: predictions take and return the provider's own JSON here.
  'pre_process_function',
  'post_process_function',
]

export async function createConnector(call: Call): Promise<Json> {
  return { connector_id: await makeConnector(call.env, await readObject(call.request)) }
}

/** @returns its id @throws ApiError 400 */
export async function makeConnector(env: Cloudflare.Env, body: Json): Promise<string> {
  const id = newId()
  const { stored, credential } = parseConnector(body)
  await requireCallable(env, stored)
  await storeConnector(env, id, stored, credential)
  return id
}

/**
 * Parses a definition, with the plugin's checks in the plugin's order.
 * @param keepsCredential whether a stored credential stays, and stands in the body under another name
 * @throws ApiError 400
 */
function parseConnector(
  body: Json,
  keepsCredential = false,
): { stored: StoredConnector; credential: Record<string, string> } {
  requireKnown(body, KEYS, 'a connector')
  const name = requireText(body.name, 'Connector name is null')
  const version = body.version === undefined || body.version === null ? '' : String(body.version)
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
  return {
    stored: {
      name,
      ...(description !== undefined && { description }),
      version,
      protocol,
      parameters,
      actions: body.actions.map(parseAction),
    },
    credential,
  }
}

function parseAction(given: unknown): StoredConnector['actions'][number] {
  if (!isObject(given)) throw badRequest('No actions configured for this connector')
  requireKnown(given, ACTION_KEYS, 'an action')
  const type = requireText(given.action_type, "action type can't be null").toUpperCase()
  if (type !== 'PREDICT') throw badRequest(`[action_type: ${type}] is not supported here`)
  const url = requireText(given.url, "url can't be null")
  const method = requireText(given.method, "method can't be null").toUpperCase()
  if (method !== 'POST' && method !== 'GET') throw badRequest(`[method: ${method}] is not supported here`)
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
  return { action_type: type, method, url, headers, ...(request_body !== undefined && { request_body }) }
}

const shown = (row: ResourceRow): Json => ({
  ...connectorIn(row),
  created_time: row.createdAt,
  last_updated_time: row.updatedAt,
})

const missing = (id: string) => notFound(`Failed to find connector with the provided connector id: ${id}`)

export async function getConnector({ env, path }: Call): Promise<Json> {
  const row = await findOne(env, 'connector', path.id!)
  if (row === undefined) throw missing(path.id!)
  return shown(row)
}

/** Given values replace stored ones. If the host changes, the credential must be sent too. */
export async function updateConnector({ env, path, request }: Call): Promise<Json> {
  const id = path.id!
  const body = await readObject(request)
  const row = await findOne(env, 'connector', id)
  if (row === undefined) throw missing(id)
  await requireUnused(env, id)
  const old = connectorIn(row)
  const keeps = body.credential === undefined
  const { stored, credential } = parseConnector({ credential: { kept: 'kept' }, ...old, ...body }, keeps)
  await requireCallable(env, stored)
  const moves =
    JSON.stringify([old.protocol, old.parameters, old.actions.map(({ url }) => url)]) !==
    JSON.stringify([stored.protocol, stored.parameters, stored.actions.map(({ url }) => url)])
  if (keeps && moves) {
    throw badRequest(
      'The change may have the connector call elsewhere, where its stored credential does not go. Send [credential] again.',
    )
  }
  const given = keeps ? undefined : credential
  return written(CONNECTORS, id, 'updated', await storeConnector(env, id, stored, given, row.sealed))
}

export async function deleteConnector({ env, path }: Call): Promise<Json> {
  const id = path.id!
  await requireUnused(env, id)
  const deleted = await deleteOne(env, 'connector', id)
  return written(CONNECTORS, id, deleted ? 'deleted' : 'not_found', 2)
}

/** @throws ApiError 409 while a model uses it */
async function requireUnused(env: Cloudflare.Env, id: string): Promise<void> {
  const users = (await findAll(env, 'model')).filter((row) => modelIn(row).connector === id)
  if (users.length === 0) return
  const ids = users.map((row) => row.id).join(', ')
  throw new OpenSearchError(
    409,
    'status_exception',
    `${users.length} models are still using this connector, please delete or update the models first: [${ids}]`,
  )
}

export const connectorEntries = async (env: Cloudflare.Env) =>
  (await findAll(env, 'connector')).map((row) => ({
    _index: CONNECTORS,
    _id: row.id,
    _version: row.version,
    _source: shown(row),
  }))
