/** Plans the searches of a question: of an assistant, of a request, and within what a key fixes. */

import * as v from 'valibot'
import { type Access, SEARCH_ACTION } from '../../auth/access'
import { countSearches } from '../../auth/authenticate'
import { ApiError, badRequest, failed, inFull, type Outcome, plainFailure } from '../../errors'
import { mapFew } from '../../lib/few'
import { namesOf } from '../../lib/nearest'
import { once } from '../../lib/once'
import { readStored } from '../../lib/stored-json'
import type { Assistant, AssistantSearch } from '../../registry/assistants'
import { findCollection, findForQuestion, findOutline, lookUp } from '../../registry/collections'
import { retrieverOf } from '../../registry/engines'
import { presets, wordsOfSet } from '../../registry/named-sets'
import { cacheMark } from '../../registry/operations'
import { hiddenFields, type Outline, searchableFields } from '../../search/collection/outline'
import { quoted } from '../../search/filter/parse'
import { CUTOFF_MS, MAX_JOINS } from '../../search/limits'
import { weightsOf } from '../../search/request/question'
import { hasJoins } from '../../search/run/joins'
import type { JoinPlace, SearchParameters, SearchResult, SearchScope } from '../../search/types'
import type { SearchReply } from '../../turn/events'
import type { PlannedSearch } from '../../turn/request'
import { replyOf } from '../../turn/retrieve'
import { asParameters, fill, listed, override, parameterValue, searchParametersOf, unsigned } from './body'
import { originOf, type RequestRecord } from './request-log'

// =============================================================================
// Plans the searches of an assistant's turn, with the request's changes.

/** Words alone, meaning alone, or both fused. */
export type RetrievalMode = 'text' | 'vectors' | 'hybrid'

/** Changes of a request to its assistant's searches. The protocol has checked that the assistant allows it. */
export interface SearchChanges {
  /** documents for the model, from all searches together; 0: none */
  top?: number
  mode?: RetrievalMode
  /** the embedding field to search, in collections that have it */
  vectorField?: string
  /** a filter in addition to those of the assistant and the key */
  filterBy?: string
  /** documents with a lower score stay out of the prompt (turn/retrieve.ts) */
  minimumScore?: number
  /** whether a reranking model orders the best hits, if there is one */
  rerank?: boolean
  /** documents that it gives a lower score stay out of the prompt */
  minimumRerankScore?: number
  includeCategory?: string
  excludeCategory?: string
}

/** A search and its mode. */
export interface AssistantRetrieval {
  search: PlannedSearch
  mode: RetrievalMode
}

/**
 * The searches to run, which are counted towards the rate of the key. The request's changes override the assistant's parameters,
 * and a scoped key overrides both. All their filters apply. A collection that is gone is the error of its search alone.
 * @param assistant one that is open to the key
 * @throws ApiError 400 for a change that no collection supports, 429
 */
export async function planRetrieval(
  env: Cloudflare.Env,
  access: Access,
  assistant: Assistant,
  changes: SearchChanges,
): Promise<AssistantRetrieval[]> {
  const { searches = [], category_field: categoryField } = assistant
  const found = await Promise.all(
    searches.map(async (search) => ({
      search,
      outline: await orMissing(access, search.collection, () => findOutline(env, search.collection)),
    })),
  )
  const all = found.flatMap(({ search, outline }) => ('name' in outline ? { search, outline } : []))
  if (all.length > 0) {
    requirePossible(
      all.map(({ outline }) => outline),
      changes,
      assistant,
    )
  }
  const missing = found.flatMap(({ outline }) =>
    'name' in outline || changes.top === 0 ? [] : { search: outline, mode: 'text' as const },
  )
  const able = all.filter(
    ({ outline }) => changes.includeCategory === undefined || outline.indexed.includes(categoryField),
  )
  const shares = changes.top === undefined ? undefined : share(changes.top, able.length)
  const wanted = changes.top ? able.filter((_, index) => shares![index]! > 0) : able
  if (assistant.strict && changes.minimumRerankScore !== undefined && !canRerank(env)) {
    throw new ImpossibleChange('minimumRerankScore', 'there is no model here that ranks anew')
  }
  const embedded = searchParametersOf(access.embedded)
  const planned = await Promise.all(
    wanted.map(async ({ search, outline }, index) => {
      const { collection, ...own }: AssistantSearch = search
      const changed: SearchParameters = {
        ...(shares && { per_page: String(shares[index]) }),
        ...filterOf(outline, changes, categoryField),
        ...(changes.rerank && canRerank(env) && own.group_by === undefined && RERANKING),
      }
      const { params, mode } = inMode(override(asParameters(own), changed), outline, changes)
      const planned = await orMissing(access, collection, () =>
        planForQuestion(env, access, collection, override(params, embedded)),
      )
      const { minimumScore, minimumRerankScore } = changes
      return {
        search: {
          ...planned,
          ...(minimumScore !== undefined && { minimumScore }),
          ...(minimumRerankScore !== undefined && { minimumRerankScore }),
        },
        mode,
      }
    }),
  )
  const retrievals = [...planned, ...missing]
  await countSearches(env, Array(Math.max(0, retrievals.length - 1)).fill(access))
  return retrievals
}

