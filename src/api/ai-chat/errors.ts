/** Errors in the words of the AI Chat Protocol (contract chat-protocols 1.7). */
import { ApiError } from '../../errors'
import { OverrideError } from '../assistants/overrides'
import { ImpossibleChange } from '../assistants/plan'
import { type FailedRequest, failureOf } from '../edge/response'
import { TurnFailure, type TurnFault } from '../turn/failure'
import type { ErrorForm } from './dialect'

/** A request that is at fault in a place that can be named. */
export class FieldError extends ApiError {
  constructor(
    status: number,
    readonly code: string,
    message: string,
    /** its path in the body */
    readonly field?: string,
  ) {
    super(status, message)
  }
}

export interface ChatFault {
  status: number
  code: string
  message: string
  field?: string
  /** seconds */
  retryAfter?: number
}

const CODES: Record<number, string> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'too_large',
  415: 'unsupported_media_type',
  422: 'idempotency_key_reused',
  429: 'too_many_requests',
}

/** The client waits this long, in seconds, and asks again by itself. A visitor waits no longer without a word. */
const LONGEST_WAIT = 10

/** The override that asks for a change of a search. */
const CHANGES: Record<string, string> = {
  mode: 'retrieval_mode',
  vectorField: 'vector_fields',
  minimumRerankScore: 'minimum_reranker_score',
  includeCategory: 'include_category',
  excludeCategory: 'exclude_category',
}

/** What is told of a thrown error. @param request the one that failed */
export function faultOf(error: unknown, request?: FailedRequest): ChatFault {
  if (error instanceof ImpossibleChange) {
    const override = CHANGES[error.change] ?? error.change
    return faultOf(new OverrideError(override, 'unsupported_override', `is not supported: ${error.message}`))
  }
  if (error instanceof OverrideError) {
    const { status, code, message, override } = error
    return { status, code, message, field: `context.overrides.${override}` }
  }
  if (error instanceof FieldError) {
    const { status, code, message, field } = error
    return { status, code, message, ...(field !== undefined && { field }) }
  }
  const upstream = error instanceof TurnFailure && error.upstream
  return turnFault({ ...failureOf(error, request), upstream })
}

/**
 * What is told of a turn that failed. The client repeats a 5xx by itself, four times in all, and a bare 503 for
 * minutes; it waits out a 429 with `Retry-After`.
 */
export function turnFault({ status, message, retryAfter, upstream }: TurnFault): ChatFault {
  if (upstream) return { status: 500, code: 'model_failed', message }
  if (status === 503) return { status: 429, code: 'interrupted', message, retryAfter: 1 }
  const waits = retryAfter !== undefined && retryAfter <= LONGEST_WAIT
  const said = status === 401 ? UNAUTHORISED : message
  const code = CODES[status] ?? (status >= 500 ? 'internal_error' : 'bad_request')
  return { status, code, message: said, ...(waits && { retryAfter }) }
}

const UNAUTHORISED =
  'A valid key is needed, which may ask this assistant: send it as `Authorization: Bearer`, `x-api-key` or ' +
  '`x-typesense-api-key`.'

const REASONS: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  500: 'Internal Server Error',
}

/**
 * An error as JSON. Clients know a text or an object; beside the text stand its code and the message again, which
 * they pass over and logs are glad of.
 */
export function errorBody({ status, code, message, field }: ChatFault, form: ErrorForm): unknown {
  const place = field === undefined ? {} : { field }
  if (form === 'object') return { error: { code, message, ...place } }
  if (form === 'fastify')
    return { statusCode: status, code, error: REASONS[status] ?? 'Error', message, ...place }
  return { error: message, code, message, ...place }
}

export function errorResponse(fault: ChatFault, form: ErrorForm): Response {
  const response = Response.json(errorBody(fault, form), { status: fault.status })
  if (fault.retryAfter !== undefined) response.headers.set('retry-after', String(fault.retryAfter))
  return response
}
