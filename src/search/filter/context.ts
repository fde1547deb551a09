/** What the clauses of a filter are compiled with, and what is wrong with one. */
import { ApiError } from '../../errors'
import type { Range } from '../range'
import type { StoredSchema } from '../schema/layout'

export interface FilterContext {
  sql: SqlStorage
  schema: StoredSchema
  /** the documents that the filter is asked about */
  range: Range
}

export const filterError = (field: string, what: string): ApiError =>
  new ApiError(400, `Error with filter field \`${field}\`: ${what}`)
