/** Merges the hits of several searches, each of which is sorted. */
import { ApiError } from '../../errors'
import { splitOutside } from '../../search/fragment'
import type { Hit } from '../../search/types'

/** A hit waiting to be merged. */
export interface Candidate {
  hit: Hit
  collection: string
  searchIndex: number
}

export interface SortClause {
  field: string
  descending: boolean
}

/** The clauses of a `sort_by`: `field:order`. The field can have options in parentheses. */
export const sortClauses = (sortBy = ''): SortClause[] =>
  splitOutside(sortBy, ',')
    .filter((clause) => clause !== '')
    .map((clause) => {
      if (clause.startsWith('$'))
        throw new ApiError(400, `A union cannot be sorted by a joined field: \`${clause}\`.`)
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
      throw new ApiError(
        400,
        `Expected size of \`sort_by\` parameter of all searches to be equal. The first union search sorts on ${names(first)} but the search at index \`${index}\` sorts on ${names(other)}.`,
      )
    }
    for (const [place, clause] of other.entries()) {
      const wanted = first[place]!
      if (clause.descending === wanted.descending) continue
      throw new ApiError(
        400,
        `Expected order of ${ordered(clause)} at search index \`${index}\` to be the same as the order of ${ordered(wanted)} at search index \`0\`.`,
      )
    }
  }
}

const names = (clauses: SortClause[]): string => `{${clauses.map((clause) => clause.field).join(', ')}}`
const ordered = ({ field, descending }: SortClause): string =>
  `\`${field}\` sort_by (${descending ? 'DESC' : 'ASC'})`

/**
 * Merges lists by comparing their heads. Of equal hits the one of the earlier search comes first.
 *
 * @param sorts the sort clauses of each list, alike in number and order
 */
export function merge(lists: Candidate[][], sorts: SortClause[][]): Candidate[] {
  const heads = lists.map(() => 0)
  const merged: Candidate[] = []
  for (;;) {
    let best: Candidate | undefined
    for (const [index, list] of lists.entries()) {
      const candidate = list[heads[index]!]
      if (candidate && (!best || compare(candidate, best, sorts) < 0)) best = candidate
    }
    if (!best) return merged
    merged.push(best)
    heads[lists.findIndex((list, index) => list[heads[index]!] === best)]!++
  }
}

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
