/** `_search` and `_count`: the body, the parameters that replace parts of it, hybrid queries, and the reply. */
import type { Access } from '../../auth/access'
import { countSearches, requireFewSearches } from '../../auth/authenticate'
import { ApiError, unwrap } from '../../errors'
import { isHistoryShaped } from '../../history/turns'
import { mapFew } from '../../lib/few'
import { namesOf } from '../../lib/nearest'
import { and, type Filter, filterBy } from '../../search/filter/write'
import { byScores, inOrder, MOST_MERGED_HITS, type Normalization } from '../../search/merge-lists'
import type { Hit, SearchParameters, SearchResult } from '../../search/types'
import type { PlannedSearch } from '../../turn/request'
import { override } from '../http/body'
import { slowAnswer } from '../http/deliver'
import { countingConditions, ofRequest, planSearch, runSearch } from '../http/plan'
import type { Call } from '../http/router'
import {
  aggregate,
  type FacetsFound,
  facetsOf,
  facetValues,
  innerSearches,
  parseAggregations,
} from './aggregations'
import { type Compiled, searchParameters, setOf } from './compiled'
import {
  errorEnvelope,
  illegalArgument,
  notANumber,
  parsingError,
  requireKeys,
  requireOptions,
  searched,
  shardError,
  unsupported,
} from './errors'
import { Fields } from './fields'
import {
  highlightOf,
  highlightParameters,
  orderOf,
  parseSort,
  placeAfter,
  requireOneOrder,
  type Sort,
} from './hits'
import { type Found, findIndices } from './indices'
import { keptOf } from './mapping'
import { pipelineOf } from './pipelines'
import { readSearchAhead } from './prefetch'
import { compileQuery } from './query'
import { answerSearch, askAhead } from './rag'
import { defined, type Index, isObject, isOn, type Json, parseObject, readBody, readObject } from './route'
import { fieldsShown, type SourceFilter, sourceFilter, toSource } from './source'

// =============================================================================
// The body of a search, and the parameters that replace parts of it.

/** Hits that a search can reach: OpenSearch's `index.max_result_window`. */
export const WINDOW = 10_000

/** @param most hits that can be reached */
export const tooFar = (last: number, most = WINDOW): string =>
  `Result window is too large, from + size must be less than or equal to: [${most}] but was [${last}].`

export type SearchBody = ReturnType<typeof parseSearchBody>

const KEYS = namesOf(`
  query from size sort _source highlight aggs aggregations track_total_hits min_score timeout
  fields post_filter search_after
`)

/** Keys that ask for something that is not served, unless their value says that nothing is wanted: clients send those by default. */
const OPTIONAL = namesOf(`
  explain profile version seq_no_primary_term track_scores terminate_after stored_fields
  docvalue_fields script_fields indices_boost rescore ext stats suggest collapse
`)

const asksNothing = (value: unknown): boolean =>
  value === false ||
  value === 0 ||
  (typeof value === 'object' && (value === null || Object.keys(value).length === 0))

/** The keys accepted in a search over a list of objects. */
export const SEARCH_KEYS_OF_LISTS = `
  query from size sort _source track_total_hits version seq_no_primary_term timeout
`

/** They change no answer of one shard that is searched anew each time. */
export const OF_SHARDS = `
  preference request_cache routing search_type allow_partial_search_results batched_reduce_size
  cancel_after_time_interval ccs_minimize_roundtrips max_concurrent_shard_requests
  pre_filter_shard_size
`

/** Query parameters of a search. */
export const SEARCH_PARAMETERS = `
  q df default_operator from size sort _source _source_includes _source_excludes track_total_hits
  rest_total_hits_as_int search_pipeline typed_keys ${OF_SHARDS}
`

