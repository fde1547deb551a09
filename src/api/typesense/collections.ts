/** Collections and aliases. */
import { ADMIN } from '../../auth/access'
import { requireCollections } from '../../auth/admit'
import type { DocumentStore } from '../../engines/port'
import { ApiError, forbidden, plainFailure, unwrap } from '../../errors'
import { rest } from '../../lib/waiting'
import {
  cloneCollection,
  createCollection,
  deleteAlias,
  dropCollection,
  findCollection,
  forgetNames,
  getAlias,
  listAliases,
  listCollections,
  putAlias,
  reconnectCollection,
  switchCollections,
} from '../../registry/collections'
import { documentsOf, nodesOf } from '../../registry/engines'
import { isObject } from '../../search/schema/values'
import type { CollectionSummary } from '../../search/types'
import { hinting, isTrue, listed, NEEDED, readExactJson, readJson, unsigned } from '../http/body'
import { json } from '../http/deliver'
import { originOf } from '../http/request-log'
import type { Call, Route } from '../http/router'

// =============================================================================
// The collection that a route names.

/** @throws ApiError 404 when neither a collection nor an alias has that name */
export async function openCollection(env: Cloudflare.Env, name: string): Promise<DocumentStore> {
  return documentsOf(env, await findCollection(env, name))
}

// =============================================================================
// Collections: their schemas, not their documents.

/**
 * A summary as the request's key may read it. `embedding_error` quotes the embedding provider, so a key made for pages
 * gets a plain message with the request's id, and the log has the provider's words.
 */
function shown(summary: CollectionSummary, { access, record }: Call): CollectionSummary {
  const reason = summary.embedding_error
  if (!access.forPages || typeof reason !== 'string') return summary
  const plain = plainFailure({ status: 503, message: reason, confidential: true }, record.requestId)
  return { ...summary, embedding_error: plain.message }
}

async function create(call: Call): Promise<Response> {
  const { env, request, query, access, record } = call
  // `metadata` is the owner's own JSON.
  const body = await readExactJson(request)
  const name = (body as { name?: unknown } | null)?.name
  if (typeof name === 'string') record.target = name
  // The name is in the body, so the table could only check the action.
  if (typeof name === 'string') requireCollections(access, 'collections:create', [name], record)
  const source = query.src_name
  if (source === undefined) {
    const fields = (body as { fields?: unknown } | null)?.fields
    const create = () => hinting(fields, NEEDED.field, () => createCollection(env, body, originOf(record)))
    return json(await hinting(body, NEEDED.collection, create), 201)
  }
  const copies = isTrue(query.copy_documents)
  requireCollections(access, 'collections:get', [source], record)
  // A copy exports the documents to everyone who may read the new collection.
  if (copies) requireCollections(access, 'documents:export', [source], record)
  return json(shown(await cloneCollection(env, source, body, copies, originOf(record)), call), 201)
}

async function list(call: Call): Promise<Response> {
  const { env, query, access } = call
  const offset = unsigned(query.offset, 'Offset param should be unsigned integer.')
  const limit = unsigned(query.limit, 'Limit param should be unsigned integer.')
  const summaries = await listCollections(env, { limit, offset })
  const excluded = listed(query.exclude_fields)
  const visible = summaries.filter((summary) => access.allows('collections:list', summary.name))
  return json(
    visible.map((summary) =>
      Object.fromEntries(Object.entries(shown(summary, call)).filter(([key]) => !excluded.includes(key))),
    ),
  )
}

async function get(call: Call): Promise<Response> {
  const collection = await openCollection(call.env, call.path.collection!)
  return json(shown(unwrap(await collection.summary()), call))
}

/** The present health of the nodes of the collection's cluster. */
async function nodes({ access, env, path }: Call): Promise<Response> {
  // They tell where the cluster is, and what keeps Parley from calling it.
  if (access.forPages) throw forbidden()
  return json({ nodes: await nodesOf(env, await findCollection(env, path.collection!)) })
}

