/** API keys, and conversation models (contract 1.1). */
import { requireCollections } from '../../auth/authenticate'
import { changeKey, createKey, deleteKey, getKey, listKeys } from '../../auth/keys'
import { forbidden } from '../../errors'
import * as models from '../../registry/models'
import { hintingBody, NEEDED, readJson } from '../http/body'
import { json } from '../http/deliver'
import { type Call, type Route, route } from '../http/router'

const KEY = '/keys/:id'

export const keyRoutes: Route[] = [
  route('POST', '/keys', 'keys:create', async ({ env, request, access, record }) => {
    const key = await hintingBody(request, NEEDED.key, (body) => {
      // A key for some collections cannot create keys for others.
      const patterns = (body as { collections?: unknown } | null)?.collections
      if (Array.isArray(patterns) && !patterns.every((pattern) => access.covers(String(pattern)))) {
        throw forbidden()
      }
      return createKey(env, body)
    })
    record.target = String(key.id)
    return json(key, 201)
  }),
  route('GET', '/keys', 'keys:list', async ({ env }) => ({ keys: await listKeys(env) })),
  route('GET', KEY, 'keys:get', ({ env, path }) => getKey(env, path.id!)),
  route('PATCH', KEY, 'keys:update', async ({ env, request, access, path }) => {
    const mayOpen = (collections: string[]) => collections.every((pattern) => access.covers(pattern))
    return changeKey(env, path.id!, await readJson(request), mayOpen)
  }),
  route('DELETE', KEY, 'keys:delete', ({ env, path }) => deleteKey(env, path.id!)),
]

const MODELS = '/conversations/models'
const MODEL = `${MODELS}/:id`

/** Conversations can be read in the history collection, so the key has to allow that collection by name. */
const requireHistory =
  ({ access, record }: Call): models.RequireHistory =>
  (collection) =>
    requireCollections(access, record.action!, [collection], record)

export const modelRoutes: Route[] = [
  route('POST', MODELS, 'conversations/models:create', async (call) => {
    const { env, request, record } = call
    const create = (body: unknown) => models.createModel(env, body, requireHistory(call))
    const model = await hintingBody(request, NEEDED.model, create)
    record.target = model.id
    return json(model, 201)
  }),
  route('GET', MODELS, 'conversations/models:list', ({ env }) => models.listModels(env)),
  route('GET', MODEL, 'conversations/models:get', ({ env, path }) => models.getModel(env, path.id!)),
  route('PUT', MODEL, 'conversations/models:upsert', async (call) =>
    models.updateModel(call.env, call.path.id!, await readJson(call.request), requireHistory(call)),
  ),
  route('DELETE', MODEL, 'conversations/models:delete', (call) =>
    models.deleteModel(call.env, call.path.id!, requireHistory(call)),
  ),
]
