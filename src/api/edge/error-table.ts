/** A protocol's table of errors: from a code to what its clients are told. */
import type { ErrorCode, Failure, StatusCode } from '../../errors'
import { codeOf, codeOfStatus } from '../../turn/errors'

/** A row for every code that stands for an HTTP status, and for each other code that is told in a way of its own. */
export type ErrorTable<Row> = Record<StatusCode, Row> & Partial<Record<ErrorCode, Row>>

/** The row of a failure's code, else that of its HTTP status. */
export const rowOf = <Row>(table: ErrorTable<Row>, failure: Failure): Row =>
  table[codeOf(failure)] ?? table[codeOfStatus(failure.status)]
