/** Turns a request's parameters into a search, and runs it. */
import * as v from 'valibot'
import { type Access, SEARCH_ACTION } from '../../auth/access'
import { ApiError, failed, inFull, type Outcome, plainFailure } from '../../errors'
import { mapFew } from '../../lib/few'
import { once } from '../../lib/once'
import { readStored } from '../../lib/stored-json'
import { cacheMark } from '../../registry/cache-epoch'
import { retrieverOf } from '../../registry/engines'
import { findCollection, findForQuestion, lookUp } from '../../registry/names'
import { getPreset, wordsOfSet } from '../../registry/search-sets'
import { CUTOFF_MS, MAX_JOINS } from '../../search/limits'
import { hasJoins } from '../../search/run/joins'
import type { JoinPlace, SearchParameters, SearchResult, SearchScope } from '../../search/types'
import type { SearchReply } from '../../turn/events'
import type { PlannedSearch } from '../../turn/request'
import { replyOf } from '../../turn/retrieve'
import { fill, parameterValue, unsigned } from './parameters'
import { originOf, type RequestRecord } from './request-log'

/** Parameters of the request that are not for the search. */
const REQUEST_ONLY = [
  'x-typesense-api-key',
  'x-typesense-user-id',
  'user_id',
  'collection',
  'conversation',
  'conversation_id',
  'conversation_model_id',
  'conversation_stream',
  'limit_multi_searches',
  'cache_ttl',
  'use_cache',
  'preset',
]

/** As in Typesense. */
const CACHE_SECONDS = 60

/** The longest `search_cutoff_ms` of a search with a key for pages. */
const PAGE_CUTOFF_MS = 5_000

/** Clauses, values and coordinates in the conditions of a request, over all of its searches. A key for pages takes fewer. */
const [MOST_CONDITIONS, MOST_PAGE_CONDITIONS] = [100_000, 2_000]

/** If a search has lost less than this of its time before it begins, its parameters stay as they are. */
const LITTLE_MS = 500

/** Searches of one request that run at the same time. More would delay everybody else's. */
export const SEARCHES_AT_ONCE = 4

/**
 * A search of a collection.
 * @param access the key that searches
 * @param collection its name as the key was checked for it
 * @param find looks up the collection; for a question, the result may be a minute old
 * @throws ApiError 404 when the collection, the preset or the stopword set is unknown
 */
export async function planSearch(
  env: Cloudflare.Env,
  access: Access,
  collection: string,
  parameters: SearchParameters,
  find: typeof findCollection = findCollection,
): Promise<PlannedSearch> {
  const { params, filter } = await withPreset(env, access, parameters)
  // Never for a conversation: its search must not be an old one.
  const kept = find === findCollection ? cacheOf(params) : {}
  for (const name of REQUEST_ONLY) delete params[name]
  // The search itself refuses a value that is not a number.
  const asked = params.search_cutoff_ms
  if (access.forPages && (!asked || Number(asked) > PAGE_CUTOFF_MS)) {
    params.search_cutoff_ms = `${PAGE_CUTOFF_MS}`
  }
  const [{ engine, objectId, outline }, joins, mark] = await Promise.all([
    find(env, collection),
    joinScope(env, access, params),
    kept.cacheSeconds ? cacheMark(env) : undefined,
  ])
  // A cluster has sets of its own.
  if (params.stopwords && engine === 'object') {
    params.stopwords = (await wordsOfSet(env, params.stopwords)).join('\n')
  }
  const scope = {
    ...scopeOf(access, collection, filter),
    ...joins,
    ...kept,
    ...(mark && { cacheMark: mark }),
  }
  // A cluster embeds by itself.
  const called = (engine === 'object' && outline?.called) || []
  const isEmbedded =
    called.length > 0 && params.query_by?.split(',').some((name) => called.includes(name.trim()))
  const planned: PlannedSearch = {
    collection,
    place: { engine, objectId },
    params,
    scope,
    plain: access.forPages,
    ...(isEmbedded && { isEmbedded }),
  }
  requireFewConditions([planned])
  return planned
}

/** @throws ApiError 400 if the searches of a request have more conditions than its key allows */
export function requireFewConditions(searches: readonly PlannedSearch[]): void {
  const count = searches.reduce(
    (sum, { params: { filter_by, sort_by }, scope }) =>
      sum + conditionsIn(filter_by) + conditionsIn(sort_by) - conditionsIn(scope?.filter),
    0,
  )
  const isOfPages = searches.some(({ plain }) => plain)
  const most = isOfPages ? MOST_PAGE_CONDITIONS : MOST_CONDITIONS
  if (count <= most) return
  throw new ApiError(
    400,
    `The \`filter_by\` and \`sort_by\` of this request have ${count} clauses, values and coordinates together: at most ${most} are allowed${isOfPages ? ' with a key made for pages' : ''}. Ask for fewer, or in several requests.`,
  )
}

