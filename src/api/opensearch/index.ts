/** OpenSearch's HTTP API for indices, documents and searches, on the same collections as all other APIs. */
import { once } from '../../lib/once'
import { servePage } from '../http/html-pages'
import type { App, OpenCall } from '../http/route'
import { register } from '../http/route'
import { bulk } from './bulk'
import { catIndices, health, info } from './cluster'
import { deleteByQuery } from './delete-by-query'
import { deleteDocument, getDocument, getSource, indexDocument, multiGet, updateDocument } from './documents'
import { answer, openSearchError } from './errors'
import {
  changeAlias,
  createIndex,
  deleteIndices,
  getAliases,
  getIndex,
  getMapping,
  getSettings,
  putSettings as putIndexSettings,
  putMapping,
  refresh,
  updateAliases,
} from './indices'
import { memoryRoutes } from './memory/routes'
import { mlRoutes } from './ml/routes'
import { multiSearch } from './multi-search'
import { deletePipelines, getPipelines, putPipeline } from './pipelines'
import { beginSearch } from './prefetch'
import { acceptsPage, admitCaller, isOn, keyOf, type OpenSearchRoute, registerAll } from './route'
import { clearScroll, nextPage, searchOrScroll } from './scroll'
import { count } from './search'
import { OF_SHARDS, SEARCH_PARAMETERS } from './search-body'
import { putSettings, settings } from './settings'

export { incorrectMethod, noHandler } from './errors'
export { beginSearch } from './prefetch'
export { keyOf } from './route'

const INDEX = '/:collection'
const PIPELINES = '/_search/pipeline'
const DOCUMENT = `${INDEX}/_doc/:id`
const SEE = ['debug:list']
/** The cluster is always green, and waits for nothing. */
const WAITS = [
  'wait_for_status',
  'wait_for_nodes',
  'wait_for_events',
  'wait_for_no_relocating_shards',
  'wait_for_no_initializing_shards',
]
const READ_SOURCE = [
  '_source',
  '_source_includes',
  '_source_excludes',
  'routing',
  'refresh',
  'preference',
  'realtime',
]
const SCROLL = ['scroll', 'scroll_id', 'rest_total_hits_as_int']
const WRITE = ['refresh', 'routing', 'op_type']
/** How a deletion goes on, which is one step here. */
const STEPS = ['refresh', 'routing', 'scroll', 'scroll_size', 'search_timeout', 'search_type', 'preference']
/** Writes are visible at once. So any key that can read or write may ask for a refresh. */
const REFRESH = ['documents:search', 'documents:import', 'documents:create', 'collections:get']

const both = (path: string, route: Omit<OpenSearchRoute, 'path'>): OpenSearchRoute[] => [
  { ...route, path },
  { ...route, path: INDEX + path },
]

