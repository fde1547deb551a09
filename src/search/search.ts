/**
 * One search, from Typesense's parameters to its reply.
 *
 * Everything after the embedding of the query is synchronous, so a search sees one state of the collection.
 * Hits are ordered and counted, facets and groups made, inside SQLite; JavaScript sees the page alone.
 */
import { type Candidates, countOf, everything, hybrid, neighbours, type Top, textMatches } from './candidates'
import type { SearchContext } from './context'
import { countFacets } from './facets'
import { compileFilter, not, oneOf } from './filter/compile'
import { balanced, fragment, join, type SqlFragment } from './fragment'
import { groupHits, groupValues } from './grouping'
import { buildHits, type HitContext, type HitRow } from './hits'
import { planKeywordSearch, queryOf, withoutExcluded } from './keyword'
import { nearestNeighbours, resolveVectorSearch, type VectorSearch } from './nearest'
import type { ParsedQuery, Term } from './query'
import { parseRequest, type SearchRequest } from './request'
import { rerankCandidates } from './rerank'
import { completeSort, orderBy } from './sort'
import type { Hit, SearchParameters, SearchResult } from './types'

/** Neighbours that a hybrid search takes into account at least. */
const HYBRID_K = 100

/**
 * Searches a collection.
 * @throws ApiError with the contract's status and message for whatever is wrong with the parameters
 */
export async function executeSearch(context: SearchContext, params: SearchParameters): Promise<SearchResult> {
  const started = performance.now()
  const request = parseRequest(params, context.schema)
  const query = queryOf(context, request)
  const hasWords = query.terms.length > 0
  // A faulty filter is answered before an embedder is paid; what it matches is asked for after the wait.
  if (request.vectorQuery !== undefined || request.embeddingField !== undefined) {
    compileFilter(context.sql, context.schema, request.filterBy)
  }
  const vector = await resolveVectorSearch(context, request, hasWords)
  const search = find(context, request, query, vector)
  const page = pageOf(context, request, search)
  const result: SearchResult = {
    facet_counts: countFacets(context.sql, context.schema, request, search.candidates.relation),
    ...page,
    out_of: context.count(),
    ...request.window,
    request_params: {
      collection_name: context.schema.name,
      first_q: request.q,
      per_page: request.perPage,
      q: request.q,
    },
    search_cutoff: false,
    search_time_ms: Math.round(performance.now() - started),
  }
  return withoutExcludedParts(result, request)
}

interface Search {
  candidates: Candidates
  /** what words were searched for in the end */
  terms: Term[]
  /** pinned documents that exist, by position */
  pinned: { seq: number; position: number }[]
  /** the page's rows, where they are known already */
  rows?: HitRow[] | undefined
}

/** The page as a window of the best text matches, where it is sorted by them first of all. */
function topWanted(context: SearchContext, request: SearchRequest): Top | undefined {
  const { sql, schema } = context
  const sort = completeSort(request.sort, schema, { text: true, vector: false })
  const first = sort[0]!
  const isByScore = first.kind === 'text_match' && first.buckets === 0 && first.direction === 'DESC'
  if (!isByScore || request.groupBy.length > 0 || request.perPage === 0) return undefined
  return { offset: request.offset, limit: request.perPage, order: orderBy(sort, sql, schema, false) }
}

function find(
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  vector: VectorSearch | undefined,
): Search {
  const pinned = pinnedDocuments(context.sql, request)
  const filter = effectiveFilter(context, request, query, pinned)
  const top = vector === undefined && pinned.length === 0 ? topWanted(context, request) : undefined
  const keyword = planKeywordSearch(context, request, query, filter, top)
  const terms = keyword?.terms ?? []
  if (vector === undefined) {
    const relation = keyword === undefined ? everything(filter) : textMatches(keyword.match, filter)
    const found = keyword?.found ?? (filter.sql === '1' ? context.count() : undefined)
    const candidates = { relation, text: keyword !== undefined, vector: false, found }
    return { candidates, terms, pinned, rows: keyword?.rows }
  }
  const wanted = Math.max(1, request.offset + request.perPage)
  if (keyword === undefined) {
    const nearest = nearestNeighbours(context, vector, filter, wanted)
    const relation = neighbours(nearest)
    return { candidates: { relation, text: false, vector: true, found: nearest.length }, terms, pinned }
  }
  const nearest = nearestNeighbours(context, vector, filter, Math.max(wanted, HYBRID_K))
  const text = textMatches(keyword.match, filter)
  const relation = request.rerankHybridMatches
    ? rerankCandidates(context, request, { vector, nearest, text, terms, query })
    : hybrid(text, nearest, vector.alpha)
  return { candidates: { relation, text: true, vector: true, found: undefined }, terms, pinned }
}

/** filter_by, without the documents that are hidden or pinned and those with an excluded word. */
function effectiveFilter(
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  pinned: { seq: number }[],
): SqlFragment {
  const { where, bindings } = compileFilter(context.sql, context.schema, request.filterBy)
  const conditions: SqlFragment[] = where === '1' ? [] : [{ sql: `(${where})`, bindings }]
  if (request.hiddenHits.length > 0) {
    const hidden = sequenceNumbers(context.sql, request.hiddenHits)
    conditions.push(not(oneOf([...hidden.values()])))
  }
  if (pinned.length > 0) conditions.push(not(oneOf(pinned.map(({ seq }) => seq))))
  const excluded = query.terms.length === 0 ? withoutExcluded(context, request, query) : undefined
  if (excluded !== undefined) conditions.push(excluded)
  return conditions.length === 0 ? fragment('1') : balanced(conditions, 'AND')
}

