/** Answers in Typesense's shapes. */
import { ApiError, type Failure } from '../../errors'

const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' }

export const json = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), { status, headers: JSON_HEADERS })

/** The one message for a key that is missing, wrong, expired or not allowed to do this: there is no 403. */
export const forbidden = (): ApiError =>
  new ApiError(401, 'Forbidden - a valid `x-typesense-api-key` header must be sent.')

/** Typesense's own bytes, spaces included. */
export const notFound = (): Response =>
  new Response('{ "message": "Not Found"}', { status: 404, headers: JSON_HEADERS })

/**
 * What a caller is told of a thrown error. Anything but an ApiError is a fault of ours: its caller gets an id to
 * report, the log the same id and the place. Its message stays out of both, since it may quote a document or a key.
 */
export function failureOf(error: unknown): Failure {
  if (error instanceof ApiError) return { status: error.status, message: error.message }
  const id = crypto.randomUUID()
  const place = error instanceof Error ? (error.stack?.match(/^ {4}at .*$/gm) ?? []).slice(0, 8) : []
  console.error(
    `Request ${id} failed: ${error instanceof Error ? error.name : typeof error}`,
    place.join('\n'),
  )
  return { status: 500, message: `Internal error. Request id: ${id}` }
}

/** The answer to a thrown error. */
export function errorResponse(error: unknown): Response {
  const { status, message } = failureOf(error)
  return json({ message }, status)
}
