/** Turns matches into the reply's page: rows in order, pinned documents in their places, groups. */

import type { SearchRequest } from '../request/request'
import { completeSort } from '../request/sort'
import type { TextIndex } from '../text/analyzer'
import type { Term } from '../text/query'
import type { SearchResult } from '../types'
import type { Candidates } from './candidates'
import type { SearchContext } from './context'
import { diversified } from './diversity'
import type { OrderedMatch } from './gathered'
import { type GroupHit, type Groups, groupsOf, groupValues } from './grouping'
import { buildHits, type HitContext, type HitRow } from './hits'
import { setOf, sizeOf } from './match-set'
import type { VectorSearch } from './nearest'
import type { Pace } from './pace'
import { besidePinned, type Pinned, withPinned } from './pinned'
import type { TextScore } from './ranking/score'
import { windowOf } from './window'

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
  const { candidates, terms, index, pinned, texts, sortVectors } = search
  const sort = completeSort(request.sort, context.schema, candidates)
  const { text, vector } = candidates
  const hitContext: HitContext = { terms, index, text, vector, sort, texts }
  if (request.groupBy.length > 0) {
    const groups = await groupsOf(context, request, { candidates, sort, pinned, sortVectors }, pace)
    const page = await shownGroups(context, request, groups, hitContext, pace)
    const found = candidates.found ?? sizeOf(await candidates.set(pace))
    return { ...page, found_docs: found, seqs: [] }
  }
  if (search.top !== undefined) return shownPage(context, request, search.top, hitContext, pace)
  const page = { offset: request.offset, limit: request.perPage }
  const others = await windowOf(context, candidates, sort, besidePinned(page, pinned), pace, sortVectors)
  return shownPage(context, request, withPinned(others, pinned, page), hitContext, pace)
}

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
  const hits = await buildHits(context, request, shown, hitContext, pace)
  return { found, hits: [...hits.values()], seqs: [...hits.keys()] }
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
  const { candidates, sortVectors } = search
  const sort = completeSort(request.sort, context.schema, candidates)
  const limit = Math.max(TOP_K, request.offset + request.perPage)
  const { rows } =
    (await search.first?.(limit)) ??
    (await windowOf(context, candidates, sort, { offset: 0, limit }, pace, sortVectors))
  const set = setOf(rows.map(({ seq }) => seq))
  return { ...candidates, found: rows.length, set: async () => set }
}

async function shownGroups(
  context: SearchContext,
  request: SearchRequest,
  groups: Groups,
  hitContext: HitContext,
  pace: Pace,
): Promise<Pick<SearchResult, 'found' | 'grouped_hits'>> {
  const hits = await buildHits(context, request, groups.rows, hitContext, pace)
  const grouped: NonNullable<SearchResult['grouped_hits']> = []
  let key: GroupHit['group_key'] | undefined
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
