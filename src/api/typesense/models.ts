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
import { readJson } from '../edge/body'
import { json } from '../edge/response'
import type { Call, Route } from '../edge/route'

const MODELS = '/conversations/models'
const MODEL = `${MODELS}/:id`

/** What is said to a model can be read in its history, so its key has to name that collection. */
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
      const model = await createModel(call.env, await readJson(call.request), requireHistory(call))
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
