/**
 * One search, from Typesense's parameters to its reply.
 *
 * Hits are ordered and counted, facets and groups made, inside SQLite, a slice of the collection at a time (pace.ts).
 * A search that needs no more than one slice sees one state of the collection. A longer one may see of what is written
 * meanwhile some and some not; it begins again when the schema changes.
 */
import { ApiError } from '../../errors'
import { compileFilter } from '../filter/compile'
import { impliedConditions } from '../filter/conditions'
import { balanced, fragment, not, oneOf, type SqlFragment } from '../fragment'
import { EVERYWHERE, NOWHERE } from '../range'
import { parseRequest, type SearchRequest } from '../request/request'
import { completeSort, orderBy } from '../request/sort'
import type { StoredSchema } from '../schema/layout'
import type { ParsedQuery } from '../text/query'
import type { SearchParameters, SearchResult, SearchScope } from '../types'
import { type Candidates, VectorsUnavailable, type Wanted } from '../vectors/vector-index'
import { everything, type RangedFilter, type Top, textMatches } from './candidates'
import type { SearchContext } from './context'
import { countFacets } from './facets'
import { fuse, gather, neighboursGathered } from './gathered'
import { matchOfAny, planKeywordSearch, queryOf, withoutExcluded } from './keyword'
import { concerns, parseReranking, type Reranking, rerankHits, textsToRead, widened } from './model-rerank'
import { nearestNeighbours, resolveVectorSearch, seekNeighbours, type VectorSearch } from './nearest'
import { LongSearches, Pace } from './pace'
import { type Found, makePage } from './page'
import { completeSides } from './rerank'

/** Neighbours that a hybrid search takes into account at least. */
const HYBRID_K = 100
/** and those that it is content with where an index can name no more: the next would weigh 0.3 / 51. */
const HYBRID_ENOUGH = 50
/** After this time Vectorize is asked again. */
const RETRY_SECONDS = 5

/** The schema has changed while others were let in. */
class Outdated extends Error {}

/** How often a search begins again before it gives up. */
const MOST_BEGINNINGS = 3

/** How a search shares its object with others. */
export interface Sharing {
  /** the long searches of the same object */
  others: LongSearches
  /** what the search can be abandoned by */
  ticket?: string | undefined
}

/**
 * Searches a collection.
 * @param scope what the key of the search may see
 * @throws ApiError with the contract's status and message for whatever is wrong with the parameters; 408 when the
 *   search is cut off before it has found anything
 */
export async function executeSearch(
  context: SearchContext,
  params: SearchParameters,
  scope: SearchScope = {},
  { others, ticket }: Sharing = { others: new LongSearches() },
): Promise<SearchResult> {
  const started = performance.now()
  await others.firstTurn()
  context.requireOpen()
  for (let beginning = 1; ; beginning++) {
    const prepared = await prepare(context, params, scope)
    const { schema } = context
    const left = prepared.request.cutoffMs - (performance.now() - started)
    const conditions = (params.filter_by ?? '').length + (params.sort_by ?? '').length
    const pace = new Pace(others, left, conditions, () => {
      context.requireOpen()
      if (context.schema !== schema) throw new Outdated()
    })
    others.begin(ticket, pace)
    try {
      return await run(context, prepared, pace, started)
    } catch (error) {
      if (!(error instanceof Outdated)) throw error
      if (beginning === MOST_BEGINNINGS) {
        throw new ApiError(
          503,
          'The schema of the collection keeps changing. Ask again in a moment.',
          RETRY_SECONDS,
        )
      }
    } finally {
      pace.end()
      others.end(ticket)
    }
  }
}

async function run(
  context: SearchContext,
  { request, wide, query, vector, candidates, reranking, reranked }: Prepared,
  pace: Pace,
  started: number,
): Promise<SearchResult> {
  const search = await find(context, wide, { query, vector, seeking: candidates }, pace)
  const { seqs, ...page } = await makePage(context, wide, search, pace)
  const facets = await countFacets(context, request, search.candidates, pace)
  // As Typesense: a part of the result is a result, nothing at all is not.
  if (pace.cutoff && page.found === 0) throw new ApiError(408, 'Request Timeout')
  const result: SearchResult = {
    facet_counts: facets,
    ...page,
    out_of: context.count(),
    ...request.window,
    request_params: {
      collection_name: context.schema.name,
      first_q: request.q,
      per_page: request.perPage,
      q: request.q,
    },
    search_cutoff: pace.cutoff,
    search_time_ms: Math.round(performance.now() - started),
  }
  if (reranked) await rerank(context, request, result, seqs, reranked)
  else if (reranking) result.rerank = { model: reranking.name, reranked: 0, time_ms: 0 }
  return withoutExcludedParts(result, request)
}

