/** Errors of the AI Chat Protocol (contract chat-protocols 1.7). */
import { ApiError, type Failure, inFull } from '../../errors'
import { type ErrorTable, type FailedRequest, failureOf, rowOf, toRetry } from '../http/deliver'
import { ImpossibleChange } from '../http/plan'
import { OverrideError } from '../shared/overrides'
import type { ErrorForm } from './dialect'

/** An error at a known place in the request. */
export class FieldError extends ApiError {
  constructor(
    status: number,
    /** the protocol's word for the fault */
    readonly type: string,
    message: string,
    /** its path in the body */
    readonly field?: string,
  ) {
    super(status, message)
  }
}

interface ChatFault {
  status: number
  code: string
  message: string
  field?: string
  /** seconds */
  retryAfter?: number
}

/** The longest `Retry-After`, in seconds. The client waits for it in silence, and visitors do not wait longer. */
const LONGEST_WAIT = 10

/** The override that asks for a change of a search. */
const CHANGES: Record<string, string> = {
  mode: 'retrieval_mode',
  vectorField: 'vector_fields',
  minimumRerankScore: 'minimum_reranker_score',
  includeCategory: 'include_category',
  excludeCategory: 'exclude_category',
}

/** The error for a client. Absent properties come from the failure. */
interface Row {
  status?: number
  type: string
  words?: string
  /** seconds after which the client should retry, instead of the failure's own */
  wait?: number
}

const UNAUTHORISED =
  'A valid key is needed, which may ask this assistant: send it as `Authorization: Bearer`, `x-api-key` or ' +
  '`x-typesense-api-key`.'

/**
 * Microsoft's client retries a 5xx up to four times, and a bare 503 for minutes. After a 429 it waits for
 * `Retry-After` and then retries. So transient errors are a 429.
 */
const PASSES: Row = { status: 429, type: 'interrupted', wait: 1 }

const TABLE: ErrorTable<Row> = {
  interrupted: PASSES,
  unavailable: PASSES,
  model_failed: { status: 500, type: 'model_failed' },
  model_denied: { status: 500, type: 'model_failed' },
  unknown_conversation: {
    // Not 404, which its clients take for a wrong URL.
    status: 400,
    type: 'bad_request',
    words: 'The session is unknown or has expired. Begin a new one: leave the session state out.',
  },
  bad_request: { type: 'bad_request' },
  unauthorized: { type: 'unauthorized', words: UNAUTHORISED },
  forbidden: { type: 'forbidden' },
  not_found: { type: 'not_found' },
  method_not_allowed: { type: 'method_not_allowed' },
  timed_out: { type: 'bad_request' },
  conflict: { type: 'bad_request' },
  too_large: { type: 'too_large' },
  unsupported_media_type: { type: 'unsupported_media_type' },
  key_reused: { type: 'idempotency_key_reused' },
  rate_limited: { type: 'too_many_requests' },
  internal: { type: 'internal_error' },
}

/** The error that a client gets for a thrown error. @param request the one that failed */
export function faultOf(error: unknown, request?: FailedRequest): ChatFault {
  if (error instanceof ImpossibleChange) {
    const override = CHANGES[error.change] ?? error.change
    return faultOf(new OverrideError(override, 'unsupported_override', `is not supported: ${error.message}`))
  }
  if (error instanceof OverrideError) {
    const { status, type, message, override } = error
    return { status, code: type, message, field: `context.overrides.${override}` }
  }
  if (error instanceof FieldError) {
    const { status, type, message, field } = error
    return { status, code: type, message, ...(field !== undefined && { field }) }
  }
  return turnFault(failureOf(error, request))
}

/** The error that a client gets for a failed turn. */
export function turnFault(failure: Failure): ChatFault {
  const { message, retryAfter } = failure
  const { status = failure.status, type, words = message, wait } = rowOf(TABLE, failure)
  const waits = retryAfter !== undefined && retryAfter <= LONGEST_WAIT
  return {
    status,
    code: type,
    message: inFull({ ...failure, message: words }),
    ...(wait === undefined ? waits && { retryAfter } : { retryAfter: wait }),
  }
}

const REASONS: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  500: 'Internal Server Error',
}

/**
 * An error as JSON. Clients expect a text or an object. Next to the text are the code and the message again: clients ignore
 * them, and they help in logs.
 */
export function errorBody({ status, code, message, field }: ChatFault, form: ErrorForm): unknown {
  const place = field === undefined ? {} : { field }
  if (form === 'object') return { error: { code, message, ...place } }
  if (form === 'fastify')
    return { statusCode: status, code, error: REASONS[status] ?? 'Error', message, ...place }
  return { error: message, code, message, ...place }
}

export const errorResponse = (fault: ChatFault, form: ErrorForm): Response =>
  toRetry(Response.json(errorBody(fault, form), { status: fault.status }), fault)
