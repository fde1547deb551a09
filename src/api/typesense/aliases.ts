/**
 * Aliases: second names of collections, valid wherever a collection's name is. Anyone who may use an alias's name can
 * use the alias. So a key must allow the alias by name, and to point an alias somewhere it must allow that collection
 * too.
 */
import { requireCollections } from '../../auth/admit'
import { deleteAlias, getAlias, listAliases, putAlias } from '../../registry/collections'
import { readJson } from '../http/body'
import { hinting, NEEDED } from '../http/parameters'
import { json } from '../http/response'
import type { Call, Route } from '../http/route'

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

async function list({ env, access }: Call): Promise<Response> {
  const aliases = await listAliases(env)
  return json({ aliases: aliases.filter(({ name }) => access.allows('aliases:list', name)) })
}

async function get(call: Call): Promise<Response> {
  requireAlias(call)
  return json(await getAlias(call.env, call.path.alias!))
}

async function remove(call: Call): Promise<Response> {
  requireAlias(call)
  return json(await deleteAlias(call.env, call.path.alias!))
}

export const aliasRoutes: Route[] = [
  { method: 'PUT', path: ALIAS, action: 'aliases:upsert', handle: upsert },
  { method: 'GET', path: '/aliases', action: 'aliases:list', handle: list },
  { method: 'GET', path: ALIAS, action: 'aliases:get', handle: get },
  { method: 'DELETE', path: ALIAS, action: 'aliases:delete', handle: remove },
]