/** The reranker on Workers AI. It reads fifty hits, as Azure's does. */
const RERANKING = { rerank_model: 'cloudflare/@cf/baai/bge-reranker-base', rerank_top: '50' }

/** Whether one of the searches is by vectors of this field. */
export const searchesBy = (field: string, retrievals: readonly AssistantRetrieval[]): boolean =>
  retrievals.some(({ search }) => listed(search.params.query_by).includes(field))

/** Whether there is a reranking model. */
export const canRerank = (env: Pick<Cloudflare.Env, 'AI_BACKEND'>): boolean => env.AI_BACKEND === 'workers-ai'

/** Shares `top` documents among the searches as evenly as possible; the first ones get the rest. */
const share = (top: number, searches: number): number[] =>
  Array.from({ length: searches }, (_, index) => Math.floor((top + searches - 1 - index) / searches))

/** The field that front ends of the AI Chat Protocol name with each question, whatever the collections have. */
const USUAL_VECTORS = 'embedding'

/** A change that none of the assistant's collections supports. */
export class ImpossibleChange extends ApiError {
  constructor(
    readonly change: keyof SearchChanges,
    message: string,
  ) {
    super(400, message)
  }
}

/** @throws ImpossibleChange if no collection has what the change needs */
function requirePossible(
  outlines: Outline[],
  changes: SearchChanges,
  { category_field: categoryField, strict }: Assistant,
): void {
  const { mode, vectorField, includeCategory, excludeCategory } = changes
  if (mode === 'vectors' && !outlines.every(({ embeddings }) => embeddings.length > 0)) {
    throw new ImpossibleChange(
      'mode',
      'A search by vectors alone needs an embedding field in every collection.',
    )
  }
  const fields = outlines.flatMap(({ embeddings }) => embeddings)
  const matters = strict || (fields.length > 0 && vectorField !== USUAL_VECTORS)
  if (vectorField !== undefined && matters && !fields.includes(vectorField)) {
    throw new ImpossibleChange('vectorField', `No collection has an embedding field \`${vectorField}\`.`)
  }
  const byCategory = includeCategory !== undefined || excludeCategory !== undefined
  if (byCategory && !outlines.some(({ indexed }) => indexed.includes(categoryField))) {
    const change = includeCategory === undefined ? 'excludeCategory' : 'includeCategory'
    throw new ImpossibleChange(
      change,
      `No collection has a field \`${categoryField}\` to choose categories by.`,
    )
  }
}

function filterOf(
  { indexed }: Outline,
  { filterBy, includeCategory, excludeCategory }: SearchChanges,
  categoryField: string,
): SearchParameters {
  const categorised = indexed.includes(categoryField)
  const filters: SearchParameters[] = []
  if (includeCategory !== undefined && categorised) {
    filters.push({ filter_by: `${categoryField}:=${quoted(includeCategory)}` })
  }
  if (excludeCategory !== undefined && categorised) {
    filters.push({ filter_by: `${categoryField}:!=${quoted(excludeCategory)}` })
  }
  if (filterBy) filters.push({ filter_by: filterBy })
  return filters.reduce((both, filter) => override(both, filter), {})
}

/** Parameters with one entry for each field of `query_by`. They are dropped when the fields change. */
const BY_FIELD = ['query_by_weights', 'prefix', 'infix', 'num_typos']

