/**
 * The union of several searches as one list of hits (contract 1.8).
 *
 * Each search is run as deep as the page may need, and the sorted lists are merged. Only the pagination of scoped keys and of
 * the query string counts, in this order.
 */
import type { Access } from '../../auth/access'
import { ApiError, badRequest, forbidden } from '../../errors'
import { mapFew } from '../../lib/few'
import { isExcluded, project } from '../../search/documents/store'
import { splitOutside } from '../../search/fragment'
import { DEFAULT_GROUP_LIMIT, MAX_GROUPED_HITS } from '../../search/limits'
import { byRank, inOrder, MOST_MERGED_HITS } from '../../search/merge-lists'
import type { Document, Hit, SearchParameters, SearchResult } from '../../search/types'
import type { PlannedSearch } from '../../turn/request'
import { listed, unsigned } from '../http/body'
import { runSearch } from '../http/plan'

const MOST_PER_PAGE = 250
/** The deepest hit of a page: every search of the union is run that deep. */
const DEEPEST = 5_000
/** Searches that run at the same time. More would delay everybody else's. */
const AT_ONCE = 4
const PAGINATION = ['page', 'per_page', 'offset', 'limit', 'limit_hits']

/**
 * @param query parameters of the query string, overridden by scoped keys
 * @returns the response: the merged list, or the error of a search as `{error, code}`
 */
export async function unite(
  env: Cloudflare.Env,
  searches: PlannedSearch[],
  query: SearchParameters,
  removeDuplicates: boolean,
  gone?: AbortSignal,
): Promise<Record<string, unknown>> {
  try {
    const page = readPage(query, Math.min(DEEPEST, Math.floor(MOST_MERGED_HITS / searches.length)))
    const sorts = searches.map((search) => sortClauses(search.params.sort_by))
    requireSameSorts(sorts)
    const results = await mapFew(searches, AT_ONCE, (search, index) => {
      const params = showing(search.params, readFields(sorts[index]!))
      return runDeep(env, { ...search, params }, page.from + page.size, gone)
    })
    const lists = results.map((result, searchIndex) =>
      allHits(result).map((hit) => ({ hit, collection: collectionOf(result), searchIndex })),
    )
    // Scores of different engines are not comparable.
    const comparable = sorts[0]!.length > 0 || new Set(searches.map(({ place }) => place?.engine)).size === 1
    const merged = comparable ? merge(lists, sorts) : byRank(lists)
    const unique = removeDuplicates ? withoutDuplicates(merged) : merged
    // Only the duplicates that were seen are subtracted: finding all would need every document of every search. The
    // count is of documents, not of groups.
    const documents = results.reduce((sum, { found, found_docs: docs }) => sum + (docs ?? found), 0)
    const found = documents - (merged.length - unique.length)
    const totals = new Map(results.map((result) => [collectionOf(result), result.out_of ?? 0]))
    return {
      found,
      hits: unique.slice(page.from, page.from + page.size).map(({ hit, collection, searchIndex }) => ({
        ...asAsked(hit, searches[searchIndex]!.params, sorts[searchIndex]!),
        collection,
        search_index: searchIndex,
      })),
      out_of: [...totals.values()].reduce((sum, total) => sum + total, 0),
      ...page.shown,
      search_cutoff: results.some((result) => result.search_cutoff),
      search_time_ms: Math.max(...results.map((result) => result.search_time_ms ?? 0)),
      union_request_params: results.map((result) => ({
        ...result.request_params,
        collection: collectionOf(result),
        per_page: page.size,
      })),
    }
  } catch (error) {
    if (error instanceof ApiError) return { error: error.message, code: error.status }
    throw error
  }
}

/**
 * The pagination that scoped keys fix. A union has one page, so the smallest size and the lowest limit of all keys apply.
 * @throws ApiError 401 if two keys fix different pages
 */
export function fixedPages(accesses: readonly Pick<Access, 'embedded'>[]): SearchParameters {
  const each = accesses.map(({ embedded }) => embedded)
  const sizes = each.flatMap(({ per_page, limit }) => per_page ?? limit ?? [])
  const limits = each.flatMap(({ limit_hits }) => limit_hits ?? [])
  const pages = new Map(
    each.flatMap(({ page, offset }) => {
      const fixed: SearchParameters = {
        ...(page !== undefined && { page }),
        ...(offset !== undefined && { offset }),
      }
      return (page ?? offset) ? [[JSON.stringify(fixed), fixed]] : []
    }),
  )
  if (pages.size > 1) throw forbidden()
  const [page] = pages.values()
  return {
    ...(sizes.length > 0 && { per_page: least(sizes) }),
    ...(limits.length > 0 && { limit_hits: least(limits) }),
    ...page,
  }
}

