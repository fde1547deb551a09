/** Turns matches into the reply's page: rows in order, pinned documents in their places, groups. */

import { EVERYWHERE } from '../range'
import type { Order } from '../request/order'
import type { SearchRequest } from '../request/request'
import { completeSort, distanceColumn, orderBy, type SortKey } from '../request/sort'
import type { TextIndex } from '../text/analyzer'
import type { Term } from '../text/query'
import type { SearchResult } from '../types'
import {
  type Candidates,
  countedWindow,
  countOf,
  type OrderedMatch,
  rowsAsRelation,
  type Top,
} from './candidates'
import { fieldsOfOrder } from './column-order'
import type { SearchContext } from './context'
import { diversified } from './diversity'
import { gather } from './gathered'
import { type GroupRow, type Groups, groupHits, groupValues } from './grouping'
import { buildHits, type HitContext, type HitRow } from './hits'
import { addRanks } from './join-order'
import { listed, sizeOf } from './match-set'
import { groupsInMemory } from './memory-groups'
import { windowInMemory } from './memory-window'
import { distancesTo, type VectorSearch } from './nearest'
import type { Pace } from './pace'
import { besidePinned, type Pinned, withPinned } from './pinned'
import { groupsWithPinned } from './pinned-groups'
import type { TextScore } from './ranking/score'

/** The matches, and how they were found. */
export interface Found {
  candidates: Candidates
  /** the words searched for in the end */
  terms: Term[]
  /** the index that was searched, if it is not the request's */
  index?: TextIndex | undefined
  /** pinned documents that exist, by position */
  pinned: Pinned[]
  /** the page's rows and the total, if already known */
  top?: { rows: HitRow[]; found: number } | undefined
  /** the first rows of all pages, if `candidates` does not have that order */
  first?: (limit: number) => Promise<{ rows: OrderedMatch[] }>
  /** how well matches fit, by sequence number, where that was read */
  texts?: ReadonlyMap<number, TextScore>
  /** the vectors of the `_vector_query` keys of sort_by */
  sortVectors?: VectorSearch[]
}

type Windowed = { rows: HitRow[]; found: number }

type Page = Pick<SearchResult, 'found' | 'found_docs' | 'hits' | 'grouped_hits'> & {
  /** the sequence numbers of `hits`, in order */
  seqs: number[]
}

/** The hits or groups of the requested page. */
export async function makePage(
  context: SearchContext,
  request: SearchRequest,
  search: Found,
  pace: Pace,
): Promise<Page> {
  const { sql, schema } = context
  const { terms, index, pinned, texts } = search
  const sort = completeSort(request.sort, schema, search.candidates)
  if (search.top !== undefined && request.groupBy.length === 0) {
    const { text, vector } = search.candidates
    return shownPage(context, request, search.top, { terms, index, text, vector, sort, texts }, pace)
  }
  const order = orderBy(sort, sql, schema, search.candidates.text && search.candidates.vector)
  const quick = await pageInMemory(context, request, search, sort, pace)
  // If facets or an order in memory need the set of all matches, reuse it.
  const needsSet = request.facets.length > 0 || fieldsOfOrder(sort) !== undefined
  const known = needsSet ? await listed(search.candidates, pace) : search.candidates
  const candidates =
    quick === undefined ? await withColumns(context, { ...search, candidates: known }, order, pace) : known
  const { text, vector } = candidates
  const hitContext: HitContext = { terms, index, text, vector, sort, texts }
  if (request.groupBy.length > 0) {
    const found =
      candidates.found ??
      (await sizeInMemory(candidates, pace)) ??
      (await countOf(sql, candidates.parts, pace))
    const groups = await groupedPage(context, request, candidates, {
      order,
      hitContext,
      pace,
      pinned,
      groups: quick?.groups,
    })
    return { ...groups, found_docs: found, seqs: [] }
  }
  const page = { offset: request.offset, limit: request.perPage, order, byScore: false }
  const window =
    quick?.window ??
    (pinned.length > 0
      ? await arrange(sql, candidates, pinned, page, pace)
      : await countedWindow(sql, leadingOf(candidates, sort, page), page, pace))
  if (quick === undefined) readTexts(candidates, window.rows)
  return shownPage(context, request, window, hitContext, pace)
}

/** Reads how well the documents of a page fit, for those who see it. */
const readTexts = ({ fit }: Candidates, rows: readonly HitRow[]): void =>
  void fit?.of(rows.filter(({ score }) => score !== null).map(({ seq }) => seq))

/** The hits of a window of rows. */
async function shownPage(
  context: SearchContext,
  request: SearchRequest,
  { rows, found }: Windowed,
  hitContext: HitContext,
  pace: Pace,
): Promise<Page> {
  const { by, lambda } = request.diversity
  const shown = by === undefined ? rows : await diversified(context, lambda, by, rows, hitContext, pace)
  await pace.rest()
  const hits = await buildHits(context, request, shown.map(withDistance), hitContext, pace)
  return { found, hits: [...hits.values()], seqs: [...hits.keys()] }
}

