/** Routes of the ML plugin except its memory: connectors, model groups, models, tasks and predictions. */
import type { Call } from '../../http/route'
import { type Entry, searchEntries } from '../json-query'
import { type Json, readObject, routesOf } from '../route'
import {
  connectorEntries,
  createConnector,
  deleteConnector,
  getConnector,
  updateConnector,
} from './connectors'
import {
  deleteGroup,
  deleteModel,
  deleteTask,
  deployModel,
  getGroup,
  getModel,
  getTask,
  groupEntries,
  modelEntries,
  registerGroup,
  registerModel,
  taskEntries,
  undeployModel,
  updateGroup,
} from './models'
import { predictModel, streamPrediction } from './predict'

const ML = '/_plugins/_ml'
/** The same rights as for conversation models: whoever may write one can have calls made with its credentials. */
const may = (verb: string): string[] => [`conversations/models:${verb}`]

const searches =
  (entries: (env: Cloudflare.Env) => Promise<Entry[]>) =>
  async (call: Call): Promise<Json> =>
    searchEntries(await entries(call.env), await readObject(call.request, {}), call.query)

const SEARCH = ['from', 'size', 'sort', '_source', '_source_includes', '_source_excludes']

export const mlRoutes = routesOf([
  ['POST', `${ML}/connectors/_create`, may('create'), createConnector],
  ['GET POST', `${ML}/connectors/_search`, may('list'), searches(connectorEntries), SEARCH],
  ['GET', `${ML}/connectors/:id`, may('get'), getConnector],
  ['PUT', `${ML}/connectors/:id`, may('upsert'), updateConnector],
  ['DELETE', `${ML}/connectors/:id`, may('delete'), deleteConnector],
  ['POST', `${ML}/model_groups/_register`, may('create'), registerGroup],
  ['GET POST', `${ML}/model_groups/_search`, may('list'), searches(groupEntries), SEARCH],
  ['GET', `${ML}/model_groups/:id`, may('get'), getGroup],
  ['PUT', `${ML}/model_groups/:id`, may('upsert'), updateGroup],
  ['DELETE', `${ML}/model_groups/:id`, may('delete'), deleteGroup],
  ['POST', `${ML}/models/_register`, may('create'), registerModel, ['deploy']],
  ['GET POST', `${ML}/models/_search`, may('list'), searches(modelEntries), SEARCH],
  ['POST', `${ML}/models/:id/_deploy`, may('upsert'), deployModel],
  ['POST', `${ML}/models/:id/_undeploy`, may('upsert'), undeployModel],
  ['POST', `${ML}/models/:id/_predict`, may('create'), predictModel],
  ['POST', `${ML}/models/:id/_predict/stream`, may('create'), streamPrediction],
  ['POST', `${ML}/_predict/:algorithm/:id`, may('create'), predictModel],
  ['GET', `${ML}/models/:id`, may('get'), getModel],
  ['DELETE', `${ML}/models/:id`, may('delete'), deleteModel],
  ['GET POST', `${ML}/tasks/_search`, may('list'), searches(taskEntries), SEARCH],
  ['GET', `${ML}/tasks/:id`, may('get'), getTask],
  ['DELETE', `${ML}/tasks/:id`, may('delete'), deleteTask],
])
