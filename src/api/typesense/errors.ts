/** Typesense's own status and words for errors of a turn (contract 1.6 and 1.7). Other errors are shown as they are. */
import { ApiError, asError, type ErrorCode, type Failure, failed } from '../../errors'

/** The route that was asked: the search of one collection, or multi_search. */
export type Shape = 'single' | 'multi'

const TABLE: Partial<Record<ErrorCode, { status: number; words: Record<Shape, string> }>> = {
  unknown_conversation: {
    status: 400,
    words: { single: 'Conversation not found', multi: '`conversation_id` is invalid.' },
  },
}

/** The failure in the words of the route. */
export function told<F extends Failure>(failure: F, shape: Shape): F {
  const row = failure.code && TABLE[failure.code]
  return row ? { ...failure, status: row.status, message: row.words[shape] } : failure
}

/** The thrown error in the words of the route. */
export function toldError(error: unknown, shape: Shape): unknown {
  return error instanceof ApiError ? asError(told(failed(error), shape)) : error
}
