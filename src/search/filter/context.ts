/** What clauses are compiled with, and the errors that they report. */
import { ApiError } from '../../errors'
import type { Range } from '../range'
import type { StoredSchema } from '../schema/layout'

export interface FilterContext {
  sql: SqlStorage
  schema: StoredSchema
  /** the documents that the filter runs on */
  range: Range
}

export const filterError = (field: string, what: string): ApiError =>
  new ApiError(400, `Error with filter field \`${field}\`: ${what}`)
