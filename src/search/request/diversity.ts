/** What a search knows of the diversity of its hits: `diversity_lambda`, and the fields that a curation compares. */
import { ApiError } from '../../errors'
import { findField } from '../schema/find-field'
import { hasValues, isArray, isVector, type StoredSchema } from '../schema/layout'
import type { Diversity, SimilarityMethod } from '../sets/diversity'
import type { Field } from '../types'

/** How many of the best hits are diversified, as in Typesense. All others follow in the order of the search. */
export const DIVERSIFIED = 250

export interface DiversityRequest {
  /** 0: only the differences between hits count; 1: only their relevance */
  lambda: number
  /** where a curation asks for it */
  by?: Diversification
}

/** A curation's `diversity`, with the fields that it names. */
export interface Diversification {
  metrics: Metric[]
  /** the page that is asked for; the search finds all hits that are diversified */
  page: { offset: number; limit: number }
}

export interface Metric {
  field: Field
  method: SimilarityMethod
  weight: number
}

/** What this file reads and changes of a search request. */
interface Paged {
  groupBy: string[]
  offset: number
  perPage: number
  diversity: DiversityRequest
}

/**
 * The request, widened to find all hits that are diversified.
 * @throws ApiError 400 if the fields of the curation cannot be compared, or the search groups its hits
 */
export function diversifying<Request extends Paged>(
  request: Request,
  { similarity_metric: metrics }: Diversity,
  schema: StoredSchema,
): Request {
  if (request.groupBy.length > 0) throw new ApiError(400, 'Diversity is not supported along with group_by.')
  const compared = metrics.map(({ field: name, method, weight }) => {
    const field = findField(schema, name)
    if (field === undefined) throw new ApiError(400, `\`${name}\` field not found in the schema.`)
    requireComparable(field, method)
    return { field, method, weight }
  })
  const { offset, perPage, diversity } = request
  if (offset >= DIVERSIFIED || perPage === 0) return request
  return {
    ...request,
    offset: 0,
    perPage: Math.max(DIVERSIFIED, offset + perPage),
    diversity: { ...diversity, by: { metrics: compared, page: { offset, limit: perPage } } },
  }
}

function requireComparable(field: Field, method: SimilarityMethod): void {
  const { name } = field
  if (method === 'vector_distance') {
    if (isVector(field)) return
    throw new ApiError(400, `Field \`${name}\` must be a vector to use \`vector_distance\` in diversity.`)
  }
  if ((isArray(field) || isVector(field)) && !field.facet) {
    throw new ApiError(400, `Enable faceting on \`${name}\` array field to use in diversity.`)
  }
  if ((!field.sort && !field.facet) || !hasValues(field)) {
    throw new ApiError(400, `Enable sorting/faceting on \`${name}\` field to use in diversity.`)
  }
}
