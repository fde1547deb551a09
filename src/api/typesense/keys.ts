/** API keys. */
import { createKey, deleteKey, getKey, listKeys } from '../../auth/keys'
import { readJson } from '../edge/body'
import { json } from '../edge/response'
import type { Route } from '../edge/route'

export const keyRoutes: Route[] = [
  {
    method: 'POST',
    path: '/keys',
    action: 'keys:create',
    handle: async ({ env, request, record }) => {
      const key = await createKey(env, await readJson(request))
      record.target = String(key.id)
      return json(key, 201)
    },
  },
  {
    method: 'GET',
    path: '/keys',
    action: 'keys:list',
    handle: async ({ env }) => json({ keys: await listKeys(env) }),
  },
  {
    method: 'GET',
    path: '/keys/:id',
    action: 'keys:get',
    handle: async ({ env, path }) => json(await getKey(env, path.id!)),
  },
  {
    method: 'DELETE',
    path: '/keys/:id',
    action: 'keys:delete',
    handle: async ({ env, path }) => json(await deleteKey(env, path.id!)),
  },
]
