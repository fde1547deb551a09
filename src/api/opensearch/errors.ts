/** Errors in OpenSearch's shape: `{"error": {root_cause, type, reason}, "status"}`. */
import { ApiError, type Failure, inFull } from '../../errors'
import { namesOf, nearest } from '../../lib/nearest'
import { type FailedRequest, failureOf, toRetry } from '../http/deliver'

export type Json = Record<string, unknown>

/** An error that names its OpenSearch type and further fields of its envelope. */
export class OpenSearchError extends ApiError {
  constructor(
    status: number,
    readonly type: string,
    message: string,
    readonly details: Readonly<Json> = {},
    /** whether OpenSearch meets it on a shard, and so reports a failed search with this as its cause */
    readonly onShard = false,
  ) {
    super(status, message)
  }
}

export const illegalArgument = (message: string): OpenSearchError =>
  new OpenSearchError(400, 'illegal_argument_exception', message)

export const parsingError = (message: string): OpenSearchError =>
  new OpenSearchError(400, 'parsing_exception', message)

export const parseError = (message: string, details?: Json): OpenSearchError =>
  new OpenSearchError(400, 'parse_exception', message, details)

/** A request without what it needs. @param faults what OpenSearch says of each */
export const incomplete = (...faults: string[]): OpenSearchError => {
  const numbered = faults.map((fault, at) => `${at + 1}: ${fault};`).join('')
  return new OpenSearchError(400, 'action_request_validation_exception', `Validation Failed: ${numbered}`)
}

/** @param of what the text was given for */
export const notANumber = (text: unknown, of = ''): OpenSearchError =>
  new OpenSearchError(400, 'number_format_exception', `For input string: "${String(text)}"${of}`)

/** A search that fits the query language but not the index. */
export const shardError = (message: string, type = 'query_shard_exception'): OpenSearchError =>
  new OpenSearchError(400, type, message, {}, true)

/** Sorting and counting by a field of words. */
export const noValues = (field: string): OpenSearchError =>
  shardError(
    `Text fields are not optimised for operations that require per-document field data like aggregations and sorting, so these operations are disabled by default. Please use a keyword field instead of [${field}].`,
    'illegal_argument_exception',
  )

export const missing = (message: string): OpenSearchError =>
  new OpenSearchError(404, 'resource_not_found_exception', message)

/** What the plugin of models and memories reports by its status alone. */
export const statusError = (status: number, message: string): OpenSearchError =>
  new OpenSearchError(status, 'status_exception', message)

/** Something that OpenSearch has but this API does not. @param what its name in the request, and what to do */
export const unsupported = (what: string): OpenSearchError => illegalArgument(`${what} is not supported here`)

/** Refuses an object with a key that is none of some. @param refusal of a key @throws ApiError */
export function requireKeys(body: Json, known: string, refusal: (key: string) => ApiError): void {
  const names = namesOf(known)
  const unknown = Object.keys(body).find((key) => !names.includes(key))
  if (unknown !== undefined) throw refusal(unknown)
}

/** The same for the options of a query. @throws ApiError 400 */
export const requireOptions = (query: string, body: Json, known: string): void =>
  requireKeys(body, known, (key) => parsingError(`[${query}] query does not support [${key}]`))

export const indexNotFound = (index: string): OpenSearchError =>
  new OpenSearchError(404, 'index_not_found_exception', `no such index [${index}]`, {
    index,
    'resource.id': index,
    'resource.type': 'index_or_alias',
    index_uuid: '_na_',
  })

/** Of searches; writes do not count what is skipped. */
export const SHARDS = { total: 1, successful: 1, skipped: 0, failed: 0 }
export const WRITTEN = { total: 1, successful: 1, failed: 0 }

/** The same of several indices: each is one shard. */
export const shardsOf = (indices: number, of = SHARDS as Json) => ({
  ...of,
  total: indices,
  successful: indices,
})