const routes: OpenSearchRoute[] = [
  { methods: ['GET'], path: '/_cluster/health', actions: SEE, params: WAITS, handle: health },
  { methods: ['GET'], path: '/_cluster/health/:collection', actions: SEE, params: WAITS, handle: health },
  {
    methods: ['GET'],
    path: '/_cluster/settings',
    actions: SEE,
    params: ['flat_settings', 'include_defaults'],
    handle: settings,
  },
  { methods: ['PUT'], path: '/_cluster/settings', actions: ['settings:update'], handle: putSettings },
  { methods: ['GET'], path: PIPELINES, actions: ['search_pipelines:get'], handle: getPipelines },
  { methods: ['GET'], path: `${PIPELINES}/:id`, actions: ['search_pipelines:get'], handle: getPipelines },
  { methods: ['PUT'], path: `${PIPELINES}/:id`, actions: ['search_pipelines:upsert'], handle: putPipeline },
  {
    methods: ['DELETE'],
    path: `${PIPELINES}/:id`,
    actions: ['search_pipelines:delete'],
    handle: deletePipelines,
  },
  ...['/_cat/indices', '/_cat/indices/:index'].map(
    (path): OpenSearchRoute => ({
      methods: ['GET'],
      path,
      actions: ['collections:list'],
      params: ['format', 'v', 'h', 's'],
      handle: catIndices,
    }),
  ),
  ...both('/_aliases', { methods: ['GET'], actions: ['aliases:list'], handle: getAliases }),
  ...both('/_alias', { methods: ['GET'], actions: ['aliases:list'], handle: getAliases }),
  ...both('/_alias/:alias', { methods: ['GET'], actions: ['aliases:list'], handle: getAliases }),
  ...(['/_alias/:alias', '/_aliases/:alias'] as const).flatMap((path): OpenSearchRoute[] => [
    { methods: ['PUT', 'POST'], path: INDEX + path, actions: ['aliases:upsert'], handle: changeAlias },
    { methods: ['DELETE'], path: INDEX + path, actions: ['aliases:delete'], handle: changeAlias },
  ]),
  {
    methods: ['POST'],
    path: '/_aliases',
    actions: ['aliases:upsert', 'aliases:delete'],
    handle: updateAliases,
  },
  { methods: ['GET', 'POST'], path: '/_refresh', actions: REFRESH, handle: refresh },
  { methods: ['GET', 'POST'], path: '/_all/_refresh', actions: REFRESH, handle: refresh },
  { methods: ['GET', 'POST'], path: `${INDEX}/_refresh`, actions: REFRESH, handle: refresh },
  ...both('/_bulk', {
    methods: ['POST', 'PUT'],
    actions: ['documents:import', 'documents:delete'],
    params: ['refresh', 'routing'],
    handle: bulk,
  }),
  ...both('/_mget', {
    methods: ['GET', 'POST'],
    actions: ['documents:get'],
    params: READ_SOURCE,
    handle: multiGet,
  }),
  ...both('/_msearch', {
    methods: ['GET', 'POST'],
    actions: ['documents:search'],
    params: ['typed_keys', 'rest_total_hits_as_int', 'max_concurrent_searches', ...OF_SHARDS],
    handle: multiSearch,
  }),
  {
    methods: ['GET', 'POST'],
    path: `${INDEX}/_search`,
    actions: ['documents:search'],
    params: [...SEARCH_PARAMETERS, 'scroll'],
    begin: beginSearch,
    handle: searchOrScroll,
  },
  ...['/_search/scroll', '/_search/scroll/:id'].flatMap((path): OpenSearchRoute[] => [
    { methods: ['GET', 'POST'], path, actions: ['documents:search'], params: SCROLL, handle: nextPage },
    { methods: ['DELETE'], path, actions: ['documents:search'], handle: clearScroll },
  ]),
  {
    methods: ['GET', 'POST'],
    path: `${INDEX}/_count`,
    actions: ['documents:search'],
    params: ['q', 'df', 'default_operator', 'preference', 'routing'],
    handle: count,
  },
  {
    methods: ['POST'],
    path: `${INDEX}/_delete_by_query`,
    actions: ['documents:delete'],
    params: ['q', 'df', 'default_operator', 'conflicts', 'wait_for_completion', ...STEPS],
    handle: deleteByQuery,
  },
  { methods: ['GET'], path: DOCUMENT, actions: ['documents:get'], params: READ_SOURCE, handle: getDocument },
  {
    methods: ['GET'],
    path: `${INDEX}/_source/:id`,
    actions: ['documents:get'],
    params: READ_SOURCE,
    handle: getSource,
  },
  {
    methods: ['POST'],
    path: `${INDEX}/_doc`,
    actions: ['documents:create'],
    params: WRITE,
    handle: indexDocument,
  },
  {
    methods: ['PUT', 'POST'],
    path: DOCUMENT,
    actions: ['documents:create'],
    params: WRITE,
    handle: indexDocument,
  },
  {
    methods: ['PUT', 'POST'],
    path: `${INDEX}/_create/:id`,
    actions: ['documents:create'],
    params: WRITE,
    handle: indexDocument,
  },
  {
    methods: ['DELETE'],
    path: DOCUMENT,
    actions: ['documents:delete'],
    params: ['refresh', 'routing'],
    handle: deleteDocument,
  },
  {
    methods: ['POST'],
    path: `${INDEX}/_update/:id`,
    actions: ['documents:update'],
    params: ['refresh', 'routing', 'retry_on_conflict'],
    handle: updateDocument,
  },
  { methods: ['GET'], path: `${INDEX}/_mapping`, actions: ['collections:get'], handle: getMapping },
  {
    methods: ['PUT', 'POST'],
    path: `${INDEX}/_mapping`,
    actions: ['collections:update'],
    handle: putMapping,
  },
  { methods: ['GET'], path: `${INDEX}/_settings`, actions: ['collections:get'], handle: getSettings },
  {
    methods: ['PUT'],
    path: `${INDEX}/_settings`,
    actions: ['collections:update'],
    handle: putIndexSettings,
  },
  { methods: ['GET'], path: INDEX, actions: ['collections:get'], handle: getIndex },
  { methods: ['PUT'], path: INDEX, actions: ['collections:create'], handle: createIndex },
  { methods: ['DELETE'], path: INDEX, actions: ['collections:delete'], handle: deleteIndices },
]

/**
 * `GET /`: the console for a browser. An OpenSearch client, which brings a key or asks for JSON, gets the server's
 * name and version.
 */
async function root(call: OpenCall): Promise<Response> {
  const { env, request, query, record } = call
  const { headers } = request
  const isClient = keyOf(request) !== undefined || /\bjson\b/.test(headers.get('accept') ?? '')
  if (acceptsPage(request) || !isClient) {
    return servePage(env, request, env.CONSOLE === 'on' ? '/' : '/off')
  }
  try {
    await admitCaller(call, SEE)
    return answer(info(), 200, isOn(query.pretty) ? 2 : undefined)
  } catch (error) {
    return openSearchError(error, record, false)
  }
}

/** Mounted last, so that the first word of another API's path is never taken for an index. */
export function mountOpenSearch(app: App): void {
  const others = app.routes.length
  // `POST /ask` is no address of an index.
  const reserved = once(
    () =>
      new Set(
        app.routes
          .slice(0, others)
          .flatMap(({ path }) => (path === '/ask' ? [] : (path.split('/')[1] ?? ''))),
      ),
  )
  register(app, [{ method: 'GET', path: '/', open: true, handle: root }])
  registerAll(app, [...memoryRoutes, ...mlRoutes, ...routes], reserved)
}
