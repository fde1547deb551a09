/** The end of a UI message stream whose turn failed (contract 3.2). */
import type { ErrorCode, Failure } from '../../errors'

/** The last part of the stream, by code. For all other codes it is an error in the failure's own words. */
const ENDS: Partial<Record<ErrorCode, { type: string }>> = {
  // A stopped answer is not shown as a failure.
  stopped: { type: 'abort' },
}

export const endOf = ({ code, message }: Failure): Record<string, unknown> =>
  (code && ENDS[code]) ?? { type: 'error', errorText: message }
