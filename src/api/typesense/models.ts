/** Conversation models (contract 1.1). */
import { requireCollections } from '../../auth/admit'
import {
  createModel,
  deleteModel,
  getModel,
  listModels,
  type RequireHistory,
  updateModel,
} from '../../registry/models'
import { hinting, NEEDED, readJson } from '../http/body'
import { json } from '../http/deliver'
import type { Call, Route } from '../http/router'

const MODELS = '/conversations/models'
const MODEL = `${MODELS}/:id`

/** Conversations can be read in the history collection, so the key has to allow that collection by name. */
const requireHistory =
  ({ access, record }: Call): RequireHistory =>
  (collection) =>
    requireCollections(access, record.action!, [collection], record)

export const modelRoutes: Route[] = [
  {
    method: 'POST',
    path: MODELS,
    action: 'conversations/models:create',
    handle: async (call) => {
      const body = await readJson(call.request)
      const model = await hinting(body, NEEDED.model, () => createModel(call.env, body, requireHistory(call)))
      call.record.target = model.id
      return json(model, 201)
    },
  },
  {
    method: 'GET',
    path: MODELS,
    action: 'conversations/models:list',
    handle: async ({ env }) => json(await listModels(env)),
  },
  {
    method: 'GET',
    path: MODEL,
    action: 'conversations/models:get',
    handle: async ({ env, path }) => json(await getModel(env, path.id!)),
  },
  {
    method: 'PUT',
    path: MODEL,
    action: 'conversations/models:upsert',
    handle: async (call) =>
      json(await updateModel(call.env, call.path.id!, await readJson(call.request), requireHistory(call))),
  },
  {
    method: 'DELETE',
    path: MODEL,
    action: 'conversations/models:delete',
    handle: async (call) => json(await deleteModel(call.env, call.path.id!, requireHistory(call))),
  },
]
