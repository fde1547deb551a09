/**
 * How a turn fails: the code of each error, what a retry can do, and the events that report it.
 *
 * Code reads the code and never the message. Messages are for people, and each protocol has its own.
 */
import {
  type ApiError,
  coded,
  type ErrorCode,
  type Failure,
  failed,
  plainFailure,
  type StatusCode,
} from '../errors'
import { ProviderError, passes } from '../models/provider-error'
import { type ErrorEvent, INTERRUPTION_SEQ, type TurnEvent } from './events'

/**
 * What a retry of the same request can do: `never` succeed, or perhaps succeed `now`, or `later` once a limit
 * has passed.
 */
export type Retry = 'never' | 'now' | 'later'

const RETRIES: Record<ErrorCode, Retry> = {
  stopped: 'never',
  interrupted: 'now',
  over_time: 'never',
  unsafe: 'never',
  too_long: 'never',
  answer_too_long: 'never',
  search_failed: 'never',
  search_timed_out: 'now',
  search_unavailable: 'now',
  model_refused: 'never',
  model_denied: 'never',
  model_failed: 'now',
  unknown_conversation: 'never',
  unknown_turn: 'never',
  unknown_assistant: 'never',
  unknown_model: 'never',
  unknown_collection: 'never',
  not_joined: 'never',
  over_budget: 'later',
  too_many_waiting: 'later',
  storage_full: 'never',
  bad_request: 'never',
  unauthorized: 'never',
  forbidden: 'never',
  not_found: 'never',
  method_not_allowed: 'never',
  timed_out: 'now',
  conflict: 'never',
  too_large: 'never',
  unsupported_media_type: 'never',
  key_reused: 'never',
  rate_limited: 'later',
  unavailable: 'now',
  internal: 'now',
}

export const retryOf = (code: ErrorCode): Retry => RETRIES[code]

export const stopped = (): ApiError => coded('stopped', 400, 'The turn was stopped.')

/** The turn's object died before the turn ended. */
export const interrupted = (): ApiError => coded('interrupted', 503, 'The turn was interrupted. Ask again.')

/** The conversation does not exist, or it is somebody else's. The caller cannot tell which. */
export const unknownConversation = (): ApiError =>
  coded('unknown_conversation', 404, 'Conversation not found')

/** A position, a trace or a previous response points to no turn. */
export const unknownTurn = (): ApiError => coded('unknown_turn', 404, 'Turn not found')

/** Turns the error of a search into the error of its turn. @param status HTTP status of the search's reply */
export function searchFailed(status: number, message: string): ApiError {
  if (status === 408) return coded('search_timed_out', status, message)
  const isUnavailable = status === 429 || status >= 500
  return coded(isUnavailable ? 'search_unavailable' : 'search_failed', status, message)
}

const BY_STATUS: Record<number, StatusCode> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'timed_out',
  409: 'conflict',
  413: 'too_large',
  415: 'unsupported_media_type',
  422: 'key_reused',
  429: 'rate_limited',
  503: 'unavailable',
}

/** The code of an error that has only an HTTP status. */
export const codeOfStatus = (status: number): StatusCode =>
  BY_STATUS[status] ?? (status >= 500 ? 'internal' : 'bad_request')

/** The code of any failure: its own, or else the one that the provider's fault or the HTTP status implies. */
export function codeOf(failure: ApiError | Pick<Failure, 'status' | 'code'>): ErrorCode {
  if (failure.code !== undefined) return failure.code
  if (!(failure instanceof ProviderError)) return codeOfStatus(failure.status)
  if (failure.fault === 'refused' || failure.fault === 'empty') return 'model_refused'
  return passes(failure) ? 'model_failed' : 'model_denied'
}

/** Whether a model's provider failed, through no fault of the request. */
const isUpstream = (code: ErrorCode): boolean => code === 'model_failed' || code === 'model_denied'

/**
 * The event of a turn that ends in this error.
 * @param plain whether it hides what is the operator's (errors.ts) @param reference id of the request, for the log
 */
export function errorOf(error: ApiError, plain = false, reference?: string): ErrorEvent {
  const code = codeOf(error)
  return {
    type: 'error',
    status: error.status,
    message: plain ? plainFailure(failed(error), reference).message : error.message,
    retryable: retryOf(code) !== 'never',
    ...(isUpstream(code) && { upstream: true }),
    code,
  }
}

/** The end of a turn for a reader who has read what its log never got. */
export const interruptionOf = (conversation_id: string, turn: number): TurnEvent => ({
  ...errorOf(interrupted()),
  conversation_id,
  turn,
  seq: INTERRUPTION_SEQ,
})