/** Parameters for a search by words, by meaning or by both, and its mode. */
function inMode(
  given: SearchParameters,
  outline: Outline,
  { mode, vectorField }: SearchChanges,
): { params: SearchParameters; mode: RetrievalMode } {
  const { embeddings } = outline
  const isEmbedding = (name: string) => embeddings.includes(name)
  const own = given.query_by ? listed(given.query_by) : searchableFields(outline)
  const texts = own.filter((name) => !isEmbedding(name))
  const vector =
    vectorField !== undefined && isEmbedding(vectorField)
      ? vectorField
      : (own.find(isEmbedding) ?? embeddings[0])
  const bySense = vector === undefined ? [] : [vector]
  const byWords = texts.length > 0 ? texts : outline.texts
  const fields =
    mode === undefined && vectorField === undefined
      ? own
      : { text: byWords, vectors: bySense, hybrid: [...bySense, ...byWords] }[mode ?? 'hybrid']
  if (fields.length === 0 && !given.vector_query) {
    throw badRequest(
      `Collection \`${outline.name}\` has no field of text that is indexed. Give \`query_by\`.`,
    )
  }
  const params: SearchParameters = {
    // A caller who names the fields also decides how to search them.
    ...(!given.query_by && weightsOf(fields)),
    ...given,
    ...(fields.length > 0 && { query_by: fields.join(',') }),
  }
  if (params.query_by !== given.query_by) {
    for (const name of BY_FIELD) if (params[name]?.includes(',')) delete params[name]
  }
  if (mode === 'text') delete params.vector_query
  if (!params.include_fields) {
    // Nobody reads vectors, and they are too long for a line of a stream.
    const hidden = [...new Set([...listed(params.exclude_fields), ...hiddenFields(outline)])]
    if (hidden.length > 0) params.exclude_fields = hidden.join(',')
  }
  const senses = fields.some(isEmbedding) || params.vector_query !== undefined
  const words = fields.some((name) => !isEmbedding(name))
  return { params, mode: senses && words ? 'hybrid' : senses ? 'vectors' : 'text' }
}

// =============================================================================
// Turns a request's parameters into a search, and runs it.

/** Parameters of the request that are not for the search. */
const REQUEST_ONLY = namesOf(`
  x-typesense-api-key x-typesense-user-id user_id collection conversation conversation_id
  conversation_model_id conversation_stream limit_multi_searches cache_ttl use_cache preset
`)

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
  throw badRequest(
    `The \`filter_by\` and \`sort_by\` of this request have ${count} clauses, values and coordinates together: at most ${most} are allowed${isOfPages ? ' with a key made for pages' : ''}. Ask for fewer, or in several requests.`,
  )
}

/** Counts the conditions of a request's searches together: once for each collection of a search, however often it is searched. */
export function countingConditions() {
  const asked = new Map<string, PlannedSearch>()
  return (search = 0) =>
    (planned: PlannedSearch): void => {
      const name = `${search} ${planned.collection}`
      if (asked.has(name)) return
      requireFewConditions([...asked.values(), planned])
      asked.set(name, planned)
    }
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
  for (const [parameter, given] of Object.entries(await presets.get(env, name))) {
    if (parameter === 'searches') {
      throw badRequest(`Preset \`${name}\` has \`searches\`. Name it in the query string of /multi_search.`)
    }
    const value = parameterValue(given)
    if (value === undefined) throw badRequest('One or more search parameters are malformed.')
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

/** Runs searches of one request, a few at a time. @param gone aborts when the caller has left @returns their replies, in order */
export const runSearches = (
  env: Cloudflare.Env,
  searches: readonly PlannedSearch[],
  gone?: AbortSignal,
): Promise<SearchReply[]> => mapFew(searches, SEARCHES_AT_ONCE, (search) => runSearch(env, search, gone))

// Which other collections a request may join.

const NAME = /\$([^\s$(){}[\]:,`&|]+)\s*\(/g

const joinedIn = (text = ''): string[] => [...text.matchAll(NAME)].map((match) => match[1]!)

const namesIn = ({
  filter_by = '',
  include_fields = '',
  sort_by = '',
  facet_by = '',
}: Readonly<SearchParameters>): Set<string> =>
  new Set(joinedIn(`${filter_by}\n${include_fields}\n${sort_by}\n${facet_by}`))

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
  const named = new Set([...namesIn(params), ...joinedIn(params.exclude_fields)])
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
      excluded: await objectsOf(env, joinedIn(embedded.exclude_fields)),
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
