/** Facets of joined collections: `facet_by=$collection(field)` counts the related documents of the matches. */
import { ApiError } from '../../errors'
import { isExcluded } from '../documents/projection'
import { jsonLists } from '../fragment'
import { MAX_JOIN_KEYS } from '../limits'
import type { JoinedFacets } from '../request/facet-request'
import { parseRequest, type SearchRequest } from '../request/request'
import { findField } from '../schema/find-field'
import { isString } from '../schema/layout'
import type { FacetCounts, FacetQuestion, JoinPlace } from '../types'
import type { SearchContext } from './context'
import { excludesIn } from './join-fields'
import type { SearchJoins } from './join-port'
import { shownOf } from './join-shown'
import { type MatchSet, seqsOf, sizeOf } from './match-set'
import type { Pace } from './pace'

const PROBLEM = 'Error parsing reference facet: '

/**
 * Asks other collections for facets. A related document counts once, however many matches it belongs to.
 * @param set the matches
 * @returns the facets of each part of `facet_by` that names another collection
 * @throws ApiError 400 for a collection that the key may not read, 422 for too many matches
 */
export async function countJoinedFacets(
  context: SearchContext,
  request: SearchRequest,
  set: MatchSet,
  pace: Pace,
): Promise<FacetCounts[][]> {
  if (request.joinedFacets.length === 0) return []
  const joins = context.joins!
  if (sizeOf(set) > MAX_JOIN_KEYS) {
    throw new ApiError(
      422,
      `Facets of joined collections take at most ${MAX_JOIN_KEYS} matches. Find fewer documents with \`filter_by\`.`,
    )
  }
  const seqs = seqsOf(set)
  const counts: FacetCounts[][] = []
  const related = new Map<string, number[]>()
  for (const { collection, facetBy } of request.joinedFacets) {
    const place = placeOf(joins, collection)
    const known = related.get(place.objectId) ?? (await relatedTo(context, joins, place, seqs, pace))
    related.set(place.objectId, known)
    const facets: FacetQuestion = {
      facetBy,
      calls: collection,
      exclude: excludesIn(joins.scope.excludes ?? '', (name) => joins.isCalled(name, place)),
      hidden: joins.scope.includes === true,
      maxFacetValues: request.maxFacetValues,
      seqs: known,
    }
    const answer = await pace.away(joins.ask(place, { filter: '', want: { facets } }))
    counts.push(answer.facets ?? [])
  }
  return counts
}

function placeOf(joins: SearchJoins, collection: string): JoinPlace {
  if (Object.hasOwn(joins.scope.joins ?? {}, collection)) return joins.place(collection, 'facet_by')
  throw new ApiError(400, `${PROBLEM}Referenced collection \`${collection}\` not found.`)
}

/** The related documents of matches, by their sequence numbers there. */
async function relatedTo(
  context: SearchContext,
  joins: SearchJoins,
  place: JoinPlace,
  seqs: readonly number[],
  pace: Pace,
): Promise<number[]> {
  const { on } = await pace.away(joins.relation(place))
  const found = new Set<number>()
  for (const [filter, group] of shownOf(context, joins, place, seqs)) {
    const keys = new Set(joins.keysOf(group, on).map(({ key }) => key))
    if (keys.size === 0) continue
    const want = { related: jsonLists(keys) }
    const answer = await pace.away(joins.ask(place, { filter, want }))
    for (const seq of answer.seqs ?? []) found.add(seq)
  }
  return [...found].sort((a, b) => a - b)
}

/** The parameters of a search in the joined collection for these facets. */
export const facetParameters = ({ facetBy, maxFacetValues }: FacetQuestion) => ({
  q: '*',
  facet_by: facetBy,
  max_facet_values: String(maxFacetValues),
})

/**
 * Parses another collection's request for facets here.
 * @throws ApiError 400 or 404 in Typesense's words
 */
export function joinedRequest({ schema }: SearchContext, question: FacetQuestion): SearchRequest {
  let request: SearchRequest
  try {
    request = parseRequest(facetParameters(question), schema)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new ApiError(error.status, `${PROBLEM}${error.message}`)
  }
  if (request.joinedFacets.length > 0) throw new ApiError(400, `${PROBLEM}\`${question.facetBy}\`.`)
  for (const { field, order, returnParent } of request.facets) {
    // A field that the key hides is treated as unknown, also as a sort field of values.
    const fields = order === undefined || order.by === 'value' ? [field] : [field, order.by]
    for (const { name } of fields) {
      if (question.hidden || isExcluded(name, question.exclude)) {
        throw new ApiError(404, `${PROBLEM}Could not find a facet field named \`${name}\` in the schema.`)
      }
    }
    if (returnParent) throw new ApiError(400, `${PROBLEM}Invalid facet param \`return_parent\`.`)
  }
  return request
}

/** Facets as the other collection shows them, each value with the filter that finds it there. */
export function asJoined(
  { schema }: SearchContext,
  { facets }: SearchRequest,
  counted: readonly FacetCounts[],
  { calls }: FacetQuestion,
): FacetCounts[] {
  return counted.map((each, index) => {
    const { ranges } = facets[index]!
    const quote = isString(findField(schema, each.field_name)!) ? '`' : ''
    const filterOf = (value: string): string => {
      const range = ranges.find(({ label }) => label === value)
      if (range === undefined) return `${quote}${value}${quote}`
      if (range.from === undefined) return `<=${range.to}`
      return range.to === undefined ? `>=${range.from}` : `[${range.from}..${range.to}]`
    }
    return {
      ...each,
      field_name: `${calls}(${each.field_name})`,
      counts: each.counts.map((count) => ({
        ...count,
        facet_filter: `$${calls}(${each.field_name}: ${filterOf(count.value)})`,
      })),
    }
  })
}

/** Own facets and joined ones in the order of `facet_by`. */
export function inOrder(
  own: readonly FacetCounts[],
  joined: readonly FacetCounts[][],
  places: readonly JoinedFacets[],
): FacetCounts[] {
  const all: FacetCounts[] = []
  let next = 0
  for (const [index, { at }] of places.entries()) {
    all.push(...own.slice(next, at), ...joined[index]!)
    next = at
  }
  return [...all, ...own.slice(next)]
}
