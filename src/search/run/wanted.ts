/** What a search wants of its two sides: a window of the best words, so many neighbours, and how much they weigh. */

import type { SearchRequest } from '../request/request'
import { completeSort } from '../request/sort'
import type { Wanted } from '../vectors/vector-index'
import type { Top } from './candidates'
import type { SearchContext } from './context'
import type { VectorSearch } from './nearest'

/** The least number of neighbours in a hybrid search. */
const HYBRID_K = 100
/** This many are enough if the index cannot name more: the next one would weigh 0.3 / 51. */
const HYBRID_ENOUGH = 50
/** The weight of the vector's score, for models that read a text in context. */
const STRONG = 0.8
/** The page as a window of the best keyword matches, if the order begins with the text match. */
export function topWanted(context: SearchContext, request: SearchRequest): Top | undefined {
  const sort = completeSort(request.sort, context.schema, { text: true, vector: false })
  const first = sort[0]!
  const isByScore = first.kind === 'text_match' && first.buckets === undefined && first.direction === 'DESC'
  if (!isByScore || request.groupBy.length > 0 || request.perPage === 0) return undefined
  // These keys need all matches.
  if (
    sort.some(
      (key) => key.kind === 'vector_query' || key.kind === 'joined' || ('buckets' in key && key.buckets),
    )
  )
    return undefined
  return { offset: request.offset, limit: request.perPage, sort }
}

/** How many neighbours to find. @param isHybrid words are searched too */
export function wantedNeighbours(request: SearchRequest, { k }: VectorSearch, isHybrid: boolean): Wanted {
  const page = Math.max(1, request.offset + request.perPage)
  if (k !== undefined) return { k, enough: k }
  return isHybrid
    ? { k: Math.max(page, HYBRID_K), enough: Math.max(page, HYBRID_ENOUGH) }
    : { k: page, enough: page }
}

/** The weight of vectors beside words in score fusion. */
export const meaningOf = (context: SearchContext, { field, alpha }: VectorSearch): number =>
  alpha ?? (field.embed && context.embedder(field).weight) ?? STRONG
