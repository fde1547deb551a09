/** Collections and aliases. */
import { ADMIN } from '../../auth/access'
import { requireCollections } from '../../auth/authenticate'
import { type DocumentStore, steps } from '../../engines/port'
import { ApiError, badRequest, forbidden, plainFailure, unwrap } from '../../errors'
import { rest } from '../../lib/waiting'
import * as registry from '../../registry/collections'
import { documentsOf, nodesOf } from '../../registry/engines'
import { isObject } from '../../search/schema/values'
import type { CollectionSummary } from '../../search/types'
import { hinting, hintingBody, isTrue, listed, NEEDED, readExactJson, unsigned } from '../http/body'
import { json } from '../http/deliver'
import { originOf } from '../http/request-log'
import { type Call, type Route, route } from '../http/router'

/** The collection that a route names. @throws ApiError 404 when neither a collection nor an alias has that name */
export async function openCollection(env: Cloudflare.Env, name: string): Promise<DocumentStore> {
  return documentsOf(env, await registry.findCollection(env, name))
}

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
    const create = () =>
      hinting(fields, NEEDED.field, () => registry.createCollection(env, body, originOf(record)))
    return json(await hinting(body, NEEDED.collection, create), 201)
  }
  const copies = isTrue(query.copy_documents)
  requireCollections(access, 'collections:get', [source], record)
  // A copy exports the documents to everyone who may read the new collection.
  if (copies) requireCollections(access, 'documents:export', [source], record)
  return json(shown(await registry.cloneCollection(env, source, body, copies, originOf(record)), call), 201)
}

async function list(call: Call): Promise<object[]> {
  const { env, query, access } = call
  const offset = unsigned(query.offset, 'Offset param should be unsigned integer.')
  const limit = unsigned(query.limit, 'Limit param should be unsigned integer.')
  const summaries = await registry.listCollections(env, { limit, offset })
  const excluded = listed(query.exclude_fields)
  const visible = summaries.filter((summary) => access.allows('collections:list', summary.name))
  return visible.map((summary) =>
    Object.fromEntries(Object.entries(shown(summary, call)).filter(([key]) => !excluded.includes(key))),
  )
}

async function get(call: Call): Promise<CollectionSummary> {
  const collection = await openCollection(call.env, call.path.collection!)
  return shown(unwrap(await collection.summary()), call)
}

/** The present health of the nodes of the collection's cluster. */
async function nodes({ access, env, path }: Call): Promise<object> {
  // They tell where the cluster is, and what keeps Parley from calling it.
  if (access.forPages) throw forbidden()
  return { nodes: await nodesOf(env, await registry.findCollection(env, path.collection!)) }
}

async function alter(call: Call): Promise<object> {
  const { env, request, path, access } = call
  const name = path.collection!
  const collection = await openCollection(env, name)
  const body = await readExactJson(request)
  if (isObject(body) && body.engine !== undefined) {
    requireAlone(body, 'engine')
    return registry.reconnectCollection(env, name, body.engine)
  }
  if (isObject(body) && body.switch_with !== undefined) {
    // A key that may search this name would then read other documents.
    if (access.owner !== ADMIN.owner) {
      throw new ApiError(401, 'Forbidden - only the admin key has collections change places.')
    }
    requireAlone(body, 'switch_with')
    return registry.switchCollections(env, name, body.switch_with)
  }
  const echo = unwrap(await collection.alter(body, originOf(call.record)))
  for await (const { done } of steps(() => collection.reindex(originOf(call.record)))) if (!done) await rest()
  registry.forgetNames()
  return echo
}

/** @throws ApiError 400 */
function requireAlone(body: Record<string, unknown>, property: string): void {
  const other = Object.keys(body).find((name) => name !== property)
  if (other === undefined) return
  throw badRequest(`\`${property}\` is changed alone: send \`${other}\` in a request of its own.`)
}

const drop = async (call: Call): Promise<CollectionSummary> =>
  shown(await registry.dropCollection(call.env, call.path.collection!), call)

const COLLECTION = '/collections/:collection'

export const collectionRoutes: Route[] = [
  route('POST', '/collections', 'collections:create', create),
  route('GET', '/collections', 'collections:list', list),
  route('GET', COLLECTION, 'collections:get', get),
  route('GET', `${COLLECTION}/nodes`, 'collections:get', nodes),
  route('PATCH', COLLECTION, 'collections:update', alter),
  route('DELETE', COLLECTION, 'collections:delete', drop),
]

// =============================================================================
// Aliases: second names of collections, valid wherever a collection's name is. Anyone who may use an alias's name can
// use the alias. So a key must allow the alias by name, and to point an alias somewhere it must allow that collection
// too.

const ALIAS = '/aliases/:alias'

const requireAlias = ({ access, path, record }: Call): void =>
  requireCollections(access, record.action!, [path.alias!], record)

export const aliasRoutes: Route[] = [
  route('PUT', ALIAS, 'aliases:upsert', (call) => {
    const { env, request, path, access, record } = call
    requireAlias(call)
    return hintingBody(request, NEEDED.alias, (body) => {
      const target = (body as { collection_name?: unknown } | null)?.collection_name
      if (typeof target === 'string') requireCollections(access, record.action!, [target], record)
      return registry.putAlias(env, path.alias!, body)
    })
  }),
  route('GET', '/aliases', 'aliases:list', async ({ env, access }) => {
    const aliases = await registry.listAliases(env)
    return { aliases: aliases.filter(({ name }) => access.allows('aliases:list', name)) }
  }),
  route('GET', ALIAS, 'aliases:get', (call) => {
    requireAlias(call)
    return registry.getAlias(call.env, call.path.alias!)
  }),
  route('DELETE', ALIAS, 'aliases:delete', (call) => {
    requireAlias(call)
    return registry.deleteAlias(call.env, call.path.alias!)
  }),
]