/** The answer of a search. @param started milliseconds since 1970 @param indices how many were searched */
export const searched = (started: number, hits: Json, more?: Json, indices = 1) => ({
  took: Date.now() - started,
  timed_out: false,
  _shards: shardsOf(indices),
  hits,
  ...more,
})

/** What OpenSearch adds to the message about a mistyped name: ` -> did you mean [x]?`, or nothing. */
export function suggestion(given: string, known: readonly string[], arrow = ' ->'): string {
  const name = nearest(given, known)
  return name === undefined ? '' : `${arrow} did you mean [${name}]?`
}

/** By status: the type of an error that names none. */
const TYPES: Record<number, string> = {
  400: 'illegal_argument_exception',
  401: 'security_exception',
  403: 'security_exception',
  404: 'resource_not_found_exception',
  408: 'timeout_exception',
  409: 'version_conflict_engine_exception',
  413: 'illegal_argument_exception',
  422: 'illegal_argument_exception',
  429: 'rejected_execution_exception',
  507: 'cluster_block_exception',
}

const UNAUTHORIZED =
  'Unauthorized: send an API key that may do this, as `Authorization: Bearer <key>` or as the password of Basic authentication.'

/** The error as an item of a bulk or an msearch. */
export function errorCause(error: unknown, { status, message, detail }: Failure): Json {
  const named = error instanceof OpenSearchError ? error : undefined
  const words = status === 401 && named === undefined ? UNAUTHORIZED : message
  const reason = inFull({ message: words, ...(detail !== undefined && { detail }) })
  return { type: named?.type ?? TYPES[status] ?? 'exception', reason, ...named?.details }
}

/** The envelope of a thrown error, and its status. */
export function errorEnvelope(error: unknown, request?: FailedRequest) {
  const failure = failureOf(error, request)
  // OpenSearch's clients retry these statuses up to three times, so a failed call would be paid four times.
  const status = failure.status >= 502 && failure.status <= 504 ? 500 : failure.status
  const cause = errorCause(error, failure)
  const failedSearch = {
    type: 'search_phase_execution_exception',
    reason: 'all shards failed',
    phase: 'query',
    grouped: true,
    failed_shards: [{ shard: 0, reason: cause }],
  }
  const shown = error instanceof OpenSearchError && error.onShard ? failedSearch : cause
  return { retryAfter: failure.retryAfter, body: { error: { root_cause: [cause], ...shown }, status } }
}

/** The reply to a thrown error. @param asksBrowser true if the caller expects a page; it then gets no challenge */
export function openSearchError(error: unknown, request: FailedRequest, asksBrowser: boolean): Response {
  if (error instanceof PlainError) return answer({ error: error.message, status: error.status }, error.status)
  const { body, retryAfter } = errorEnvelope(error, request)
  const response = toRetry(answer(body, body.status), { retryAfter })
  // With this header a browser would open its own password window.
  if (body.status === 401 && !asksBrowser && !(error instanceof OpenSearchError)) {
    response.headers.set('www-authenticate', 'Basic realm="Parley", charset="UTF-8"')
  }
  return response
}

/** An error that OpenSearch raises before any API handles the request: a sentence without a type. */
export class PlainError extends ApiError {}

const JSON_TYPE = { 'content-type': 'application/json; charset=UTF-8' }

export const answer = (value: unknown, status = 200, indent?: number): Response =>
  new Response(JSON.stringify(value, null, indent), { status, headers: JSON_TYPE })

/** OpenSearch's reply to a method that an address does not take. @param allowed the methods that it takes */
export function incorrectMethod({ method, url }: Request, allowed: string): Response {
  const { pathname } = new URL(url)
  const error = `Incorrect HTTP method for uri [${pathname}] and method [${method}], allowed: [${allowed}]`
  return answer({ error, status: 405 }, 405)
}

/** OpenSearch's reply to a path that no API handles. */
export const noHandler = ({ method, url }: Request): Response =>
  answer(
    { error: `no handler found for uri [${url.slice(new URL(url).origin.length)}] and method [${method}]` },
    400,
  )
