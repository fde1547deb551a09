/** Results of tools. */
import { inFull } from '../../errors'
import { type FailedRequest, failureOf } from '../http/response'

export interface ToolResult {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: true
}

/** Words that a model reads: what went wrong, and when a retry can help. */
export const failedText = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })

export function failedResult(error: unknown, request: FailedRequest): ToolResult {
  const failure = failureOf(error, request)
  const { retryAfter } = failure
  return failedText(
    inFull(failure) + (retryAfter === undefined ? '' : ` Try again in ${retryAfter} seconds.`),
  )
}
