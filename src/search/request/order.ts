/** The order of hits, as SQL over one part of the matches. */
import type { OnRead } from '../filter/context'
import type { SqlFragment } from '../fragment'
import type { Range } from '../range'

/** `$collection(sort_by)`: the order of the best related document. */
export interface JoinedKey {
  kind: 'joined'
  collection: string
  sortBy: string
  /** the column with its rank */
  column: string
}

/** How matches are divided into parts whose members count as equal: by the number of parts, or by the size of a part. */
export interface Buckets {
  /** the score that decides which part a match belongs to */
  of: 'text_match' | 'vector_distance'
  by: 'count' | 'size'
  number: number
}

export interface Order {
  /** ORDER BY over `d`: a relation with the columns of a match (run/candidates.ts) and of `columns` */
  by: SqlFragment
  /** the same without the last tie-breaker, so that equal documents are equal */
  terms: SqlFragment
  /** orders of related documents: a column of ranks each */
  joined: JoinedKey[]
  /**
   * `... AS name`: columns computed by a filter, for the documents of a range.
   * @param onRead told what filters that run here read
   */
  columns(range: Range, onRead?: OnRead): SqlFragment[]
  /** names of those columns, and of bucket columns */
  names: string[]
  /** how the matches are divided into buckets: each way is a column of the relation (sort.ts, `bucketColumn`) */
  buckets: Buckets[]
  /** how many `_vector_query` keys there are: `distance<N>` is a column of the relation */
  distances: number
  /** uses `group_found` */
  byGroupSize: boolean
  /** the order in which parts come */
  newestFirst: boolean
}
