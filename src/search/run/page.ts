/** Turns matches into the reply's page: rows in order, pinned documents in their places, groups. */
import { DIVERSIFIED, type Diversification, type Metric, type SearchRequest } from '../request/request'
import { completeSort, type SortKey } from '../request/sort'
import { BLOCK, valuesAt } from '../schema/column'
import { isGeopoint, isString } from '../schema/layout'
import type { TextIndex } from '../text/analyzer'
import { rulesOf, type Term } from '../text/query'
import { normalForm } from '../text/terms'
import type { Field, SearchResult } from '../types'
import { cosineDistance, dot, norm } from '../vectors/packed-vectors'
import type { Candidates, OrderedMatch } from './candidates'
import type { Running } from './context'
import { besidePinned, type Pinned, withPinned } from './curate'
import { type GroupHit, groupsOf, groupValues } from './grouping'
import { buildHits, type HitContext, type HitRow } from './hits'
import { blocksOf, setOf, sizeOf } from './match-set'
import type { VectorSearch } from './nearest'
import { windowOf } from './order'
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
  /** the page's rows beside the pinned documents (`besidePinned`) and how many matches there are, if already known */
  top?: { rows: OrderedMatch[]; found: number } | undefined
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
export async function makePage(context: Running, request: SearchRequest, search: Found): Promise<Page> {
  const { candidates, terms, index, pinned, texts, sortVectors } = search
  const sort = completeSort(request.sort, context.schema, candidates)
  const { text, vector } = candidates
  const hitContext: HitContext = { terms, index, text, vector, sort, texts }
  if (request.groupBy.length > 0) {
    const groups = await groupsOf(context, request, { candidates, sort, pinned, sortVectors })
    const page = await shownGroups(context, request, groups, hitContext)
    const found = candidates.found ?? sizeOf(await candidates.set())
    return { ...page, found_docs: found, seqs: [] }
  }
  const page = { offset: request.offset, limit: request.perPage }
  const others =
    search.top ?? (await windowOf(context, candidates, sort, besidePinned(page, pinned), sortVectors))
  return shownPage(context, request, withPinned(others, pinned, page), hitContext)
}

/** The hits of a window of rows. */
async function shownPage(
  context: Running,
  request: SearchRequest,
  { rows, found }: Windowed,
  hitContext: HitContext,
): Promise<Page> {
  const { by, lambda } = request.diversity
  const shown = by === undefined ? rows : await diversified(context, lambda, by, rows, hitContext)
  await context.pace.rest()
  const hits = await buildHits(context, request, shown, hitContext)
  return { found, hits: [...hits.values()], seqs: [...hits.keys()] }
}

/** Hits that a facet with `top_k` counts, as in Typesense. */
const TOP_K = 250

/** Only the best matches: those up to the end of the page, at least TOP_K. */
export async function bestMatches(
  context: Running,
  request: SearchRequest,
  search: Found,
): Promise<Candidates> {
  const { candidates, sortVectors } = search
  const sort = completeSort(request.sort, context.schema, candidates)
  const limit = Math.max(TOP_K, request.offset + request.perPage)
  const { rows } =
    (await search.first?.(limit)) ??
    (await windowOf(context, candidates, sort, { offset: 0, limit }, sortVectors))
  const set = setOf(rows.map(({ seq }) => seq))
  return { ...candidates, found: rows.length, set: async () => set }
}