/** @throws ApiError 400 that names what is unknown */
export function parseSearchBody(body: Json, query: Record<string, string>) {
  const isKnown = (key: string) => KEYS.includes(key) || (OPTIONAL.includes(key) && asksNothing(body[key]))
  const unknown = Object.keys(body).find((key) => !isKnown(key))
  if (unknown !== undefined)
    throw parsingError(`Unknown key for a ${tokenOf(body[unknown])} in [${unknown}].`)
  const from = countOf('from', query.from, body.from, 0)
  const size = countOf('size', query.size, body.size, 10)
  const after = body.search_after ?? undefined
  if (after !== undefined && from > 0)
    throw shardError('`from` parameter must be set to 0 when `search_after` is used.', 'search_exception')
  if (from + size > WINDOW) throw shardError(tooFar(from + size), 'illegal_argument_exception')
  const aggregations = body.aggs ?? body.aggregations ?? {}
  if (!isObject(aggregations)) throw parsingError('[aggs] has to be an object')
  const minScore = body.min_score ?? 0
  if (typeof minScore !== 'number')
    throw parsingError(`[min_score] takes a number, not a ${tokenOf(minScore)}`)
  return {
    query: query.q === undefined ? (body.query ?? { match_all: {} }) : queryOf(query),
    from,
    size,
    /** the values of `sort` after which the hits begin */
    after,
    sort: query.sort === undefined ? body.sort : query.sort.split(',').map(sortOf),
    source: body._source,
    highlight: body.highlight,
    fields: asksNothing(body.fields) ? undefined : body.fields,
    /** a query that hits have to pass besides, and aggregations not */
    postFilter: asksNothing(body.post_filter) ? undefined : body.post_filter,
    aggregations,
    /** whether `hits.total` is wanted */
    total: String(query.track_total_hits ?? body.track_total_hits ?? true) !== 'false',
    /** hits below this score are left out; 0 leaves out none */
    minScore: Math.max(0, minScore),
  }
}

function tokenOf(value: unknown): string {
  if (Array.isArray(value)) return 'START_ARRAY'
  if (isObject(value)) return 'START_OBJECT'
  const isWord = value === null || typeof value === 'boolean'
  return `VALUE_${isWord ? value : typeof value}`.toUpperCase()
}

function countOf(name: string, parameter: string | undefined, key: unknown, otherwise: number): number {
  const given = parameter ?? key
  if (given === undefined) return otherwise
  const number = typeof given === 'string' && given.trim() !== '' ? Number(given) : given
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) {
    if (parameter !== undefined)
      throw illegalArgument(`Failed to parse int parameter [${name}] with value [${parameter}]`)
    throw notANumber(key, ` of [${name}]`)
  }
  if (number < 0) throw illegalArgument(`[${name}] parameter cannot be negative, found [${number}]`)
  return number
}

/** `?q=` as a query. */
export const queryOf = ({ q, df, default_operator }: Record<string, string>): Json => ({
  query_string: defined({ query: q, default_field: df, default_operator }),
})

const sortOf = (text: string): unknown => {
  const colon = text.lastIndexOf(':')
  return colon < 0 ? text : { [text.slice(0, colon)]: text.slice(colon + 1) }
}

// =============================================================================
// `_search`, `_count` and `_msearch`: converts OpenSearch's body to the collection's search, and its hits back.

/** Most hits of one collection search. */
const PAGE = 250
/** BM25 is stored as an integer (search/run/hits.ts). */
const SCORE_UNIT = 1e12

/** The parts of a call that searches need. */
export type Caller = Pick<Call, 'env' | 'access' | 'record'> & {
  /** aborts when nobody waits any more */
  gone?: AbortSignal
  /** counts the conditions of a search with those of others of the request. @throws ApiError 400 for too many */
  counts?: (planned: PlannedSearch) => void
}

/** Searches of one request that run at once. */
export const AT_ONCE = 4

