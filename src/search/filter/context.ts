/** The context in which clauses are compiled, and the errors that they report. */
import { ApiError } from '../../errors'
import type { Range } from '../range'
import type { StoredSchema } from '../schema/layout'

/**
 * The documents with a related one, in ascending order of sequence number, for every join of a filter. The key is the
 * printed join without its negation.
 */
export type JoinedDocuments = ReadonlyMap<string, ArrayLike<number>>

export interface FilterContext {
  sql: SqlStorage
  schema: StoredSchema
  /** the documents that the filter runs on */
  range: Range
  joins: JoinedDocuments | undefined
  onRead?: OnRead | undefined
}

/**
 * Called when an operand of a filter runs while the filter is compiled.
 * @param documents how many it read and parsed
 */
export type OnRead = (documents: number) => void

export const filterError = (field: string, what: string): ApiError =>
  new ApiError(400, `Error with filter field \`${field}\`: ${what}`)
