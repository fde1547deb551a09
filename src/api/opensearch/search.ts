/** `_search`, `_count` and `_msearch`: converts OpenSearch's body to the collection's search, and its hits back. */

import type { Access } from '../../auth/access'
import { countSearches, requireFewSearches } from '../../auth/limits'
import { ApiError, forbidden, unwrap } from '../../errors'
import { mapFew } from '../../lib/few'
import type { Hit, SearchParameters, SearchResult } from '../../search/types'
import type { PlannedSearch } from '../../turn/request'
import { slowAnswer } from '../http/deliver'
import { override } from '../http/parameters'
import { ofRequest, planSearch, runSearch } from '../http/plan'
import type { Call } from '../http/route'
import {
  aggregate,
  FACET_VALUES,
  facetsOf,
  innerSearches,
  MOST_SEARCHES,
  parseAggregations,
} from './aggregations'
import { answerSearch } from './answered'
import type { Compiled } from './compiled'
import { errorEnvelope, illegalArgument, parsingError, searched, unsupported } from './errors'
import { Fields } from './fields'
import { and, type Filter, filterBy } from './filter'
import { highlightOf, highlightParameters } from './highlight'
import { combine, depthOf, hybridQueries } from './hybrid'
import { keptOf } from './mapping'
import { searchParameters, setOf } from './parameters'
import { type Normalization, pipelineOf } from './pipelines'
import { readSearchAhead } from './prefetch'
import { askAhead } from './prefetch-answer'
import { compileQuery } from './query'
import { type Index, isObject, isOn, type Json, openIndex, parseObject, readBody, readObject } from './route'
import { parseSearchBody, queryOf, type SearchBody, WINDOW } from './search-body'
import { parseSort, type Sort } from './sort'
import { fieldsShown, type SourceFilter, sourceFilter, toSource } from './source'

/** Most hits of one collection search. */
const PAGE = 250
const SHARDS = { total: 1, successful: 1, skipped: 0, failed: 0 }
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
  const index = call.prefetch.begun.then(() => findIndex(call, path.collection!))
  const opening = index.then(withFields)
  const reading = readSearchAhead(call, asked)
  const asking = askAhead(call, reading, { asked, text, index, opening })
  const [ahead, opened] = await Promise.all([reading, opening])
  const pipeline = await pipelineOf(
    ahead.find,
    query.search_pipeline,
    given,
    async () => keptOf(opened.fields.schema).settings['search.default_pipeline'],
  )
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
      name: opened.index.name,
    })
  }
  if (stream === true) throw unsupported('[stream] of a search that no language model answers')
  return paced(call, (gone) => find({ ...call, gone }, body))
}