export async function search(call: Call): Promise<unknown> {
  const { path, query } = call
  const text = await readBody(call.request)
  const asked = text.trim() === '' ? {} : parseObject(text)
  const { search_pipeline: given, ext, stream } = asked
  checkExtras(ext, stream)
  // Its name is being looked up.
  const indices = call.prefetch.begun.then(() => findIndices(call, path.collection, query))
  const opening = indices.then(withFields)
  const reading = readSearchAhead(call, asked)
  const asking = askAhead(call, reading, { asked, text, indices, opening })
  const [ahead, opened] = await Promise.all([reading, opening])
  const [only] = opened.length === 1 ? opened : []
  const usual = async () => only && keptOf(only.fields.schema).settings['search.default_pipeline']
  const pipeline = await pipelineOf(ahead.find, query.search_pipeline, given, usual)
  await countMore(call, opened.length - 1)
  const find = (caller: Caller, wanted: Json) =>
    execute(caller, opened, wanted, query, pipeline?.normalization)
  const body = await ahead.body
  if (pipeline?.rag !== undefined) {
    return answerSearch(call, pipeline.rag, pipeline, {
      ext,
      ahead,
      asking,
      text,
      body,
      stream: stream === true,
      find,
    })
  }
  if (stream === true) throw unsupported('[stream] of a search that no language model answers')
  return paced(call, (gone) => find({ ...call, gone }, body))
}

function checkExtras(ext: unknown, stream: unknown): void {
  const unknownField = (key: string) => parsingError(`unknown field [${key}]`)
  if (isObject(ext)) requireKeys(ext, 'generative_qa_parameters', unknownField)
  else if (ext !== undefined) throw unknownField('ext')
  if (stream !== undefined && typeof stream !== 'boolean')
    throw illegalArgument('[stream] has to be a boolean')
}

/** Runs searches so that they end when their caller hangs up. */
export async function paced(call: Call, work: (gone: AbortSignal) => Promise<Json>): Promise<unknown> {
  // A reply with line breaks is for people.
  const indent = isOn(call.query.pretty) ? 2 : undefined
  return slowAnswer(
    call,
    work,
    (reply) => JSON.stringify(reply, null, indent),
    (error) => errorEnvelope(error, call.record).body,
  )
}

export interface Opened {
  index: Index
  fields: Fields
}

/** A pattern does not find the histories of conversations. */
export const withFields = async (indices: readonly Found[]): Promise<Opened[]> => {
  const opened = await mapFew(indices, AT_ONCE, async (index): Promise<Opened[]> => {
    const schema = await index.object.schema()
    // One that a pattern found may be deleted meanwhile.
    if (!index.isNamed && (!schema.ok || isHistoryShaped(schema.value))) return []
    return [{ index, fields: new Fields(unwrap(schema)) }]
  })
  return opened.flat()
}

export function compile({ record }: Caller, query: unknown, fields: Fields): Compiled {
  const compiled = compileQuery(query, fields)
  const words = compiled.words?.text ?? compiled.vector?.text
  if (words !== undefined) record.question = words
  return compiled
}

/** Counts the searches that a request makes beyond its first. @throws ApiError 400, 429 */
export async function countMore({ env, access }: Caller, more: number): Promise<void> {
  if (more <= 0) return
  requireFewSearches(access, more + 1)
  await countSearches(env, Array(more).fill(access) as Access[])
}

/** Runs each query of a hybrid query by itself, then combines the hits into one list. */
async function executeHybrid(
  caller: Caller,
  opened: readonly Opened[],
  body: Json,
  query: Record<string, string>,
  queries: unknown[],
  normalization: Normalization | undefined,
): Promise<Json> {
  const started = Date.now()
  const { from, size, sort, after, aggregations, total, minScore } = parseSearchBody(body, query)
  if (sort !== undefined || after !== undefined || Object.keys(aggregations).length > 0) {
    throw unsupported('[sort], [search_after] or [aggs] of a [hybrid] query: they')
  }
  await countMore(caller, (queries.length - 1) * opened.length)
  const depth = Math.max(FEWEST_HITS, from + size)
  const { from: _, size: __, ...parameters } = query
  const replies = await mapFew(queries, opened.length > 1 ? 1 : AT_ONCE, (each) =>
    execute(caller, opened, { ...body, query: each, from: 0, size: depth, min_score: 0 }, parameters),
  )
  const lists = replies.map(({ hits }) => (hits as Json).hits as Json[])
  const all = combine(lists, normalization).filter(({ _score }) => (_score as number) >= minScore)
  const isWhole = lists.every(({ length }) => length < depth)
  const page = all.slice(from, from + size)
  const hits = {
    ...(total && { total: { value: all.length, relation: isWhole ? 'eq' : 'gte' } }),
    max_score: page[0]?._score ?? null,
    hits: page,
  }
  return searched(started, hits, {}, opened.length)
}

