/** What Typesense's clients are told of a turn that failed (contract 1.6 and 1.7), where it is not what the failure says. */
import { ApiError, asError, type ErrorCode, type Failure, failed } from '../../errors'

/** How a conversation was asked for: by the search of one collection, or by a multi_search. */
export type Shape = 'single' | 'multi'

const TABLE: Partial<Record<ErrorCode, { status: number; words: Record<Shape, string> }>> = {
  unknown_conversation: {
    status: 400,
    words: { single: 'Conversation not found', multi: '`conversation_id` is invalid.' },
  },
}

/** A failure in the words of the route that was asked. */
export function told<F extends Failure>(failure: F, shape: Shape): F {
  const row = failure.code && TABLE[failure.code]
  return row ? { ...failure, status: row.status, message: row.words[shape] } : failure
}

/** A thrown error in the words of the route that was asked. */
export function toldError(error: unknown, shape: Shape): unknown {
  return error instanceof ApiError ? asError(told(failed(error), shape)) : error
}
