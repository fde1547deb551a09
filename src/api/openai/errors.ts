/** Errors in OpenAI's shape: `{"error": {message, type, param, code}}`. */
import { type Failure, inFull } from '../../errors'
import { type ErrorTable, type FailedRequest, failureOf, rowOf, toRetry } from '../http/deliver'
import { InvalidParameter } from './question'

/** The error for a client. If the words or the status are absent, the failure's own are used. */
interface Row {
  type: string
  code: string | null
  words?: string
}

const REQUEST = 'invalid_request_error'
const SERVER: Row = { type: 'server_error', code: 'server_error' }

const MODEL: Row = { type: 'server_error', code: 'model_error' }

const TABLE: ErrorTable<Row> = {
  bad_request: { type: REQUEST, code: null },
  unauthorized: {
    type: REQUEST,
    code: 'invalid_api_key',
    // The usual words name a header that these clients do not send.
    words:
      'Incorrect API key, or one that may not do this. Send a key of this server as `Authorization: Bearer <key>`.',
  },
  forbidden: { type: 'permission_error', code: 'origin_not_allowed' },
  not_found: { type: REQUEST, code: 'not_found' },
  method_not_allowed: { type: REQUEST, code: null },
  timed_out: { type: 'timeout_error', code: 'timeout' },
  conflict: { type: REQUEST, code: 'conflict' },
  too_large: { type: REQUEST, code: 'request_too_large' },
  unsupported_media_type: { type: REQUEST, code: null },
  key_reused: { type: REQUEST, code: 'idempotency_error' },
  rate_limited: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  // The model or a search failed, not the request. These may end a stream.
  model_failed: MODEL,
  model_refused: MODEL,
  model_denied: MODEL,
  over_time: MODEL,
  stopped: { type: 'server_error', code: 'stopped' },
  interrupted: SERVER,
  search_failed: SERVER,
  search_timed_out: SERVER,
  search_unavailable: SERVER,
  storage_full: { type: 'server_error', code: 'storage_full' },
  unavailable: SERVER,
  internal: SERVER,
}

/** @param param the parameter that is at fault, where it is one @param code OpenAI's word for that fault */
export function errorBody(failure: Failure, param: string | null = null, code?: string) {
  const { type, code: usual } = rowOf(TABLE, failure)
  return { error: { message: failure.message, type, param, code: code ?? usual } }
}

/** The answer to a thrown error. */
export function openAiError(error: unknown, request?: FailedRequest): Response {
  const failure = failureOf(error, request)
  const { param, type } = error instanceof InvalidParameter ? error : { param: null, type: undefined }
  const { words = failure.message } = rowOf(TABLE, failure)
  const message = inFull({ ...failure, message: words })
  const body = errorBody({ ...failure, message }, param, type)
  return toRetry(Response.json(body, { status: failure.status }), failure)
}

/** The assistant does not exist, or the key may not ask it. */
export const unknownModel = (model: string): InvalidParameter =>
  new InvalidParameter(
    `The model \`${model}\` does not exist. GET /v1/models lists those that this key may ask.`,
    'model',
    'model_not_found',
    404,
  )
