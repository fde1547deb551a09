/** How a UI message stream ends whose turn failed (contract 3.2). */
import type { ErrorCode, Failure } from '../../errors'

/** The last part of the stream. Where the table has none, it is an error in the failure's own words. */
const ENDS: Partial<Record<ErrorCode, { type: string }>> = {
  // A reader who stopped the answer is shown no failure.
  stopped: { type: 'abort' },
}

export const endOf = ({ code, message }: Failure): Record<string, unknown> =>
  (code && ENDS[code]) ?? { type: 'error', errorText: message }