/** Clauses, values and coordinates, by the signs between them. */
const conditionsIn = (text = ''): number =>
  text === '' ? 0 : 1 + (text.replace(/`[^`]*`/g, '').match(/,|&&|\|\|/g)?.length ?? 0)

/** The parameters with the time that the request has left. @returns undefined if it has none */
function inTime({ params, until }: PlannedSearch): SearchParameters | undefined {
  if (until === undefined) return params
  const left = until - Date.now()
  if (left <= 0) return undefined
  const asked = params.search_cutoff_ms ? Number(params.search_cutoff_ms) : CUTOFF_MS
  return asked > left + LITTLE_MS ? { ...params, search_cutoff_ms: `${Math.ceil(left)}` } : params
}

/** How long the reply may be cached. @throws ApiError 400 */
function cacheOf({ use_cache, cache_ttl }: SearchParameters): Pick<SearchScope, 'cacheSeconds'> {
  if (use_cache !== 'true' && use_cache !== '1') return {}
  const message = 'Parameter `cache_ttl` must be an unsigned integer.'
  return { cacheSeconds: cache_ttl === undefined ? CACHE_SECONDS : unsigned(cache_ttl, message) }
}

/** The same for a question. @throws ApiError as `planSearch` */
export const planForQuestion = (
  env: Cloudflare.Env,
  access: Access,
  collection: string,
  parameters: SearchParameters,
): Promise<PlannedSearch> => planSearch(env, access, collection, parameters, findForQuestion)

/**
 * What is planned for a search, or a search that fails because its collection, or another thing that it names, is gone. The
 * searches beside it still answer. A visitor of a page is not told the name.
 */
export async function orMissing<Planned>(
  { forPages }: Access,
  collection: string,
  plan: () => Promise<Planned>,
): Promise<Planned | PlannedSearch> {
  try {
    return await plan()
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    if (!forPages) return { collection, params: {}, error: failed(error) }
    const { status, code = 'not_found' } = error
    const told = plainFailure({ status, code, message: inFull(error), confidential: true })
    return { collection: '', params: {}, plain: true, error: told }
  }
}

/**
 * The parameters, with missing ones from the preset that they name. If the key names it, its filter holds beside the
 * caller's, for pinned documents too; otherwise the caller's comes in its place, as in Typesense.
 * @returns with the filter, if the key fixes it
 * @throws ApiError 400, 404
 */
async function withPreset(
  env: Cloudflare.Env,
  { embedded }: Access,
  parameters: SearchParameters,
): Promise<{ params: SearchParameters; filter?: string | undefined }> {
  const name = parameters.preset
  if (!name) return { params: { ...parameters } }
  const preset: SearchParameters = {}
  for (const [parameter, given] of Object.entries(await getPreset(env, name))) {
    if (parameter === 'searches') {
      throw new ApiError(
        400,
        `Preset \`${name}\` has \`searches\`. Name it in the query string of /multi_search.`,
      )
    }
    const value = parameterValue(given)
    if (value === undefined) throw new ApiError(400, 'One or more search parameters are malformed.')
    preset[parameter] = value
  }
  if (!embedded.preset) return { params: { ...preset, ...parameters } }
  const filter = preset.filter_by
  const pinned = filter && { filter_curated_hits: embedded.filter_curated_hits ?? 'true' }
  return { params: { ...fill(parameters, preset), ...pinned }, filter }
}

/** @param filter of the preset that the key fixes */
function scopeOf(
  { embedded, readsHistory }: Access,
  collection: string,
  filter: string | undefined,
): SearchScope {
  const only = (filter_by = ''): SearchParameters => ({ filter_by })
  const both = fill(only(embedded.filter_by), only(filter)).filter_by
  return { history: readsHistory(collection), ...(both && { filter: both }) }
}

/** The reply of a search. `text`: the result as JSON, if the engine wrote that; `result` reads it, with rounded int64. */
export type WrittenReply = SearchReply & { text?: string }

const anyResult = once(() => v.custom<SearchResult>((value) => typeof value === 'object' && value !== null))

const written = (text: string): WrittenReply => ({
  text,
  get result() {
    return readStored(anyResult(), text)
  },
})

/**
 * Runs a search. A caller's mistake becomes the reply.
 * @param gone aborts when the caller has left
 * @param asText whether the reply may have the result as text
 */
