/** The order of hits, as SQL over one part of the matches. */
import type { SqlFragment } from '../fragment'
import type { Range } from '../range'

export interface Order {
  /** ORDER BY over `d`: a relation with the columns of a match (run/candidates.ts) and of `columns` */
  by: SqlFragment
  /** `... AS name`: columns computed by a filter, for the documents of a range */
  columns(range: Range): SqlFragment[]
  /** names of those columns, and of bucket columns */
  names: string[]
  /** how many buckets the matches are divided into: `bucket<N>` is a column of the relation */
  buckets: number[]
  /** how many `_vector_query` keys there are: `distance<N>` is a column of the relation */
  distances: number
  /** uses `group_found` */
  byGroupSize: boolean
  /** the order in which parts come */
  newestFirst: boolean
}
