/** OpenSearch's HTTP API for indices, documents and searches, on the same collections as all other APIs. */
import { once } from '../../lib/once'
import { servePage } from '../http/html-pages'
import { type App, type OpenCall, register } from '../http/router'
import { agentRoutes } from './agents'
import { catIndices, health, info } from './cluster'
import * as documents from './documents'
import { answer, openSearchError } from './errors'
import * as indices from './indices'
import { putSettings, settings } from './mapping'
import { memoryRoutes } from './memory'
import { mlRoutes } from './ml'
import { deletePipelines, getPipelines, putPipeline } from './pipelines'
import { beginSearch } from './prefetch'
import { acceptsPage, admitCaller, isOn, keyOf, type RouteRow, registerAll } from './route'
import { clearScroll, multiSearch, nextPage, searchOrScroll } from './scroll'
import { count, OF_SHARDS, SEARCH_PARAMETERS } from './search'

export { incorrectMethod, noHandler } from './errors'
export { beginSearch } from './prefetch'
export { keyOf } from './route'

const INDEX = '/:collection'
const DOCUMENT = `${INDEX}/_doc/:id`
const SEE = ['debug:list']
/** The cluster is always green, and waits for nothing. */
const WAITS = `
  wait_for_status wait_for_nodes wait_for_events wait_for_no_relocating_shards
  wait_for_no_initializing_shards
`
const READ_SOURCE = '_source _source_includes _source_excludes routing refresh preference realtime'
const SCROLL = 'scroll scroll_id rest_total_hits_as_int'
const WRITE = 'refresh routing op_type'
/** How a deletion goes on, which is one step here. */
const STEPS = `
  conflicts wait_for_completion refresh routing scroll scroll_size search_timeout search_type
  preference
`
const WORDS = 'q df default_operator'
const SEARCHES = `typed_keys rest_total_hits_as_int max_concurrent_searches ${OF_SHARDS}`
const UPDATE = 'refresh routing retry_on_conflict'
const TABLE = 'format v h s'
const SEARCH = ['documents:search']
const CREATE = ['documents:create']
const BULK = ['documents:import', 'documents:delete']
/** Writes are visible at once. So any key that can read or write may ask for a refresh. */
const REFRESH = ['documents:search', 'documents:import', 'documents:create', 'collections:get']

/** A route of all indices, and of those in the path. */
const both = ([methods, path, ...rest]: RouteRow): RouteRow[] => [
  [methods, path, ...rest],
  [methods, INDEX + path, ...rest],
]

const routes: RouteRow[] = [
  ['GET', '/_cluster/health', SEE, health, WAITS],
  ['GET', '/_cluster/health/:collection', SEE, health, WAITS],
  ['GET', '/_cluster/settings', SEE, settings, 'flat_settings include_defaults'],
  ['PUT', '/_cluster/settings', ['settings:update'], putSettings],
  ...(
    [
      ['/_search/pipeline', 'pipeline'],
      ['/_ingest/pipeline', 'ingest_pipeline'],
    ] as const
  ).flatMap(([path, kind]): RouteRow[] => [
    ['GET', path, ['search_pipelines:get'], getPipelines(kind)],
    ['GET', `${path}/:id`, ['search_pipelines:get'], getPipelines(kind)],
    ['PUT', `${path}/:id`, ['search_pipelines:upsert'], putPipeline(kind)],
    ['DELETE', `${path}/:id`, ['search_pipelines:delete'], deletePipelines(kind)],
  ]),
  ['GET', '/_cat/indices', ['collections:list'], catIndices, TABLE],
  ['GET', '/_cat/indices/:index', ['collections:list'], catIndices, TABLE],
  ...['/_aliases', '/_alias', '/_alias/:alias'].flatMap((path) =>
    both(['GET', path, ['aliases:list'], indices.getAliases]),
  ),
  ...[`${INDEX}/_alias/:alias`, `${INDEX}/_aliases/:alias`].flatMap((path): RouteRow[] => [
    ['PUT POST', path, ['aliases:upsert'], indices.changeAlias],
    ['DELETE', path, ['aliases:delete'], indices.changeAlias],
  ]),
  ['POST', '/_aliases', ['aliases:upsert', 'aliases:delete'], indices.updateAliases],
  ...both(['GET POST', '/_refresh', REFRESH, indices.refresh]),
  ...both(['POST PUT', '/_bulk', BULK, documents.bulk, 'refresh routing']),
  ...both(['GET POST', '/_mget', ['documents:get'], documents.multiGet, READ_SOURCE]),
  ...both(['GET POST', '/_msearch', SEARCH, multiSearch, SEARCHES]),
  ...both(['GET POST', '/_search', SEARCH, searchOrScroll, `${SEARCH_PARAMETERS} scroll`, beginSearch]),
  ...['/_search/scroll', '/_search/scroll/:id'].flatMap((path): RouteRow[] => [
    ['GET POST', path, SEARCH, nextPage, SCROLL],
    ['DELETE', path, SEARCH, clearScroll],
  ]),
  ...both(['GET POST', '/_count', SEARCH, count, `${WORDS} preference routing`]),
  ['POST', `${INDEX}/_delete_by_query`, ['documents:delete'], documents.deleteByQuery, `${WORDS} ${STEPS}`],
  ['GET', DOCUMENT, ['documents:get'], documents.getDocument, READ_SOURCE],
  ['GET', `${INDEX}/_source/:id`, ['documents:get'], documents.getSource, READ_SOURCE],
  ['POST', `${INDEX}/_doc`, CREATE, documents.indexDocument, WRITE],
  ['PUT POST', DOCUMENT, CREATE, documents.indexDocument, WRITE],
  ['PUT POST', `${INDEX}/_create/:id`, CREATE, documents.indexDocument, WRITE],
  ['DELETE', DOCUMENT, ['documents:delete'], documents.deleteDocument, 'refresh routing'],
  ['POST', `${INDEX}/_update/:id`, ['documents:update'], documents.updateDocument, UPDATE],
  ...both(['GET', '/_mapping', ['collections:get'], indices.described('mappings')]),
  ['PUT POST', `${INDEX}/_mapping`, ['collections:update'], indices.putMapping],
  ...both(['GET', '/_settings', ['collections:get'], indices.described('settings')]),
  ['PUT', `${INDEX}/_settings`, ['collections:update'], indices.putSettings],
  ['GET', INDEX, ['collections:get'], indices.described('aliases', 'mappings', 'settings')],
  ['PUT', INDEX, ['collections:create'], indices.createIndex],
  ['DELETE', INDEX, ['collections:delete'], indices.deleteIndices],
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
  registerAll(app, [...memoryRoutes, ...mlRoutes, ...agentRoutes, ...routes], reserved)
}
