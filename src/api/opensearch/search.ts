/** `_search`, `_count` and `_msearch`: from OpenSearch's body to the collection's search, and its hits back. */

import type { Access } from '../../auth/access'
import { requireCollections } from '../../auth/admit'
import { countSearches, requireFewSearches } from '../../auth/searches'
import { ApiError, unwrap } from '../../errors'
import type { Hit, SearchParameters, SearchResult } from '../../search/types'
import { override } from '../edge/parameters'
import { planSearch, runSearch } from '../edge/plan'
import { forbidden } from '../edge/response'
import type { Call } from '../edge/route'
import {
  aggregate,
  FACET_VALUES,
  facetsOf,
  innerSearches,
  MOST_SEARCHES,
  parseAggregations,
} from './aggregations'
import type { Compiled, VectorSearch, Words } from './compiled'
import { errorEnvelope, illegalArgument, OpenSearchError, unsupported } from './errors'
import { Fields } from './fields'
import { and, type Filter, filterBy } from './filter'
import { highlightOf, highlightParameters } from './highlight'
import { compileQuery } from './query'
import { type Index, isOn, type Json, openIndex, parseObject, readBody, readObject } from './route'
import { parseSearchBody, queryOf, type SearchBody } from './search-body'
import { parseSort, type Sort } from './sort'
import { type SourceFilter, sourceFilter, toSource } from './source'

/** Hits that one search of a collection brings at most. */
const PAGE = 250
const SHARDS = { total: 1, successful: 1, skipped: 0, failed: 0 }
/** BM25 comes as an integer (search/run/hits.ts). */
const SCORE_UNIT = 1e12

/** What searches are made with: a call, as far as they need it. */
type Caller = Pick<Call, 'env' | 'access' | 'record'>

export async function search(call: Call): Promise<Json> {
  const body = await readObject(call.request, {})
  return execute(call, call.path.collection!, body, call.query)
}

async function execute(
  caller: Caller,
  name: string,
  body: Json,
  query: Record<string, string>,
): Promise<Json> {
  const started = Date.now()
  const { request, index, fields, compiled } = await prepare(caller, name, body, query)
  const sort = parseSort(request.sort, fields)
  const aggregations = parseAggregations(request.aggregations, fields)
  const shown = sourceFilter(request.source, query)
  const highlight = highlightParameters(request.highlight, fields)
  const extra = innerSearches(aggregations)
  if (extra > MOST_SEARCHES) {
    throw unsupported(
      `Aggregations inside of more than ${MOST_SEARCHES} terms: ask for fewer by [size]; more`,
    )
  }
  if (extra > 0) {
    requireFewSearches(caller.access, extra + 1)
    await countSearches(caller.env, Array(extra).fill(caller.access))
  }

  const parameters: SearchParameters = {
    ...searchParameters(compiled, sort),
    ...highlight,
    exclude_fields: fields.embedded().join(','),
  }
  if (shown === undefined) parameters.include_fields = sort === undefined ? 'id' : ''
  const run = (more: SearchParameters) => runOne(caller, name, { ...parameters, ...more })
  const facetBy = facetsOf(aggregations)
  const first = await run({
    ...window(request.from, request.size),
    ...(facetBy !== undefined && { facet_by: facetBy, max_facet_values: FACET_VALUES }),
  })
  const hits = await allHits(request, first, run)
  const view: View = { index, sort, shown, compiled }
  const facetSearch = async (filter: Filter, facet_by: string) => {
    const filter_by = filterBy(and([setOf(compiled), filter]))
    const result = await run({ filter_by, facet_by, max_facet_values: FACET_VALUES, per_page: '0' })
    return result.facet_counts
  }
  const shownHits = hits.map((hit) => hitOf(hit, view))
  const best = sort === undefined ? Math.max(...shownHits.map(({ _score }) => _score as number)) : null
  const total = isOn(query.rest_total_hits_as_int) ? first.found : { value: first.found, relation: 'eq' }
  return {
    took: Date.now() - started,
    timed_out: false,
    _shards: SHARDS,
    hits: {
      ...(request.total && { total }),
      max_score: shownHits.length === 0 ? null : best,
      hits: shownHits,
    },
    ...(aggregations.length > 0 && {
      aggregations: await aggregate(aggregations, first.facet_counts, fields, facetSearch),
    }),
  }
}

interface Prepared {
  request: SearchBody
  index: Index
  fields: Fields
  compiled: Compiled
}

async function prepare(
  { env, access, record }: Caller,
  name: string,
  body: Json,
  query: Record<string, string>,
): Promise<Prepared> {
  // A scoped key that names a collection is for that one alone.
  if (access.embedded.collection !== undefined && access.embedded.collection !== name) throw forbidden()
  const request = parseSearchBody(body, query)
  const index = await openIndex(env, name)
  const fields = new Fields(unwrap(await index.object.schema()))
  const compiled = compileQuery(request.query, fields)
  const words = compiled.words?.text ?? compiled.vector?.text
  if (words !== undefined) record.question = words
  return { request, index, fields, compiled }
}

/** What decides besides words and vectors. */
const setOf = ({ words, rest, vector, filter }: Compiled): Filter =>
  vector !== undefined ? vector.filter : words !== undefined ? rest!() : filter(false)

