/** API keys. */
import { changeKey, createKey, deleteKey, getKey, listKeys } from '../../auth/keys'
import { forbidden } from '../../errors'
import { hinting, NEEDED, readJson } from '../http/body'
import { json } from '../http/deliver'
import type { Route } from '../http/router'

export const keyRoutes: Route[] = [
  {
    method: 'POST',
    path: '/keys',
    action: 'keys:create',
    handle: async ({ env, request, access, record }) => {
      const body = await readJson(request)
      // A key for some collections cannot create keys for others.
      const patterns = (body as { collections?: unknown } | null)?.collections
      if (Array.isArray(patterns) && !patterns.every((pattern) => access.covers(String(pattern)))) {
        throw forbidden()
      }
      const key = await hinting(body, NEEDED.key, () => createKey(env, body))
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
    method: 'PATCH',
    path: '/keys/:id',
    action: 'keys:update',
    handle: async ({ env, request, access, record, path }) => {
      const mayOpen = (collections: string[]) => collections.every((pattern) => access.covers(pattern))
      record.target = path.id!
      return json(await changeKey(env, path.id!, await readJson(request), mayOpen))
    },
  },
  {
    method: 'DELETE',
    path: '/keys/:id',
    action: 'keys:delete',
    handle: async ({ env, path }) => json(await deleteKey(env, path.id!)),
  },
]