/** Searches indices. Their hits come in one order, and their numbers are added up. @throws ApiError 400, 429 */
export async function execute(
  caller: Caller,
  opened: readonly Opened[],
  body: Json,
  query: Record<string, string>,
  normalization?: Normalization,
): Promise<Json> {
  const queries = query.q === undefined ? hybridQueries(body.query) : undefined
  if (queries !== undefined) return executeHybrid(caller, opened, body, query, queries, normalization)
  const started = Date.now()
  const request = parseSearchBody(body, query)
  const { from, size } = request
  const count = opened.length
  const asker = count > 1 ? { counts: countingConditions()(), ...caller } : caller
  const searches = opened.map((each) => searchOf(asker, each, request, query, count))
  const aggregations = searches.map((search) => search.aggregations)
  await countMore(caller, innerSearches(aggregations, searches.filter(({ isApart }) => isApart).length))
  const sorts = searches.flatMap(({ sort }) => sort ?? [])
  if (count > 1) requireOneOrder(sorts, request.after)
  const page = count > 1 ? { from: 0, size: from + size } : { from, size }
  const found = await mapFew(searches, AT_ONCE, ({ find }) => find(page))
  const hits =
    count === 1
      ? found[0]!.hits
      : inOrder(found.map(placed), comesFirst, page.size)
          .slice(from)
          .map(({ hit }) => hit)
  const value = found.reduce((sum, one) => sum + one.total, 0)
  const relation = found.every(({ isAll }) => isAll) ? 'eq' : 'gte'
  const total = isOn(query.rest_total_hits_as_int) ? value : { value, relation }
  const facets = found.map((one) => one.facets)
  const search = (filters: readonly Filter[], facetBy: readonly string[]) =>
    mapFew(searches, AT_ONCE, ({ again }, at) => again(filters[at]!, facetBy[at]!))
  const counts = count > 0 &&
    Object.keys(request.aggregations).length > 0 && {
      aggregations: await aggregate(aggregations, facets, { search, query }),
    }
  const isScored = sorts.length === 0 && hits.length > 0
  const best = isScored
    ? Math.max(...found.flatMap((one) => one.hits.map(({ _score }) => Number(_score))))
    : null
  const max_score = count === 0 ? 0 : best
  return searched(started, { ...(request.total && { total }), max_score, hits }, { ...counts }, count)
}

interface Placed {
  hit: Json
  sort: Sort | undefined
}

const placed = ({ hits, sort }: { hits: Json[]; sort: Sort | undefined }): Placed[] =>
  hits.map((hit) => ({ hit, sort }))

/** Compares hits of different indices. Negative: `a` comes first. */
const comesFirst = (a: Placed, b: Placed): number =>
  a.sort === undefined || b.sort === undefined
    ? Number(b.hit._score) - Number(a.hit._score)
    : orderOf(a.sort.keys, a.hit.sort as unknown[], b.hit.sort as unknown[], b.sort.keys)