async function alter(call: Call): Promise<Response> {
  const { env, request, path } = call
  const collection = await openCollection(env, path.collection!)
  const body = await readExactJson(request)
  if (isObject(body)) {
    const { engine, switch_with: other } = body
    if (engine !== undefined) return changeEngine(env, path.collection!, engine, body)
    if (other !== undefined) return switchWith(call, other, body)
  }
  const echo = unwrap(await collection.alter(body, originOf(call.record)))
  for (let done = false; !done; ) {
    done = (await collection.reindex(originOf(call.record))).done
    if (!done) await rest()
  }
  forgetNames()
  return json(echo)
}

async function changeEngine(
  env: Cloudflare.Env,
  name: string,
  engine: unknown,
  body: Record<string, unknown>,
): Promise<Response> {
  requireAlone(body, 'engine')
  return json(await reconnectCollection(env, name, engine))
}

async function switchWith(
  { env, path, access }: Call,
  other: unknown,
  body: Record<string, unknown>,
): Promise<Response> {
  // A key that may search this name would then read other documents.
  if (access.owner !== ADMIN.owner) {
    throw new ApiError(401, 'Forbidden - only the admin key has collections change places.')
  }
  requireAlone(body, 'switch_with')
  return json(await switchCollections(env, path.collection!, other))
}

/** @throws ApiError 400 */
function requireAlone(body: Record<string, unknown>, property: string): void {
  const other = Object.keys(body).find((name) => name !== property)
  if (other === undefined) return
  throw new ApiError(400, `\`${property}\` is changed alone: send \`${other}\` in a request of its own.`)
}

async function drop(call: Call): Promise<Response> {
  return json(shown(await dropCollection(call.env, call.path.collection!), call))
}

const COLLECTION = '/collections/:collection'

export const collectionRoutes: Route[] = [
  { method: 'POST', path: '/collections', action: 'collections:create', handle: create },
  { method: 'GET', path: '/collections', action: 'collections:list', handle: list },
  { method: 'GET', path: COLLECTION, action: 'collections:get', handle: get },
  { method: 'GET', path: `${COLLECTION}/nodes`, action: 'collections:get', handle: nodes },
  { method: 'PATCH', path: COLLECTION, action: 'collections:update', handle: alter },
  { method: 'DELETE', path: COLLECTION, action: 'collections:delete', handle: drop },
]

// =============================================================================
// Aliases: second names of collections, valid wherever a collection's name is. Anyone who may use an alias's name can
// use the alias. So a key must allow the alias by name, and to point an alias somewhere it must allow that collection
// too.

const ALIAS = '/aliases/:alias'

const requireAlias = ({ access, path, record }: Call): void =>
  requireCollections(access, record.action!, [path.alias!], record)

async function upsert(call: Call): Promise<Response> {
  const { env, request, path, access, record } = call
  requireAlias(call)
  const body = await readJson(request)
  const target = (body as { collection_name?: unknown } | null)?.collection_name
  if (typeof target === 'string') requireCollections(access, record.action!, [target], record)
  return json(await hinting(body, NEEDED.alias, () => putAlias(env, path.alias!, body)))
}

async function showAliases({ env, access }: Call): Promise<Response> {
  const aliases = await listAliases(env)
  return json({ aliases: aliases.filter(({ name }) => access.allows('aliases:list', name)) })
}

async function showAlias(call: Call): Promise<Response> {
  requireAlias(call)
  return json(await getAlias(call.env, call.path.alias!))
}

async function remove(call: Call): Promise<Response> {
  requireAlias(call)
  return json(await deleteAlias(call.env, call.path.alias!))
}

export const aliasRoutes: Route[] = [
  { method: 'PUT', path: ALIAS, action: 'aliases:upsert', handle: upsert },
  { method: 'GET', path: '/aliases', action: 'aliases:list', handle: showAliases },
  { method: 'GET', path: ALIAS, action: 'aliases:get', handle: showAlias },
  { method: 'DELETE', path: ALIAS, action: 'aliases:delete', handle: remove },
]
