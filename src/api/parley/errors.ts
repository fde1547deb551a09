/** Errors of Parley's own routes: `{"message", "detail", "code"}`. */
import { ApiError, type ErrorCode } from '../../errors'
import { codeOf } from '../../turn/errors'
import type { ErrorEvent } from '../../turn/events'
import { type FailedRequest, failureOf, json } from '../http/deliver'

/** Codes with a status and words of their own here. Errors with other codes are unchanged. */
const TABLE: Partial<Record<ErrorCode, { status?: number; words: string }>> = {
  unknown_conversation: { status: 404, words: 'Conversation not found' },
  unknown_turn: { status: 404, words: 'Turn not found' },
  unknown_assistant: { status: 404, words: 'Assistant not found' },
  unknown_model: { status: 404, words: 'Model not found' },
  too_long: {
    words:
      'The question is too long for its conversation model. Ask a shorter one, or raise `max_bytes` of the model.',
  },
  // The status depends on whether the path or a property names the collection.
  unknown_collection: { words: 'Collection not found' },
}

/** The words of an error that ends a turn. */
export const wordsOf = ({ code, message }: ErrorEvent): string => TABLE[code]?.words ?? message

/** The answer to a thrown error. Clients compare `code`; `message` and `detail` are for people. */
export function parleyError(error: unknown, request: FailedRequest): Response {
  const failure = failureOf(error, request)
  const code = codeOf(error instanceof ApiError ? error : failure)
  const { status = failure.status, words = failure.message } = TABLE[code] ?? {}
  const { detail, retryAfter } = failure
  const response = json({ message: words, ...(detail !== undefined && { detail }), code }, status)
  if (retryAfter !== undefined) response.headers.set('retry-after', String(retryAfter))
  return response
}