function searchParameters(compiled: Compiled, sort: Sort | undefined): SearchParameters {
  const { words, vector } = compiled
  const parameters: SearchParameters = {
    filter_by: filterBy(setOf(compiled)),
    // OpenSearch takes words as they are.
    prefix: 'false',
    num_typos: '0',
    typo_tokens_threshold: '0',
    ...(words !== undefined
      ? wordParameters(words)
      : vector !== undefined
        ? vectorParameters(vector)
        : { q: '*' }),
  }
  if (sort !== undefined) parameters.sort_by = sort.by
  else if (words !== undefined) parameters.sort_by = '_text_match:desc,_seq_id:asc'
  else if (vector === undefined) parameters.sort_by = '_seq_id:asc'
  return parameters
}

/** Any number of documents is too few not to ask for any of the words. */
const RELAXED = '4294967295'

function wordParameters({ fields, text, every, phrase }: Words): SearchParameters {
  const fraction = fields.some(({ weight }) => !Number.isInteger(weight))
  return {
    q: phrase ? `"${text}"` : text,
    query_by: fields.map(({ target }) => target.name).join(','),
    query_by_weights: fields.map(({ weight }) => Math.round(weight * (fraction ? 100 : 1))).join(','),
    drop_tokens_threshold: every ? '0' : RELAXED,
  }
}

const vectorParameters = ({ target, vector = [], text, k }: VectorSearch): SearchParameters => ({
  q: text ?? '*',
  ...(text !== undefined && { query_by: target.name }),
  vector_query: `${target.name}:([${vector.join(',')}], k: ${k})`,
})

/** @throws ApiError as the search does */
async function runOne(
  { env, access }: Caller,
  name: string,
  parameters: SearchParameters,
): Promise<SearchResult> {
  const planned = await planSearch(env, access, name, override(parameters, access.embedded))
  const reply = await runSearch(env, planned)
  if ('error' in reply) throw new ApiError(reply.code, reply.error)
  return reply.result
}

const window = (offset: number, size: number): SearchParameters => ({
  offset: String(offset),
  per_page: String(Math.min(size, PAGE)),
})

/** The hits of a large page, which takes several searches. */
async function allHits(
  { from, size }: SearchBody,
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
  compiled: Compiled
}

function hitOf(hit: Hit, { index, sort, shown, compiled }: View): Json {
  const score = scoreOf(hit, compiled)
  const highlight = highlightOf(hit)
  return {
    _index: index.name,
    _id: hit.document.id,
    _score: sort === undefined ? score : null,
    ...(shown !== undefined && { _source: shown(toSource(hit.document)) }),
    ...(highlight !== undefined && { highlight }),
    ...(sort !== undefined && { sort: sort.values(hit.document, score) }),
  }
}

function scoreOf(hit: Hit, { vector }: Compiled): number {
  const { vector_distance: distance, text_match: match } = hit
  if (vector !== undefined && distance !== undefined) {
    if (vector.target.field.vec_dist !== 'ip') return 1 - distance / 2
    const product = 1 - distance
    return product >= 0 ? product + 1 : 1 / (1 - product)
  }
  return match === undefined ? 1 : match / SCORE_UNIT
}

export async function count(call: Call): Promise<Json> {
  const body = await readObject(call.request, {})
  const unknown = Object.keys(body).find((key) => key !== 'query')
  if (unknown !== undefined) throw illegalArgument(`request does not support [${unknown}]`)
  const query = call.query.q === undefined ? body.query : queryOf(call.query)
  const { compiled } = await prepare(call, call.path.collection!, query === undefined ? {} : { query }, {})
  if (compiled.vector !== undefined) throw unsupported('A count of neighbours')
  const { found } = await runOne(call, call.path.collection!, {
    ...searchParameters(compiled, undefined),
    per_page: '0',
  })
  return { count: found, _shards: SHARDS }
}

/** A header and a body for each search, a line each. */
export async function multiSearch(call: Call): Promise<Json> {
  const started = Date.now()
  const { env, access, record, path } = call
  const text = await readBody(call.request)
  const lines = text.split(/\r?\n/)
  if (lines.pop() !== '') throw illegalArgument('The msearch request must be terminated by a newline [\n]')
  if (lines.length === 0 || lines.length % 2 !== 0) {
    throw new OpenSearchError(
      400,
      'action_request_validation_exception',
      'Validation Failed: 1: no requests added;',
    )
  }
  const wanted: { name: string; body: Json }[] = []
  for (let line = 0; line < lines.length; line += 2) {
    wanted.push({ name: indexOf(lines[line]!, path.collection), body: parseObject(lines[line + 1]!) })
  }
  requireCollections(
    access,
    record.action!,
    wanted.map(({ name }) => name),
    record,
  )
  requireFewSearches(access, wanted.length)
  await countSearches(env, Array(wanted.length - 1).fill(access) as Access[])
  const responses: Json[] = []
  for (const { name, body } of wanted) {
    try {
      responses.push({ ...(await execute(call, name, body, {})), status: 200 })
    } catch (error) {
      responses.push(errorEnvelope(error, call.record).body)
    }
  }
  return { took: Date.now() - started, responses }
}

/** The index of a header line. @throws ApiError 400 */
function indexOf(line: string, otherwise: string | undefined): string {
  const header = line.trim() === '' ? {} : parseObject(line)
  const unknown = Object.keys(header).find((key) => key !== 'index')
  if (unknown !== undefined)
    throw illegalArgument(`key [${unknown}] is not supported in the metadata section`)
  const given = Array.isArray(header.index) && header.index.length === 1 ? header.index[0] : header.index
  const name = given ?? otherwise
  if (typeof name !== 'string' || name === '') throw unsupported('A search that names no index')
  return name
}
