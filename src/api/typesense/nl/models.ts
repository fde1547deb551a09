/** Models for natural-language queries. */
import {
  createNlModel,
  deleteNlModel,
  getNlModel,
  listNlModels,
  updateNlModel,
} from '../../../registry/nl-models'
import { readJson } from '../../http/body'
import { json } from '../../http/response'
import type { Route } from '../../http/route'

const MODELS = '/nl_search_models'
const MODEL = `${MODELS}/:id`

export const nlModelRoutes: Route[] = [
  {
    method: 'POST',
    path: MODELS,
    action: 'nl_search_models:create',
    handle: async ({ env, request, record }) => {
      const model = await createNlModel(env, await readJson(request))
      record.target = String(model.id)
      return json(model, 201)
    },
  },
  {
    method: 'GET',
    path: MODELS,
    action: 'nl_search_models:list',
    handle: async ({ env }) => json(await listNlModels(env)),
  },
  {
    method: 'GET',
    path: MODEL,
    action: 'nl_search_models:get',
    handle: async ({ env, path }) => json(await getNlModel(env, path.id!)),
  },
  {
    method: 'PUT',
    path: MODEL,
    action: 'nl_search_models:upsert',
    handle: async ({ env, path, request }) =>
      json(await updateNlModel(env, path.id!, await readJson(request))),
  },
  {
    method: 'DELETE',
    path: MODEL,
    action: 'nl_search_models:delete',
    handle: async ({ env, path }) => json(await deleteNlModel(env, path.id!)),
  },
]