/** The page from values in memory; undefined if SQL must find it. */
async function pageInMemory(
  context: SearchContext,
  request: SearchRequest,
  { candidates, pinned }: Found,
  sort: SortKey[],
  pace: Pace,
): Promise<{ groups?: Groups; window?: Windowed } | undefined> {
  if (request.groupBy.length > 0) {
    if (pinned.length > 0) return undefined
    const groups = await groupsInMemory(context, request, candidates, sort, pace)
    return groups && { groups }
  }
  const page = { offset: request.offset, limit: request.perPage }
  const others = await windowInMemory(context, candidates, sort, besidePinned(page, pinned), pace)
  return others && { window: withPinned(others, pinned, page) }
}

async function sizeInMemory({ set }: Candidates, pace: Pace): Promise<number | undefined> {
  const found = await set?.(pace)
  return found && sizeOf(found)
}

/** Hits that a facet with `top_k` counts, as in Typesense. */
const TOP_K = 250

/** Only the best matches: those up to the end of the page, at least TOP_K. */
export async function bestMatches(
  context: SearchContext,
  request: SearchRequest,
  search: Found,
  pace: Pace,
): Promise<Candidates> {
  const sort = completeSort(request.sort, context.schema, search.candidates)
  const order = orderBy(sort, context.sql, context.schema, search.candidates.text && search.candidates.vector)
  const candidates = await withColumns(context, search, order, pace)
  const limit = Math.max(TOP_K, request.offset + request.perPage)
  const { rows } =
    (await search.first?.(limit)) ??
    (await countedWindow(context.sql, candidates, { offset: 0, limit, order, byScore: false }, pace))
  const relation = rowsAsRelation(rows)
  return {
    ...candidates,
    found: rows.length,
    set: undefined,
    async *parts() {
      yield { relation, range: EVERYWHERE }
    },
  }
}

/** Adds the columns that depend on all matches or on vectors: buckets and distances. */
async function withColumns(
  context: SearchContext,
  { candidates, sortVectors = [] }: Found,
  { buckets, joined }: Order,
  pace: Pace,
): Promise<Candidates> {
  if (buckets.length + sortVectors.length + joined.length === 0) return candidates
  const gathered = await gather(context.sql, candidates.parts, pace)
  await addRanks(context, gathered, joined, pace)
  for (const each of buckets) gathered.fill(each, candidates.text && candidates.vector)
  for (const [index, search] of sortVectors.entries()) {
    gathered.columns.set(distanceColumn(index), await distancesTo(context, search, gathered.seqs, pace))
  }
  return { ...candidates, parts: gathered.parts, found: gathered.size, leading: undefined }
}

/** What a window needs of matches in memory. If the best match comes first, SQL reads a few of them and not all. */
function leadingOf(candidates: Candidates, [first]: SortKey[], { offset, limit }: Top): Candidates {
  const isBestFirst =
    first?.kind === 'text_match' && first.buckets === undefined && first.direction === 'DESC'
  if (!isBestFirst || candidates.leading === undefined || limit === 0) return candidates
  return { ...candidates, parts: candidates.leading(offset + limit) }
}

/** A hit reports the distance that it is sorted by. */
const withDistance = (row: HitRow & { distance0?: unknown }): HitRow =>
  row.distance === null && typeof row.distance0 === 'number' ? { ...row, distance: row.distance0 } : row

/** A window with the pinned documents in their places. */
async function arrange(
  sql: SqlStorage,
  candidates: Candidates,
  pinned: Found['pinned'],
  top: Top,
  pace: Pace,
): Promise<{ rows: HitRow[]; found: number }> {
  const others = await countedWindow(sql, candidates, besidePinned(top, pinned), pace)
  return withPinned(others, pinned, top)
}

async function groupedPage(
  context: SearchContext,
  request: SearchRequest,
  candidates: Candidates,
  {
    order,
    hitContext,
    pace,
    pinned,
    groups: known,
  }: {
    order: Order
    hitContext: HitContext
    pace: Pace
    pinned: readonly Pinned[]
    groups: Groups | undefined
  },
): Promise<Pick<SearchResult, 'found' | 'grouped_hits'>> {
  const groups =
    known ??
    (pinned.length > 0
      ? await groupsWithPinned(context, request, candidates, { order, pinned }, pace)
      : await groupHits(context, request, candidates, order, pace))
  if (known === undefined) readTexts(candidates, groups.rows)
  const hits = await buildHits(context, request, groups.rows, hitContext, pace)
  const grouped: NonNullable<SearchResult['grouped_hits']> = []
  let key: GroupRow['group_key'] | undefined
  for (const row of groups.rows) {
    const hit = hits.get(row.seq)
    if (hit === undefined) continue
    if (row.group_key !== key) {
      key = row.group_key
      const groupKey = groupValues(context.schema, request, key)
      grouped.push({ group_key: groupKey, hits: [], found: row.group_found })
    }
    grouped.at(-1)!.hits.push(hit)
  }
  return { found: groups.found, grouped_hits: grouped }
}