interface Prepared {
  request: SearchRequest
  /** the request, of as many hits as are to be reranked */
  wide: SearchRequest
  query: ParsedQuery
  vector: VectorSearch | undefined
  candidates: Candidates | 'unavailable' | undefined
  reranking: ReturnType<typeof parseReranking>
  /** where this search is concerned by it */
  reranked: Reranking | undefined
}

/** Reads the request, has its texts embedded and Vectorize asked, which is what a search waits for. */
async function prepare(
  context: SearchContext,
  params: SearchParameters,
  scope: SearchScope,
): Promise<Prepared> {
  const { schema } = context
  const request = parseRequest(params, schema)
  const query = queryOf(context, request)
  const hasWords = query.terms.length > 0
  const reranking = parseReranking(params, request, context.reranker)
  const reranked = reranking && concerns(request, reranking, hasWords) ? reranking : undefined
  const wide = reranked ? widened(request, reranked) : request
  // A faulty filter is answered before an embedder is paid; what it matches is asked for after the wait.
  if (request.vectorQuery !== undefined || request.embeddingField !== undefined) {
    compileFilter(context.sql, context.schema, request.filterBy, NOWHERE)
  }
  const vector = await resolveVectorSearch(context, request, hasWords, scope)
  if (isOutdated(context, params, schema, vector)) return prepare(context, params, scope)
  const candidates = vector && (await seek(context, wide, query, vector, hasWords))
  if (isOutdated(context, params, schema, vector)) return prepare(context, params, scope)
  return { request, wide, query, vector, candidates, reranking, reranked }
}

/**
 * Whether a search has to begin again after a wait: the vectors of a field that has got another model meanwhile
 * cannot be compared with the question's.
 * @throws ApiError when it asks for fields that were dropped: they have no columns any more
 */
function isOutdated(
  context: SearchContext,
  params: SearchParameters,
  schema: StoredSchema,
  vector: VectorSearch | undefined,
): boolean {
  if (context.schema === schema) return false
  parseRequest(params, context.schema)
  const slotOf = ({ slots }: StoredSchema) => vector && slots[vector.field.name]?.slot
  return slotOf(schema) !== slotOf(context.schema)
}

/** Replaces the hits of a wider search by those of the page, the best ones in the model's order. */
async function rerank(
  context: SearchContext,
  request: SearchRequest,
  result: SearchResult,
  seqs: number[],
  reranking: Reranking,
): Promise<void> {
  const texts = textsToRead(context, request, seqs.slice(0, reranking.top))
  const { hits, info } = await rerankHits(reranking, request.q, result.hits ?? [], texts)
  result.hits = hits.slice(request.offset, request.offset + request.perPage)
  result.rerank = info
}

/** The page as a window of the best text matches, where it is sorted by them first of all. */
function topWanted(context: SearchContext, request: SearchRequest): Top | undefined {
  const { sql, schema } = context
  const sort = completeSort(request.sort, schema, { text: true, vector: false })
  const first = sort[0]!
  const isByScore = first.kind === 'text_match' && first.buckets === 0 && first.direction === 'DESC'
  if (!isByScore || request.groupBy.length > 0 || request.perPage === 0) return undefined
  return {
    offset: request.offset,
    limit: request.perPage,
    order: orderBy(sort, sql, schema, false),
    byScore: true,
  }
}

/** Neighbours that are wanted of a search. @param isHybrid words are looked for as well */
function wantedNeighbours(request: SearchRequest, { k }: VectorSearch, isHybrid: boolean): Wanted {
  const page = Math.max(1, request.offset + request.perPage)
  if (k !== undefined) return { k, enough: k }
  return isHybrid
    ? { k: Math.max(page, HYBRID_K), enough: Math.max(page, HYBRID_ENOUGH) }
    : { k: page, enough: page }
}

/** Candidates from an index outside of the object. @returns 'unavailable' when it cannot be searched now */
async function seek(
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  vector: VectorSearch,
  hasWords: boolean,
): Promise<Candidates | 'unavailable' | undefined> {
  const passes = effectiveFilter(context, request, query, pinnedDocuments(context, request))
  const among = {
    get filter() {
      return passes(EVERYWHERE)
    },
    conditions: () => impliedConditions(context.schema, request.filterBy),
  }
  const wanted = wantedNeighbours(request, vector, hasWords)
  try {
    return await seekNeighbours(context, vector, among, wanted)
  } catch (error) {
    if (!(error instanceof VectorsUnavailable)) throw error
    return 'unavailable'
  }
}