export async function runSearch(
  env: Cloudflare.Env,
  search: PlannedSearch,
  gone?: AbortSignal,
  asText = false,
): Promise<WrittenReply> {
  if (search.error) {
    const { message, status, detail } = search.error
    return { error: message, code: status, ...(detail !== undefined && { detail }) }
  }
  if (!search.place) return { error: 'Collection not found', code: 404 }
  if (gone?.aborted) return GONE
  const params = inTime(search)
  if (params === undefined) return { error: 'Request Timeout', code: 408 }
  const collection = retrieverOf(env, search.place)
  const ticket = gone && crypto.randomUUID()
  let ended = false
  // A flag takes less time than removing the listener.
  gone?.addEventListener('abort', () => {
    if (!ended) void collection.abandon(ticket!).catch(() => {})
  })
  try {
    // What a model for reranking says may have to be hidden.
    const outcome = await collection.search(
      params,
      search.scope,
      ticket,
      asText && !search.params.rerank_model,
    )
    if (outcome.ok && typeof outcome.value === 'string') return written(outcome.value)
    return replyOf(search, outcome as Outcome<SearchResult>)
  } finally {
    ended = true
  }
}

/** The search with the id of its request, for the collection's log, and with the time that all its searches have together. */
export function ofRequest(search: PlannedSearch, record: RequestRecord): PlannedSearch {
  record.searchedUntil ??= Date.now() + (search.plain ? PAGE_CUTOFF_MS : CUTOFF_MS)
  return { ...search, scope: { ...search.scope, ...originOf(record) }, until: record.searchedUntil }
}

/** A reply that nobody reads. */
const GONE: SearchReply = { error: 'The caller has gone.', code: 499 }

/** Runs searches of one request, a few at a time. @returns their replies, in order */
export const runSearches = (
  env: Cloudflare.Env,
  searches: readonly PlannedSearch[],
): Promise<SearchReply[]> => mapFew(searches, SEARCHES_AT_ONCE, (search) => runSearch(env, search))

// Which other collections a request may join.

const NAME = /\$([^\s$(){}[\]:,`&|]+)\s*\(/g

const namesOf = (text = ''): string[] => [...text.matchAll(NAME)].map((match) => match[1]!)

const namesIn = ({
  filter_by = '',
  include_fields = '',
  sort_by = '',
  facet_by = '',
}: Readonly<SearchParameters>): Set<string> =>
  new Set(namesOf(`${filter_by}\n${include_fields}\n${sort_by}\n${facet_by}`))

/**
 * The collections that parameters join and that the key may read. All others look as if they did not exist.
 *
 * A scoped key that names its collection joins only what its own parameters name.
 * @param action the right that it takes, or the right to search
 */
export async function joinScope(
  env: Cloudflare.Env,
  access: Access,
  params: Readonly<SearchParameters>,
  action: string = SEARCH_ACTION,
): Promise<Pick<SearchScope, 'joins' | 'excludes' | 'excluded' | 'includes'>> {
  if (!hasJoins(params)) return {}
  const { embedded } = access
  const own = embedded.collection === undefined ? undefined : namesIn(embedded)
  const named = new Set([...namesIn(params), ...namesOf(params.exclude_fields)])
  const allowed = [...named].filter(
    (name) =>
      (own === undefined || own.has(name)) &&
      (access.allows(action, name) || access.allows(SEARCH_ACTION, name)),
  )
  const places = await Promise.all(
    allowed.slice(0, 2 * MAX_JOINS).map(async (name): Promise<[string, JoinPlace][]> => {
      const found = await lookUp(env, name)
      if (found?.engine !== 'object') return []
      return [[name, { objectId: found.objectId, name: found.name, history: access.readsHistory(name) }]]
    }),
  )
  return {
    joins: Object.fromEntries(places.flat()),
    ...(embedded.exclude_fields && {
      excludes: embedded.exclude_fields,
      excluded: await objectsOf(env, namesOf(embedded.exclude_fields)),
    }),
    ...(embedded.include_fields && { includes: true }),
  }
}

/** The objects of collections whose fields a key hides. They are hidden under every name, so its rights do not matter. */
async function objectsOf(env: Cloudflare.Env, names: readonly string[]): Promise<Record<string, string>> {
  const found = await Promise.all(
    [...new Set(names)].map(async (name) => [name, (await lookUp(env, name))?.objectId] as const),
  )
  return Object.fromEntries(found.flatMap(([name, objectId]) => (objectId ? [[name, objectId]] : [])))
}
