/** The order of hits, as it is put to each part of what was found. */
import type { SqlFragment } from '../fragment'
import type { Range } from '../range'

export interface Order {
  /** ORDER BY over `d`, a relation with the columns of a match (run/candidates.ts) and those that `columns` adds */
  by: SqlFragment
  /** `... AS name`: what takes a filter to work out, for the documents of a range */
  columns(range: Range): SqlFragment[]
  /** names of those columns, and of those of buckets */
  names: string[]
  /** how many buckets the matches are to be put into: `bucket<N>` is a column of the relation */
  buckets: number[]
  /** it looks at `group_found` */
  byGroupSize: boolean
  /** it is the order in which parts come */
  newestFirst: boolean
}