function checkExtras(ext: unknown, stream: unknown): void {
  const unknown = isObject(ext)
    ? Object.keys(ext).find((key) => key !== 'generative_qa_parameters')
    : undefined
  if (unknown !== undefined || (ext !== undefined && !isObject(ext)))
    throw parsingError(`unknown field [${unknown ?? 'ext'}]`)
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

/** @throws ApiError 401, 404 */
export const open = async (caller: Caller, name: string): Promise<Opened> =>
  withFields(await findIndex(caller, name))

async function findIndex({ env, access }: Caller, name: string): Promise<Index> {
  // A scoped key that names a collection is valid for that one only.
  if (access.embedded.collection !== undefined && access.embedded.collection !== name) throw forbidden()
  return openIndex(env, name)
}

const withFields = async (index: Index): Promise<Opened> => ({
  index,
  fields: new Fields(unwrap(await index.object.schema())),
})

export function compile({ record }: Caller, query: unknown, fields: Fields): Compiled {
  const compiled = compileQuery(query, fields)
  const words = compiled.words?.text ?? compiled.vector?.text
  if (words !== undefined) record.question = words
  return compiled
}

/** Counts the searches that a request makes beyond its first. @throws ApiError 400, 429 */
export async function countMore({ env, access }: Caller, more: number): Promise<void> {
  if (more === 0) return
  requireFewSearches(access, more + 1)
  await countSearches(env, Array(more).fill(access) as Access[])
}

/** Runs each query of a hybrid query by itself, then combines the hits into one list. */
async function executeHybrid(
  caller: Caller,
  opened: Opened,
  body: Json,
  query: Record<string, string>,
  queries: unknown[],
  normalization: Normalization | undefined,
): Promise<Json> {
  const started = Date.now()
  const { from, size, sort, aggregations, total, minScore } = parseSearchBody(body, query)
  if (sort !== undefined || Object.keys(aggregations).length > 0) {
    throw unsupported('[sort] or [aggs] of a [hybrid] query: they')
  }
  await countMore(caller, queries.length - 1)
  const depth = depthOf(from, size)
  const { from: _, size: __, ...parameters } = query
  const replies = await mapFew(queries, AT_ONCE, (each) =>
    execute(caller, opened, { ...body, query: each, from: 0, size: depth, min_score: 0 }, parameters),
  )
  const lists = replies.map(({ hits }) => (hits as Json).hits as Json[])
  const all = combine(lists, normalization).filter(({ _score }) => (_score as number) >= minScore)
  const isWhole = lists.every(({ length }) => length < depth)
  const page = all.slice(from, from + size)
  return searched(started, {
    ...(total && { total: { value: all.length, relation: isWhole ? 'eq' : 'gte' } }),
    max_score: page[0]?._score ?? null,
    hits: page,
  })
}

export async function execute(
  caller: Caller,
  opened: Opened,
  body: Json,
  query: Record<string, string>,
  normalization?: Normalization,
): Promise<Json> {
  const queries = query.q === undefined ? hybridQueries(body.query) : undefined
  if (queries !== undefined) return executeHybrid(caller, opened, body, query, queries, normalization)
  const started = Date.now()
  const { index, fields } = opened
  const request = parseSearchBody(body, query)
  const compiled = compile(caller, request.query, fields)
  const sort = parseSort(request.sort, fields)
  const aggregations = parseAggregations(request.aggregations, fields)
  const shown = sourceFilter(request.source, query)
  const highlight = highlightParameters(request.highlight, fields)
  const listed = fieldsShown(request.fields)
  const post = request.postFilter === undefined || compileQuery(request.postFilter, fields).filter(false)
  const isApart = post !== true && aggregations.length > 0
  const extra = innerSearches(aggregations) + Number(isApart)
  if (extra > MOST_SEARCHES) {
    throw unsupported(
      `Aggregations inside of more than ${MOST_SEARCHES} terms: ask for fewer by [size]; more`,
    )
  }
  await countMore(caller, extra)

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
  // How many hits score enough is known when all of them are read: as many as the `k` of their query.
  const page =
    minScore > 0
      ? { from: 0, size: Math.min(compiled.vector?.k ?? request.from + request.size, WINDOW) }
      : request
  const counted = facetBy && { facet_by: facetBy, max_facet_values: FACET_VALUES }
  const pages = (more: SearchParameters) => run({ ...more, filter_by: hitSet })
  const first = await pages({ ...window(page.from, page.size), ...(!isApart && counted) })
  const { facet_counts } = isApart && counted ? await run({ ...counted, per_page: '0' }) : first
  const hits = await allHits(page, first, pages)
  const view: View = { index, sort, shown, listed, compiled }
  const again = (filter: Filter, facet_by: string) =>
    run({
      filter_by: filterBy(and([set, filter])),
      facet_by,
      max_facet_values: FACET_VALUES,
      per_page: '0',
    })
  const scored = hits.map((hit) => hitOf(hit, view))
  const enough = minScore > 0 ? scored.filter(({ _score }) => (_score as number) >= minScore) : undefined
  const shownHits = enough?.slice(request.from, request.from + request.size) ?? scored
  const found =
    enough?.length ?? (isScript && request.total ? await totalOf(caller, index, hitSet) : first.found)
  const isAll = !isScript || enough === undefined
  const best = sort === undefined ? Math.max(...shownHits.map(({ _score }) => _score as number)) : null
  const total = isOn(query.rest_total_hits_as_int) ? found : { value: found, relation: isAll ? 'eq' : 'gte' }
  const counts = aggregations.length > 0 && {
    aggregations: await aggregate(aggregations, facet_counts, { search: again, query }),
  }
  const max_score = shownHits.length === 0 ? null : best
  return searched(started, { ...(request.total && { total }), max_score, hits: shownHits }, { ...counts })
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

/** The hits of a large page, which takes several searches. */
async function allHits(
  { from, size }: Pick<SearchBody, 'from' | 'size'>,
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

function hitOf(hit: Hit, { index, sort, shown, listed, compiled }: View): Json {
  const score = scoreOf(hit, compiled)
  const highlight = highlightOf(hit)
  return {
    _index: index.name,
    _id: hit.document.id,
    _score: sort === undefined ? score : null,
    ...(shown !== undefined && { _source: shown(toSource(hit.document)) }),
    ...(listed !== undefined && { fields: listed(toSource(hit.document)) }),
    ...(highlight !== undefined && { highlight }),
    ...(sort !== undefined && { sort: sort.values(hit.document, score) }),
  }
}

function scoreOf(hit: Hit, { vector }: Compiled): number {
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
  const unknown = Object.keys(body).find((key) => key !== 'query')
  if (unknown !== undefined) throw parsingError(`request does not support [${unknown}]`)
  const query = call.query.q === undefined ? body.query : queryOf(call.query)
  const { index, fields } = await open(call, call.path.collection!)
  const compiled = compile(call, query ?? { match_all: {} }, fields)
  if (compiled.vector !== undefined) throw unsupported('A count of neighbours')
  const parameters = { ...searchParameters(compiled, undefined, 0), per_page: '0' }
  return paced(call, async (gone) => {
    const { found } = await runOne({ ...call, gone }, index.name, parameters)
    return { count: found, _shards: SHARDS }
  })
}