function pinnedDocuments(sql: SqlStorage, request: SearchRequest): Search['pinned'] {
  if (request.pinnedHits.length === 0) return []
  const seqs = sequenceNumbers(
    sql,
    request.pinnedHits.map(({ id }) => id),
  )
  return request.pinnedHits
    .filter(({ id }) => seqs.has(id) && !request.hiddenHits.includes(id))
    .map(({ id, position }) => ({ seq: seqs.get(id)!, position }))
    .sort((a, b) => a.position - b.position)
}

const sequenceNumbers = (sql: SqlStorage, ids: string[]): Map<string, number> =>
  new Map(
    sql
      .exec<{ id: string; seq: number }>(
        'SELECT id, seq FROM documents WHERE id IN (SELECT value FROM json_each(?))',
        JSON.stringify(ids),
      )
      .toArray()
      .map(({ id, seq }) => [id, seq]),
  )

type Page = Pick<SearchResult, 'found' | 'found_docs' | 'hits' | 'grouped_hits'>

function pageOf(context: SearchContext, request: SearchRequest, search: Search): Page {
  const { sql, schema } = context
  const { candidates, terms, pinned } = search
  const sort = completeSort(request.sort, schema, candidates)
  const order = orderBy(sort, sql, schema, candidates.text && candidates.vector)
  const hitContext: HitContext = { terms, text: candidates.text, vector: candidates.vector, sort }
  const found = candidates.found ?? countOf(sql, candidates.relation)
  if (request.groupBy.length > 0) {
    return { ...groupedPage(context, request, candidates, order, hitContext), found_docs: found }
  }
  const rows =
    search.rows ??
    arrange(pinned, found, request, (offset, limit) =>
      limit <= 0 ? [] : rowsOf(sql, candidates.relation, order, offset, limit),
    )
  return { found: found + pinned.length, hits: buildHits(context, request, rows, hitContext) }
}

type Row = Record<string, SqlStorageValue> & HitRow

function rowsOf(
  sql: SqlStorage,
  relation: SqlFragment,
  order: SqlFragment,
  offset: number,
  limit: number,
): HitRow[] {
  const { sql: text, bindings } = join(
    [
      fragment('SELECT d.seq, d.score, d.distance, d.fused FROM ('),
      relation,
      fragment(') d ORDER BY '),
      order,
      fragment(' LIMIT ? OFFSET ?', limit, offset),
    ],
    '',
  )
  return sql.exec<Row>(text, ...bindings).toArray()
}

/**
 * The page's rows with the pinned documents at their positions; those whose position lies past the end
 * follow the last hit.
 */
export function arrange(
  pinned: { seq: number; position: number }[],
  found: number,
  { offset, perPage }: { offset: number; perPage: number },
  natural: (offset: number, limit: number) => HitRow[],
): HitRow[] {
  const places = new Map<number, number>()
  let next = 0
  for (const [index, { seq, position }] of pinned.entries()) {
    // Two pins on one position stand one after the other.
    next = Math.min(Math.max(position - 1, next), found + index)
    places.set(next++, seq)
  }
  const end = Math.min(offset + perPage, found + pinned.length)
  const before = [...places.keys()].filter((place) => place < offset).length
  const within = [...places.keys()].filter((place) => place >= offset && place < end).length
  const rows = natural(offset - before, end - offset - within)
  const page: HitRow[] = []
  for (let place = offset; place < end; place++) {
    const seq = places.get(place)
    const row = seq === undefined ? rows.shift() : curated(seq)
    if (row !== undefined) page.push(row)
  }
  return page
}

const curated = (seq: number): HitRow => ({ seq, score: null, distance: null, fused: null, curated: true })

function groupedPage(
  context: SearchContext,
  request: SearchRequest,
  { relation }: Candidates,
  order: SqlFragment,
  hitContext: HitContext,
): Pick<SearchResult, 'found' | 'grouped_hits'> {
  const groups = groupHits(context.sql, context.schema, request, relation, order)
  const grouped: NonNullable<SearchResult['grouped_hits']> = []
  let key: string | undefined
  const hits = buildHits(context, request, groups.rows, hitContext)
  for (const [index, row] of groups.rows.entries()) {
    if (row.group_key !== key) {
      key = row.group_key
      const groupKey = groupValues(context.schema, request, key)
      grouped.push({ group_key: groupKey, hits: [], found: row.group_found })
    }
    grouped.at(-1)!.hits.push(hits[index] as Hit)
  }
  return { found: groups.found, grouped_hits: grouped }
}

function withoutExcludedParts(result: SearchResult, { excludeFields }: SearchRequest): SearchResult {
  const names = excludeFields.split(',').map((name) => name.trim())
  if (names.includes('out_of')) delete result.out_of
  if (names.includes('search_time_ms')) delete result.search_time_ms
  return result
}
