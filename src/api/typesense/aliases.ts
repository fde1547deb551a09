/** Aliases: second names of collections, valid wherever a collection's name is. */
import { deleteAlias, getAlias, listAliases, putAlias } from '../../search/catalog'
import { readJson } from '../edge/body'
import { json } from '../edge/response'
import type { Route } from '../edge/route'

export const aliasRoutes: Route[] = [
  {
    method: 'PUT',
    path: '/aliases/:alias',
    action: 'aliases:upsert',
    handle: async ({ env, request, path }) => json(await putAlias(env, path.alias!, await readJson(request))),
  },
  {
    method: 'GET',
    path: '/aliases',
    action: 'aliases:list',
    handle: async ({ env }) => json({ aliases: await listAliases(env) }),
  },
  {
    method: 'GET',
    path: '/aliases/:alias',
    action: 'aliases:get',
    handle: async ({ env, path }) => json(await getAlias(env, path.alias!)),
  },
  {
    method: 'DELETE',
    path: '/aliases/:alias',
    action: 'aliases:delete',
    handle: async ({ env, path }) => json(await deleteAlias(env, path.alias!)),
  },
]
