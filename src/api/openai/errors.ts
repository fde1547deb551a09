/** Errors in OpenAI's shape: `{"error": {message, type, param, code}}`. */
import { ApiError, type Failure } from '../../errors'
import { type FailedRequest, failureOf } from '../edge/response'
import { InvalidParameter } from './question'

/** By status: what kind of error it is, and its code where there is one. */
const KINDS: Record<number, [type: string, code: string | null]> = {
  400: ['invalid_request_error', null],
  401: ['invalid_request_error', 'invalid_api_key'],
  403: ['permission_error', 'origin_not_allowed'],
  404: ['invalid_request_error', 'not_found'],
  408: ['timeout_error', 'timeout'],
  409: ['invalid_request_error', 'conflict'],
  413: ['invalid_request_error', 'request_too_large'],
  422: ['invalid_request_error', 'idempotency_error'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
}

/** @param param the parameter that is at fault, where it is one */
export function errorBody({ status, message }: Failure, param: string | null = null, code?: string) {
  const [type, usual] = KINDS[status] ?? (status < 500 ? KINDS[400]! : ['server_error', 'server_error'])
  return { error: { message, type, param, code: code ?? usual } }
}

/** The answer to a thrown error. */
export function openAiError(error: unknown, request?: FailedRequest): Response {
  const failure = failureOf(error, request)
  const unknownModel = error instanceof UnknownModel
  const param = error instanceof InvalidParameter ? error.param : unknownModel ? 'model' : null
  // The usual words name a header that these clients do not send.
  const message = failure.status === 401 ? INVALID_KEY : failure.message
  const code = unknownModel ? 'model_not_found' : error instanceof InvalidParameter ? error.type : undefined
  const body = errorBody({ ...failure, message }, param, code)
  const response = Response.json(body, { status: failure.status })
  if (failure.retryAfter !== undefined) response.headers.set('retry-after', String(failure.retryAfter))
  return response
}

const INVALID_KEY =
  'Incorrect API key, or one that may not do this. Send a key of this server as `Authorization: Bearer <key>`.'

/** An assistant that there is not, or that is not for this key. */
export class UnknownModel extends ApiError {
  constructor(model: string) {
    super(404, `The model \`${model}\` does not exist. GET /v1/models lists those that this key may ask.`)
  }
}
