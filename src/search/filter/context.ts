/** The joins of a filter, and the errors that it reports. */
import { ApiError } from '../../errors'
import type { FilterJoin } from './parse'
import { joinKey } from './print'

/**
 * The documents with a related one, in ascending order of sequence number, for every join of a filter. The key is the
 * printed join without its negation.
 */
export type JoinedDocuments = ReadonlyMap<string, ArrayLike<number>>

/** The documents with a related one. @throws ApiError 400 if joins are not supported here */
export function joinedBy(joins: JoinedDocuments | undefined, join: FilterJoin): ArrayLike<number> {
  const seqs = joins?.get(joinKey(join))
  if (seqs !== undefined) return seqs
  throw new ApiError(400, `The join \`$${join.collection}(...)\` is not possible here.`)
}

export const filterError = (field: string, what: string): ApiError =>
  new ApiError(400, `Error with filter field \`${field}\`: ${what}`)