/** The smallest of these numbers. An invalid one wins, so that its error is reported. */
const least = (texts: string[]): string =>
  texts.reduce((one, other) => (/^\d{1,9}$/.test(one) && !(Number(one) <= Number(other)) ? other : one))

/** @returns how many hits are before the page, how many it has, and how the reply names it */
function readPage(query: SearchParameters, deepest: number) {
  const perPage = count(query, 'per_page') ?? count(query, 'limit') ?? 10
  const page = count(query, 'page')
  const offset = page === undefined ? count(query, 'offset') : undefined
  if (perPage > MOST_PER_PAGE) throw new ApiError(422, 'Only upto 250 hits can be fetched per page.')
  const number = Math.max(page ?? 1, 1)
  const from = offset ?? (number - 1) * perPage
  const limit = Math.min(count(query, 'limit_hits') ?? deepest, deepest)
  if (from + perPage > limit) {
    throw new ApiError(
      422,
      `Only upto ${limit} hits can be fetched. Ensure that \`page\` and \`per_page\` parameters are within this range.`,
    )
  }
  return { from, size: perPage, shown: offset === undefined ? { page: number } : { offset } }
}

function count(query: SearchParameters, name: string): number | undefined {
  const value = query[name]
  if (value === undefined) return undefined
  return unsigned(
    value,
    `Error while initializing global parameters of union: Parameter \`${name}\` must be an unsigned integer.`,
  )
}

/** Hits to ask a search for at once; groups, if it groups hits. */
function pageSize({ group_by: groupBy, group_limit: groupLimit }: SearchParameters): number {
  // The search refuses an invalid limit of groups.
  const hits = groupBy ? Number(groupLimit) || DEFAULT_GROUP_LIMIT : 1
  return Math.max(1, Math.min(MOST_PER_PAGE, Math.floor(MAX_GROUPED_HITS / hits)))
}

/** Runs a search down to `depth` hits. @throws ApiError its own error */
async function runDeep(
  env: Cloudflare.Env,
  search: PlannedSearch,
  depth: number,
  gone: AbortSignal | undefined,
): Promise<SearchResult> {
  if (search.error?.code === 'unknown_collection') {
    throw new ApiError(404, `\`${search.collection}\` collection not found.`)
  }
  const params = { ...search.params }
  for (const name of PAGINATION) delete params[name]
  const most = pageSize(params)
  let whole: SearchResult | undefined
  for (let offset = 0; !whole || (offset < depth && offset < whole.found); offset += most) {
    const size = Math.min(depth - offset, most)
    const deeper = { ...search, params: { ...params, per_page: `${size}`, offset: `${offset}` } }
    const reply = await runSearch(env, deeper, gone)
    if ('error' in reply) throw new ApiError(reply.code, reply.error)
    if (whole) whole.hits = [...allHits(whole), ...allHits(reply.result)]
    else whole = reply.result
  }
  return whole
}

/** The fields that merging reads: the id, and those that the search is sorted by. */
const readFields = (sorts: SortClause[]): string[] =>
  ['id', ...sorts.map((clause) => clause.field)].filter((field) => !field.startsWith('_'))

/** The search with these fields shown. `asAsked` removes them again if they were not asked for. */
function showing(params: SearchParameters, fields: string[]): SearchParameters {
  const excluded = listed(params.exclude_fields)
  return {
    ...params,
    ...(params.include_fields ? { include_fields: [params.include_fields, ...fields].join(',') } : {}),
    exclude_fields: excluded
      .filter((pattern) => !fields.some((field) => isExcluded(field, pattern)))
      .join(','),
  }
}

/** The hit with only the fields that were asked for. */
function asAsked(hit: Hit, params: SearchParameters, sorts: SortClause[]): Hit {
  const { include_fields: include = '', exclude_fields: exclude = '', highlight_fields: named } = params
  const document = withJoined(project(hit.document, include, exclude), hit.document, sorts)
  if (named) return { ...hit, document }
  const highlights = hit.highlights.filter(({ field }) => !isExcluded(field, exclude))
  return { ...hit, document, highlight: project(hit.highlight as Document, '', exclude), highlights }
}

/**
 * Restores the documents that joins have added: all other fields of the whole document, except those that were read
 * only for merging.
 */
function withJoined(asked: Document, whole: Document, sorts: SortClause[]): Document {
  const read = readFields(sorts)
  const joined = Object.entries(whole).filter(
    ([name]) =>
      !Object.hasOwn(asked, name) && !read.some((field) => field === name || field.startsWith(`${name}.`)),
  )
  return { ...asked, ...Object.fromEntries(joined) }
}

