/** Routes of the ML plugin except its memory: connectors, model groups, models, tasks and predictions. */
import type { Call } from '../../http/route'
import { type Entry, searchEntries } from '../json-query'
import { type Json, type OpenSearchRoute, readObject } from '../route'
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

const SEARCHED = {
  methods: ['GET', 'POST'],
  actions: may('list'),
  params: ['from', 'size', 'sort', '_source', '_source_includes', '_source_excludes'],
} satisfies Partial<OpenSearchRoute>

export const mlRoutes: OpenSearchRoute[] = [
  { methods: ['POST'], path: `${ML}/connectors/_create`, actions: may('create'), handle: createConnector },
  { ...SEARCHED, path: `${ML}/connectors/_search`, handle: searches(connectorEntries) },
  { methods: ['GET'], path: `${ML}/connectors/:id`, actions: may('get'), handle: getConnector },
  { methods: ['PUT'], path: `${ML}/connectors/:id`, actions: may('upsert'), handle: updateConnector },
  { methods: ['DELETE'], path: `${ML}/connectors/:id`, actions: may('delete'), handle: deleteConnector },
  { methods: ['POST'], path: `${ML}/model_groups/_register`, actions: may('create'), handle: registerGroup },
  { ...SEARCHED, path: `${ML}/model_groups/_search`, handle: searches(groupEntries) },
  { methods: ['GET'], path: `${ML}/model_groups/:id`, actions: may('get'), handle: getGroup },
  { methods: ['PUT'], path: `${ML}/model_groups/:id`, actions: may('upsert'), handle: updateGroup },
  { methods: ['DELETE'], path: `${ML}/model_groups/:id`, actions: may('delete'), handle: deleteGroup },
  {
    methods: ['POST'],
    path: `${ML}/models/_register`,
    actions: may('create'),
    params: ['deploy'],
    handle: registerModel,
  },
  { ...SEARCHED, path: `${ML}/models/_search`, handle: searches(modelEntries) },
  { methods: ['POST'], path: `${ML}/models/:id/_deploy`, actions: may('upsert'), handle: deployModel },
  { methods: ['POST'], path: `${ML}/models/:id/_undeploy`, actions: may('upsert'), handle: undeployModel },
  { methods: ['POST'], path: `${ML}/models/:id/_predict`, actions: may('create'), handle: predictModel },
  {
    methods: ['POST'],
    path: `${ML}/models/:id/_predict/stream`,
    actions: may('create'),
    handle: streamPrediction,
  },
  { methods: ['POST'], path: `${ML}/_predict/:algorithm/:id`, actions: may('create'), handle: predictModel },
  { methods: ['GET'], path: `${ML}/models/:id`, actions: may('get'), handle: getModel },
  { methods: ['DELETE'], path: `${ML}/models/:id`, actions: may('delete'), handle: deleteModel },
  { ...SEARCHED, path: `${ML}/tasks/_search`, handle: searches(taskEntries) },
  { methods: ['GET'], path: `${ML}/tasks/:id`, actions: may('get'), handle: getTask },
  { methods: ['DELETE'], path: `${ML}/tasks/:id`, actions: may('delete'), handle: deleteTask },
]
