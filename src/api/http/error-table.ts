/** A protocol's table of errors, by code. */
import type { ErrorCode, Failure, StatusCode } from '../../errors'
import { codeOf, codeOfStatus } from '../../turn/errors'

/** One row for each code of an HTTP status, and rows for other codes that need their own. */
export type ErrorTable<Row> = Record<StatusCode, Row> & Partial<Record<ErrorCode, Row>>

/** The row of a failure's code. If it has none, the row of its HTTP status. */
export const rowOf = <Row>(table: ErrorTable<Row>, failure: Failure): Row =>
  table[codeOf(failure)] ?? table[codeOfStatus(failure.status)]