const collectionOf = (result: SearchResult): string => result.request_params.collection_name

const allHits = (result: SearchResult): Hit[] =>
  result.hits ?? (result.grouped_hits ?? []).flatMap((group) => group.hits)

// =============================================================================
// Merges the hits of several searches, each of which is sorted.

/** A hit waiting to be merged. */
export interface Candidate {
  hit: Hit
  collection: string
  searchIndex: number
}

interface SortClause {
  field: string
  descending: boolean
}

/** The clauses of a `sort_by`: `field:order`. The field can have options in parentheses. */
export const sortClauses = (sortBy = ''): SortClause[] =>
  splitOutside(sortBy)
    .filter((clause) => clause !== '')
    .map((clause) => {
      if (clause.startsWith('$'))
        throw badRequest(`A union cannot be sorted by a joined field: \`${clause}\`.`)
      const colon = clause.lastIndexOf(':')
      const order = clause.slice(colon + 1).trim()
      const [field = ''] = clause.slice(0, colon).split('(', 1)
      return { field: field.trim(), descending: order.toLowerCase() !== 'asc' }
    })

/** @throws ApiError 400 if the searches are not sorted by as many fields in the same directions: there is no common order */
export function requireSameSorts(sorts: SortClause[][]): void {
  const first = sorts[0] ?? []
  for (const [index, other] of sorts.entries()) {
    if (other.length !== first.length) {
      throw badRequest(
        `Expected size of \`sort_by\` parameter of all searches to be equal. The first union search sorts on ${names(first)} but the search at index \`${index}\` sorts on ${names(other)}.`,
      )
    }
    for (const [place, clause] of other.entries()) {
      const wanted = first[place]!
      if (clause.descending === wanted.descending) continue
      throw badRequest(
        `Expected order of ${ordered(clause)} at search index \`${index}\` to be the same as the order of ${ordered(wanted)} at search index \`0\`.`,
      )
    }
  }
}

const names = (clauses: SortClause[]): string => `{${clauses.map((clause) => clause.field).join(', ')}}`
const ordered = ({ field, descending }: SortClause): string =>
  `\`${field}\` sort_by (${descending ? 'DESC' : 'ASC'})`

/** @param sorts the sort clauses of each list, alike in number and order */
export const merge = (lists: Candidate[][], sorts: SortClause[][]): Candidate[] =>
  inOrder(lists, (a, b) => compare(a, b, sorts))

/** Keeps each document once, at its best hit. */
export function withoutDuplicates(candidates: Candidate[]): Candidate[] {
  const seen = new Set<string>()
  return candidates.filter(({ hit, collection }) => {
    const key = JSON.stringify([collection, hit.document.id])
    return !seen.has(key) && seen.add(key)
  })
}

/** Below 0 if `a` comes first. */
function compare(a: Candidate, b: Candidate, sorts: SortClause[][]): number {
  const ours = sorts[a.searchIndex] ?? []
  const theirs = sorts[b.searchIndex] ?? []
  for (const [place, clause] of ours.entries()) {
    const order = compareValues(sortValue(a.hit, clause.field), sortValue(b.hit, theirs[place]?.field ?? ''))
    if (order !== 0) return clause.descending ? -order : order
  }
  if (ours.length > 0) return 0
  return byRelevance(a.hit, b.hit)
}

function byRelevance(a: Hit, b: Hit): number {
  if (a.hybrid_search_info && b.hybrid_search_info) {
    return b.hybrid_search_info.rank_fusion_score - a.hybrid_search_info.rank_fusion_score
  }
  if (a.text_match !== undefined && b.text_match !== undefined && a.text_match !== b.text_match) {
    return b.text_match - a.text_match
  }
  if (a.vector_distance !== undefined && b.vector_distance !== undefined) {
    return a.vector_distance - b.vector_distance
  }
  return 0
}

function sortValue(hit: Hit, field: string): unknown {
  if (field === '_text_match') return hit.hybrid_search_info?.rank_fusion_score ?? hit.text_match
  if (field === '_vector_distance') return hit.vector_distance
  return field
    .split('.')
    .reduce<unknown>(
      (value, name) =>
        typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined,
      hit.document,
    )
}

/** A whole number that a double cannot hold is a BigInt. The two compare exactly. */
const isNumeric = (value: unknown): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint'

/** Compares numbers, booleans and strings with their own kind. Anything else is a tie. */
function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0
  if (isNumeric(a) && isNumeric(b)) return a < b ? -1 : a > b ? 1 : 0
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  return 0
}