/** A search of one of some indices. @throws ApiError 400 */
function searchOf(
  caller: Caller,
  { index, fields }: Opened,
  request: SearchBody,
  query: Record<string, string>,
  indices: number,
) {
  const compiled = compile(caller, request.query, fields)
  const sort = parseSort(request.sort, fields)
  const aggregations = parseAggregations(request.aggregations, fields)
  const shown = sourceFilter(request.source, query)
  const highlight = highlightParameters(request.highlight, fields)
  const listed = fieldsShown(request.fields)
  const post = request.postFilter === undefined || compileQuery(request.postFilter, fields).filter(false)
  const isApart = post !== true && aggregations.length > 0
  const parameters: SearchParameters = {
    ...searchParameters(compiled, sort, request.from + request.size),
    ...highlight,
    exclude_fields: fields.embedded().join(','),
  }
  if (shown === undefined && listed === undefined) parameters.include_fields = sort === undefined ? 'id' : ''
  const set = setOf(compiled)
  const hitSet = filterBy(and([set, post]))
  const run = (more: SearchParameters) => runOne(caller, index.name, { ...parameters, ...more })
  const facetBy = facetsOf(aggregations)
  const { minScore } = request
  const isScript = compiled.vector !== undefined && compiled.vector.k === undefined
  const isMore = aggregations.length > 0 || sort !== undefined
  // The search reads only as many neighbours as the page shows: they would be counted and sorted alone.
  if (isScript && isMore) throw unsupported('[sort] or [aggs] beside [script_score]')
  if (minScore > 0 && (compiled.vector === undefined || isMore)) {
    throw unsupported('A [min_score] beside [sort] or [aggs], or of a query without a vector,')
  }
  const max_facet_values = facetValues(indices)
  const counted = facetBy && { facet_by: facetBy, max_facet_values }
  const pages = (more: SearchParameters) => run({ ...more, filter_by: hitSet })
  /** The hits of a page, the number of all, and the facets. */
  const find = async ({ from, size }: Page) => {
    // How many hits score enough is known when all of them are read: as many as the `k` of their query.
    const page =
      minScore > 0 ? { from: 0, size: Math.min(compiled.vector?.k ?? from + size, WINDOW) } : { from, size }
    const most = Math.floor(MOST_MERGED_HITS / indices)
    if (page.size > most) throw shardError(tooFar(page.size, most), 'illegal_argument_exception')
    if (request.after !== undefined) {
      page.from = await placeAfter(sort?.keys ?? [], request.after, async (place, size) => {
        const { found, hits = [] } = await pages(window(place, size))
        const rows = hits.map((hit, at) => sort!.values(hit.document, scoreOf(hit, compiled), place + at))
        return { found, rows }
      })
    }
    const first = await pages({ ...window(page.from, page.size), ...(!isApart && counted) })
    const { facet_counts: facets } = isApart && counted ? await run({ ...counted, per_page: '0' }) : first
    const read = await allHits(page, first, pages)
    const view: View = { index, sort, shown, listed, compiled }
    const scored = read.map((hit, at) => hitOf(hit, view, page.from + at))
    const enough = minScore > 0 ? scored.filter(({ _score }) => (_score as number) >= minScore) : undefined
    const total =
      enough?.length ?? (isScript && request.total ? await totalOf(caller, index, hitSet) : first.found)
    const hits = enough?.slice(from, from + size) ?? scored
    return { hits, sort, total, isAll: !isScript || enough === undefined, facets }
  }
  /** The facets of the documents that pass a filter too. */
  const again = async (filter: Filter, facet_by: string): Promise<FacetsFound> =>
    filter === false
      ? { found: 0, facet_counts: [] }
      : run({ filter_by: filterBy(and([set, filter])), facet_by, max_facet_values, per_page: '0' })
  return { aggregations, sort, isApart, find, again }
}

/** @throws ApiError as the search does */
async function runOne(
  { env, access, gone, record, counts }: Caller,
  name: string,
  parameters: SearchParameters,
): Promise<SearchResult> {
  const planned = await planSearch(env, access, name, override(parameters, access.embedded))
  counts?.(planned)
  const reply = await runSearch(env, ofRequest(planned, record), gone)
  if ('error' in reply) throw new ApiError(reply.code, reply.error)
  return reply.result
}

const window = (offset: number, size: number): SearchParameters => ({
  offset: String(offset),
  per_page: String(Math.min(size, PAGE)),
})

type Page = Pick<SearchBody, 'from' | 'size'>

/** The hits of a large page, which takes several searches. */
async function allHits(
  { from, size }: Page,
  first: SearchResult,
  run: (more: SearchParameters) => Promise<SearchResult>,
): Promise<Hit[]> {
  const hits = [...(first.hits ?? [])]
  while (hits.length < size && hits.length >= PAGE && from + hits.length < first.found) {
    const { hits: more = [] } = await run(window(from + hits.length, size - hits.length))
    if (more.length === 0) break
    hits.push(...more)
  }
  return hits.slice(0, size)
}

interface View {
  index: Index
  sort: Sort | undefined
  shown: SourceFilter
  /** shows the values that `fields` asks for */
  listed: SourceFilter
  compiled: Compiled
}

