/** From what was found to the reply's page: its rows in order, pinned ones in their places, and groups. */
import { type Candidates, countedWindow, countOf, type Top } from './candidates'
import type { SearchContext } from './context'
import { fragment, join, type SqlFragment } from './fragment'
import { groupHits, groupValues } from './grouping'
import { buildHits, type HitContext, type HitRow } from './hits'
import type { Term } from './query'
import type { SearchRequest } from './request'
import { completeSort, orderBy } from './sort'
import type { Hit, SearchResult } from './types'

/** What was found, and what the page needs to know of how. */
export interface Found {
  candidates: Candidates
  /** what words were searched for in the end */
  terms: Term[]
  /** pinned documents that exist, by position */
  pinned: { seq: number; position: number }[]
  /** the page's rows and the number of all, where they are known already */
  top?: { rows: HitRow[]; found: number } | undefined
}

type Page = Pick<SearchResult, 'found' | 'found_docs' | 'hits' | 'grouped_hits'> & {
  /** the numbers of the documents of `hits`, in their order */
  seqs: number[]
}

/** The hits or groups of the page that a request asks for. */
export function makePage(context: SearchContext, request: SearchRequest, search: Found): Page {
  const { sql, schema } = context
  const { candidates, terms, pinned } = search
  const sort = completeSort(request.sort, schema, candidates)
  const order = orderBy(sort, sql, schema, candidates.text && candidates.vector)
  const hitContext: HitContext = { terms, text: candidates.text, vector: candidates.vector, sort }
  if (request.groupBy.length > 0) {
    const found = candidates.found ?? countOf(sql, candidates.relation)
    return { ...groupedPage(context, request, candidates, order, hitContext), found_docs: found, seqs: [] }
  }
  const page = { offset: request.offset, limit: request.perPage, order, byScore: false }
  const { rows, found } =
    search.top ??
    (pinned.length > 0 ? arrange(context.sql, candidates, pinned, page) : take(context.sql, candidates, page))
  return { found, hits: buildHits(context, request, rows, hitContext), seqs: rows.map(({ seq }) => seq) }
}

/** The rows of a window, counted on the way where their number is not known yet. */
function take(sql: SqlStorage, { relation, found }: Candidates, top: Top): { rows: HitRow[]; found: number } {
  if (found === undefined) return countedWindow(sql, relation, top)
  return { rows: top.limit > 0 ? rowsOf(sql, relation, top) : [], found }
}

type Row = Record<string, SqlStorageValue> & HitRow

function rowsOf(sql: SqlStorage, relation: SqlFragment, { offset, limit, order }: Top): HitRow[] {
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
 * A window with the pinned documents at their positions; those whose position lies past the end follow the
 * last hit.
 */
function arrange(
  sql: SqlStorage,
  candidates: Candidates,
  pinned: Found['pinned'],
  top: Top,
): { rows: HitRow[]; found: number } {
  const natural = candidates.found ?? countOf(sql, candidates.relation)
  const places = new Map<number, number>()
  let next = 0
  for (const [index, { seq, position }] of pinned.entries()) {
    // Two pins on one position stand one after the other.
    next = Math.min(Math.max(position - 1, next), natural + index)
    places.set(next++, seq)
  }
  const found = natural + pinned.length
  const end = Math.min(top.offset + top.limit, found)
  const before = [...places.keys()].filter((place) => place < top.offset).length
  const within = [...places.keys()].filter((place) => place >= top.offset && place < end).length
  const { rows } = take(
    sql,
    { ...candidates, found: natural },
    { ...top, offset: top.offset - before, limit: end - top.offset - within },
  )
  const page: HitRow[] = []
  for (let place = top.offset; place < end; place++) {
    const seq = places.get(place)
    const row = seq === undefined ? rows.shift() : curated(seq)
    if (row !== undefined) page.push(row)
  }
  return { rows: page, found }
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