async function shownGroups(
  context: Running,
  request: SearchRequest,
  groups: Awaited<ReturnType<typeof groupsOf>>,
  hitContext: HitContext,
): Promise<Pick<SearchResult, 'found' | 'grouped_hits'>> {
  const hits = await buildHits(context, request, groups.rows, hitContext)
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

// =============================================================================
// Puts the best hits in an order in which neighbours differ, where a curation asks for it. This is maximal marginal
// relevance (Carbonell and Goldstein, 1998): the best hit stays first, and each next one is that with the highest
//
//     lambda * relevance - (1 - lambda) * highest similarity to a hit before it
//
// Relevance is the text match or the rank fusion score as a share of the best one, or 1 minus the vector distance. In
// any other order all hits are equally relevant. Similarity is the sum of what the metrics of the curation say of two
// documents, each times its weight. Of equals, the first in the order of the search comes first.

/** The requested page, after the first rows have been diversified. Pinned documents keep their places. */
async function diversified(
  context: Running,
  lambda: number,
  { metrics, page }: Diversification,
  rows: readonly HitRow[],
  { sort, texts }: { sort: readonly SortKey[]; texts?: ReadonlyMap<number, TextScore> | undefined },
): Promise<HitRow[]> {
  const end = page.offset + page.limit
  const places = [...rows.slice(0, DIVERSIFIED).keys()].filter((place) => !rows[place]!.curated)
  const pool = places.map((place) => rows[place]!)
  const seqs = pool.map(({ seq }) => seq)
  const alike = await similarities(context, metrics, seqs)
  const order = await marginalRelevance(relevances(pool, sort, texts), alike, lambda, () =>
    context.pace.rest(),
  )
  const arranged = [...rows]
  for (const [index, place] of places.entries()) arranged[place] = pool[order[index]!]!
  return arranged.slice(page.offset, end)
}

/** How relevant rows are, 1 for the best. */
function relevances(
  rows: readonly HitRow[],
  [first]: readonly SortKey[],
  texts: ReadonlyMap<number, TextScore> | undefined,
): number[] {
  const isByText = first?.kind === 'text_match' && first.buckets === undefined && first.direction === 'DESC'
  if (isByText) {
    const values = rows.map(({ seq, fused, score }) => fused ?? texts?.get(seq)?.rank ?? -(score ?? 0))
    const best = Math.max(...values)
    return values.map((value) => (best > 0 ? value / best : 0))
  }
  const isByDistance =
    first?.kind === 'vector_distance' && first.buckets === undefined && first.direction === 'ASC'
  return rows.map(({ distance }) => (isByDistance && distance !== null ? 1 - distance : 0))
}

/**
 * Orders items by maximal marginal relevance.
 * @param relevance of each item, in the order that decides between equals. The first item stays first
 * @param alike how alike two items are
 * @param lambda between 0 (only differences count) and 1 (only relevance counts)
 * @param rest gives other searches a turn. It returns false when the search must end: then the remaining items keep
 *   their order
 * @returns the places of the items, in their new order
 */
export async function marginalRelevance(
  relevance: readonly number[],
  alike: (one: number, other: number) => number,
  lambda: number,
  rest: () => Promise<boolean> = async () => true,
): Promise<number[]> {
  const left = new Set(relevance.keys())
  const highest = relevance.map(() => Number.NEGATIVE_INFINITY)
  const order: number[] = []
  let next = 0
  while (left.delete(next)) {
    order.push(next)
    if (!(await rest())) return [...order, ...left]
    let best = Number.NEGATIVE_INFINITY
    const last = next
    for (const item of left) {
      highest[item] = Math.max(highest[item]!, alike(item, last))
      const value = lambda * relevance[item]! - (1 - lambda) * highest[item]!
      // The set is in the order of the search, so the first of equals is found first.
      if (value <= best) continue
      best = value
      next = item
    }
  }
  return order
}

type Similarity = (one: number, other: number) => number

/** Looking up this many values, or multiplying this many pairs of numbers, takes about as long as reading a row. */
const LOOKUPS_A_ROW = 8
const PRODUCTS_A_ROW = 256

/** How alike two documents are, by their places among `seqs`. */
async function similarities(
  context: Running,
  metrics: readonly Metric[],
  seqs: readonly number[],
): Promise<Similarity> {
  const each: Similarity[] = []
  for (const metric of metrics) {
    await context.pace.rest()
    const { field, method, weight } = metric
    const alike =
      method === 'vector_distance' ? byVector(context, field, seqs) : byValues(context, field, method, seqs)
    each.push((one, other) => weight * alike(one, other))
  }
  return (one, other) => each.reduce((sum, alike) => sum + alike(one, other), 0)
}

/** 1 minus the distance of two vectors; 0 where one is missing. */
function byVector(context: Running, field: Field, seqs: readonly number[]): Similarity {
  const index = context.vectors(field)
  const vectors = seqs.map((seq) => index.get(seq))
  const norms = vectors.map((vector) => (vector ? norm(vector) : 0))
  return (one, other) => {
    const [a, b] = [vectors[one], vectors[other]]
    if (a === undefined || b === undefined) return 0
    context.pace.countRows(a.length / PRODUCTS_A_ROW)
    return field.vec_dist === 'ip' ? dot(a, b) : 1 - cosineDistance(a, norms[one]!, b)
  }
}

/** Compares the values of two documents as sets; 0 where one has none. */
function byValues(
  context: Running,
  field: Field,
  method: 'equality' | 'jaccard',
  seqs: readonly number[],
): Similarity {
  const bySeq = diverseValues(context, field, seqs)
  const sets = seqs.map((seq) => bySeq.get(seq))
  return (one, other) => {
    const [a, b] = [sets[one], sets[other]]
    if (a === undefined || b === undefined) return 0
    context.pace.countRows(a.size / LOOKUPS_A_ROW)
    let shared = 0
    for (const value of a) if (b.has(value)) shared++
    const all = a.size + b.size - shared
    return method === 'jaccard' ? shared / all : Number(shared === all)
  }
}

/** The values of a field as texts that are equal where the values are, by sequence number. */
function diverseValues(context: Running, field: Field, seqs: readonly number[]): Map<number, Set<string>> {
  const rules = rulesOf(context.schema, field)
  const blockOf = blocksOf(context)
  const values = new Map<number, Set<string>>()
  for (const [number, offsets] of setOf(seqs)) {
    const block = blockOf(field, number, offsets)
    for (const at of offsets) {
      const own = valuesAt(block, at)
      const texts = isString(field)
        ? own.map((value) => normalForm(String(value), rules))
        : isGeopoint(field)
          ? own.flatMap((value, index) => (index % 2 === 0 ? [`${value},${own[index + 1]}`] : []))
          : own.map(String)
      if (texts.length > 0) values.set(number * BLOCK + at, new Set(texts))
    }
  }
  return values
}