/** A hit as it is shown. @param place among all hits, from 0 */
export function hitOf(
  hit: Omit<Hit, 'highlight'>,
  { index, sort, shown, listed, compiled }: View,
  place?: number,
): Json {
  const score = scoreOf(hit, compiled)
  const highlight = highlightOf(hit)
  return {
    _index: index.name,
    _id: hit.document.id,
    _score: sort === undefined ? score : null,
    ...(shown !== undefined && { _source: shown(toSource(hit.document)) }),
    ...(listed !== undefined && { fields: listed(toSource(hit.document)) }),
    ...(highlight !== undefined && { highlight }),
    ...(sort !== undefined && { sort: sort.values(hit.document, score, place) }),
  }
}

function scoreOf(hit: Omit<Hit, 'highlight'>, { vector }: Compiled): number {
  const { vector_distance: distance, text_match: match } = hit
  if (vector !== undefined && distance !== undefined) {
    switch (vector.target.field.vec_dist) {
      case 'l2':
        return 1 / (1 + distance)
      case 'ip':
        return distance <= 1 ? 2 - distance : 1 / distance
      default:
        // A script adds 1 to the cosine; the index halves that.
        return vector.k === undefined ? 2 - distance : 1 - distance / 2
    }
  }
  return match === undefined ? 1 : match / SCORE_UNIT
}

/** How many documents pass a filter. */
export const totalOf = async (caller: Caller, { name }: Index, filter_by: string): Promise<number> =>
  (await runOne(caller, name, { q: '*', filter_by, per_page: '0' })).found

export async function count(call: Call): Promise<unknown> {
  const body = await readObject(call.request, {})
  requireKeys(body, 'query', (key) => parsingError(`request does not support [${key}]`))
  const query = call.query.q === undefined ? body.query : queryOf(call.query)
  const opened = await withFields(await findIndices(call, call.path.collection, call.query))
  if (opened.some(({ fields }) => compile(call, query ?? { match_all: {} }, fields).vector !== undefined))
    throw unsupported('A count of neighbours')
  await countMore(call, opened.length - 1)
  return paced(call, async (gone) => {
    const parameters = { rest_total_hits_as_int: 'true' }
    const { hits, _shards } = await execute({ ...call, gone }, opened, { query, size: 0 }, parameters)
    return { count: (hits as Json).total, _shards }
  })
}

// =============================================================================
// `hybrid`: several queries with their own hits, whose scores are normalised and combined into one list.

const MOST_QUERIES = 5
/** Fewest hits of each query that are considered. */
const FEWEST_HITS = 100

/** The queries of a hybrid query; undefined for any other query. @throws ApiError 400 */
export function hybridQueries(query: unknown): unknown[] | undefined {
  if (!isObject(query) || !Object.hasOwn(query, 'hybrid')) return undefined
  const body = isObject(query.hybrid) ? query.hybrid : {}
  requireOptions('hybrid', body, 'queries')
  const { queries } = body
  if (Object.keys(query).length > 1) throw parsingError('[hybrid] malformed query, expected [END_OBJECT]')
  if (!Array.isArray(queries) || queries.length === 0) throw illegalArgument('[hybrid] requires queries')
  if (queries.length > MOST_QUERIES) {
    throw illegalArgument(
      `Number of sub-queries exceeds maximum supported by [hybrid] query [${MOST_QUERIES}]`,
    )
  }
  return queries
}

/** Combines the hits of several queries into one list, best first. @param lists hits with `_score`. @throws ApiError 400 */
export function combine(lists: Json[][], normalization: Normalization | undefined): Json[] {
  const count = normalization?.weights?.length ?? lists.length
  if (count !== lists.length) {
    throw illegalArgument(
      `number of weights [${count}] must match number of sub-queries [${lists.length}] in hybrid query`,
    )
  }
  const keyOf = ({ _index, _id }: Json) => `${_index}\0${_id}`
  const all = byScores(lists, keyOf, ({ _score }) => Number(_score ?? 0), normalization)
  return all.map(({ item, score }) => ({ ...item, _score: score }))
}
