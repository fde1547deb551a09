/** JSON answers and errors in Typesense's shape, for every protocol that has no shape of its own. */
import {
  ApiError,
  type ErrorCode,
  type Failure,
  failed,
  placesOf,
  plainFailure,
  type StatusCode,
  storageFull,
} from '../../errors'
import { codeOf, codeOfStatus } from '../../turn/errors'
import type { RequestRecord } from './request-log'

const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' }

export const json = (value: unknown, status = 200): Response => jsonText(JSON.stringify(value), status)

export const jsonText = (text: string, status = 200): Response =>
  new Response(text, { status, headers: JSON_HEADERS })

/** Typesense's own bytes, spaces included. */
export const notFound = (): Response =>
  new Response('{ "message": "Not Found"}', { status: 404, headers: JSON_HEADERS })

/** The properties that decide how an error is reported: `plain` if the key is made for pages. */
export type FailedRequest = Pick<RequestRecord, 'requestId' | 'plain'>

/**
 * The failure that a caller sees for a thrown error. Anything but an ApiError is a fault of Parley: the caller gets
 * an id to report (the request's own, if known), and the log gets the same id and the place. The message goes to
 * neither, because it may quote a document or a key.
 */
export function failureOf(
  error: unknown,
  { requestId: id, plain = false }: FailedRequest = { requestId: crypto.randomUUID() },
): Failure {
  const known = error instanceof ApiError ? error : storageFull(error)
  if (known) return plain ? plainFailure(failed(known), id) : failed(known)
  console.error(
    `Request ${id} failed: ${error instanceof Error ? error.name : typeof error}`,
    placesOf(error).join('\n'),
  )
  return { status: 500, message: `Internal error. Request id: ${id}` }
}

/** The answer to a thrown error. */
export function errorResponse(error: unknown, request?: FailedRequest): Response {
  const { status, message, retryAfter, detail } = failureOf(error, request)
  // Clients of Typesense pass on unknown keys.
  const response = json({ message, ...(detail !== undefined && { detail }) }, status)
  if (retryAfter !== undefined) response.headers.set('retry-after', String(retryAfter))
  return response
}

// A protocol's table of errors, by code.

/** One row for each code of an HTTP status, and rows for other codes that need their own. */
export type ErrorTable<Row> = Record<StatusCode, Row> & Partial<Record<ErrorCode, Row>>

/** The row of a failure's code. If it has none, the row of its HTTP status. */
export const rowOf = <Row>(table: ErrorTable<Row>, failure: Failure): Row =>
  table[codeOf(failure)] ?? table[codeOfStatus(failure.status)]
