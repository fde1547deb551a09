/** Conversation models (contract 1.1). */
import { createModel, deleteModel, getModel, listModels, updateModel } from '../../conversation/models'
import { readJson } from '../edge/body'
import { json } from '../edge/response'
import type { Route } from '../edge/route'

const MODELS = '/conversations/models'
const MODEL = `${MODELS}/:id`

export const modelRoutes: Route[] = [
  {
    method: 'POST',
    path: MODELS,
    action: 'conversations/models:create',
    handle: async ({ env, request, record }) => {
      const model = await createModel(env, await readJson(request))
      record.target = model.id
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
    handle: async ({ env, request, path }) => json(await updateModel(env, path.id!, await readJson(request))),
  },
  {
    method: 'DELETE',
    path: MODEL,
    action: 'conversations/models:delete',
    handle: async ({ env, path }) => json(await deleteModel(env, path.id!)),
  },
]