async function find(
  context: SearchContext,
  request: SearchRequest,
  asked: {
    query: ParsedQuery
    vector: VectorSearch | undefined
    /** candidates from an index outside of the object */
    seeking: Candidates | 'unavailable' | undefined
  },
  pace: Pace,
): Promise<Found> {
  const { sql } = context
  const { query, vector, seeking } = asked
  const pinned = pinnedDocuments(context, request)
  const filter = effectiveFilter(context, request, query, pinned)
  const top = vector === undefined && pinned.length === 0 ? topWanted(context, request) : undefined
  const keyword = await planKeywordSearch(context, request, query, filter, top, pace)
  const terms = keyword?.terms ?? []
  if (vector === undefined) {
    const parts = keyword === undefined ? everything(sql, filter) : textMatches(sql, keyword.match, filter)
    const found = keyword?.found ?? (filter(NOWHERE).sql === '1' ? context.count() : undefined)
    const known = keyword?.rows && { rows: keyword.rows, found: keyword.found }
    const candidates = { parts, text: keyword !== undefined, vector: false, found }
    return { candidates, terms, pinned, top: known }
  }
  const { k } = wantedNeighbours(request, vector, keyword !== undefined)
  if (seeking === 'unavailable' && keyword === undefined) {
    throw new ApiError(503, 'Vectorize did not answer. Ask again in a moment.', RETRY_SECONDS)
  }
  // The words alone answer a hybrid search whose vectors cannot be searched.
  const nearest =
    seeking === 'unavailable' ? [] : await nearestNeighbours(context, vector, filter, k, pace, seeking)
  if (keyword === undefined) {
    const { parts } = neighboursGathered(nearest)
    return { candidates: { parts, text: false, vector: true, found: nearest.length }, terms, pinned }
  }
  const text = await gather(sql, textMatches(sql, keyword.match, filter), pace)
  const anyWord = matchOfAny(context, request, query, terms)
  const near = request.rerankHybridMatches
    ? await completeSides(context, { vector, nearest, text, anyWord }, pace)
    : nearest
  const { parts, size } = fuse(text, near, vector.alpha)
  return { candidates: { parts, text: true, vector: true, found: size }, terms, pinned }
}

/** filter_by, without the documents that are hidden or pinned and those with an excluded word. */
function effectiveFilter(
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  pinned: { seq: number }[],
): RangedFilter {
  const { sql, schema } = context
  const always: SqlFragment[] = []
  if (request.hiddenHits.length > 0) {
    const hidden = sequenceNumbers(sql, request.hiddenHits)
    always.push(not(oneOf([...hidden.values()])))
  }
  if (pinned.length > 0) always.push(not(oneOf(pinned.map(({ seq }) => seq))))
  const excluded = query.terms.length === 0 ? withoutExcluded(context, request, query) : undefined
  return (range) => {
    const { where, bindings } = compileFilter(sql, schema, request.filterBy, range)
    const conditions: SqlFragment[] = where === '1' ? [] : [{ sql: `(${where})`, bindings }]
    conditions.push(...always)
    if (excluded !== undefined) conditions.push(excluded(range))
    return conditions.length === 0 ? fragment('1') : balanced(conditions, 'AND')
  }
}

function pinnedDocuments({ sql, schema }: SearchContext, request: SearchRequest): Found['pinned'] {
  // Groups have places, their hits have not.
  if (request.pinnedHits.length === 0 || request.groupBy.length > 0) return []
  const seqs = sequenceNumbers(
    sql,
    request.pinnedHits.map(({ id }) => id),
    compileFilter(sql, schema, request.filterPinned ? request.filterBy : ''),
  )
  return request.pinnedHits
    .filter(({ id }) => seqs.has(id) && !request.hiddenHits.includes(id))
    .map(({ id, position }) => ({ seq: seqs.get(id)!, position }))
    .sort((a, b) => a.position - b.position)
}

const sequenceNumbers = (
  sql: SqlStorage,
  ids: string[],
  filter: ReturnType<typeof compileFilter> = { where: '1', bindings: [] },
): Map<string, number> =>
  new Map(
    sql
      .exec<{ id: string; seq: number }>(
        `SELECT d.id, d.seq FROM documents d
          WHERE d.id IN (SELECT value FROM json_each(?)) AND (${filter.where})`,
        JSON.stringify(ids),
        ...filter.bindings,
      )
      .toArray()
      .map(({ id, seq }) => [id, seq]),
  )

function withoutExcludedParts(result: SearchResult, { excludeFields }: SearchRequest): SearchResult {
  const names = excludeFields.split(',').map((name) => name.trim())
  if (names.includes('out_of')) delete result.out_of
  if (names.includes('search_time_ms')) delete result.search_time_ms
  return result
}
