/**
 * Sends a whole answer and notices if the caller has disconnected.
 *
 * On Cloudflare `request.signal` fires when a caller hangs up (compatibility flag `enable_request_signal`). In workerd
 * 2026-08 on its own it does not. There only a body that nobody reads shows it. So an answer that takes longer
 * than a moment begins before its content is there, with a blank now and then, which JSON allows. A whole answer that came late
 * has blanks behind it, until a signal has fired in this isolate.
 */
import { waitUntil } from 'cloudflare:workers'
import type { Delivery } from '../../conversation/ask'
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
import { settlesWithin } from '../../lib/waiting'
import { codeOf, codeOfStatus } from '../../turn/errors'
import type { RequestRecord } from './request-log'

/** Milliseconds. An answer that comes sooner goes without blanks: hardly anybody hangs up that fast. */
const SOON_MS = 1_000

/** Whether `request.signal` works here: true once one has fired. */
let signalsFire = false

/** A 200 answer in JSON. */
export function deliver(answer: unknown, given: HeadersInit, delivery: Delivery): Response {
  const body = JSON.stringify(answer)
  const headers = new Headers(given)
  if (!headers.has('content-type')) headers.set('content-type', 'application/json; charset=utf-8')
  const { signal, asked, lost } = delivery
  const leave = (): void => {
    signalsFire = true
    waitUntil(lost())
  }
  if (signal?.aborted) leave()
  else signal?.addEventListener('abort', leave, { once: true })
  const isWatched = !signalsFire && Date.now() - asked >= SOON_MS
  return isWatched ? slowly(Promise.resolve(body), lost, headers) : new Response(body, { headers })
}

/** An answer within this time can still be an error with its own status. */
const MOMENT_MS = 500
/** Between blanks. The first one after the caller has left is lost without a sign, so work goes on for two of these. */
const BLANK_MS = 100
/** If a blank is not read for this long, the caller has gone. */
const STALLED_MS = 3_000
/**
 * After the content, so that a caller who left just before is noticed: the first write to a closed connection succeeds, and each
 * connection on the way notices that the next is closed only by a write. If the caller is there, all blanks are read. How many, and
 * how far apart: longer than a round trip nearby.
 */
const [LAST_BLANKS, LAST_BLANK_MS] = [4, 8]

const BLANK = new Uint8Array([0x20])
const PIECE_BYTES = 64 * 1024

const HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  // A proxy that compresses would hold the blanks back until the end.
  'content-encoding': 'identity',
}

/**
 * @param work makes the content. Its signal aborts when nobody waits any more; `hasBegun` says whether the status is sent
 * @param write the content as JSON
 * @param late what is written for a later error: the status has been sent by then, and a body that breaks off is no JSON
 * @throws what `work` throws within a moment
 */
export async function slowAnswer<Content>(
  { request, record }: { request: Request; record: FailedRequest },
  work: (gone: AbortSignal, hasBegun: () => boolean) => Promise<Content>,
  write: (content: Content) => string = JSON.stringify,
  late: (error: unknown) => object = (error) => lateFailure(error, record),
): Promise<Response> {
  const gone = new AbortController()
  const leave = () => gone.abort()
  request.signal.addEventListener('abort', leave)
  let begun = false
  const content = work(gone.signal, () => begun)
  if (await settlesWithin(MOMENT_MS, content)) return jsonText(write(await content))
  begun = true
  return slowly(
    content.then(write, (error) => JSON.stringify(late(error))),
    leave,
  )
}

/** An error as the fields of an answer that has begun with another status. */
export function lateFailure(
  error: unknown,
  record: FailedRequest,
): { code: number; error: string; message: string } {
  const { status, message } = failureOf(error, record)
  return { code: status, error: message, message }
}

/**
 * An answer that begins before its text is there, or whose caller may have left.
 * @param text JSON. If it rejects, the answer breaks off
 * @param leave called if the caller leaves before having read all of it; maybe more than once
 */
export function slowly(
  text: Promise<string>,
  leave: () => void | Promise<void>,
  headers: HeadersInit = HEADERS,
): Response {
  // A pull source is only asked when the stream has room. Writes go out at once, and fail if the connection is closed.
  const { readable, writable } = new IdentityTransformStream()
  // Without `waitUntil` workerd ends the request when a write fails, and the work would not be stopped.
  waitUntil(
    writeSlowly(writable.getWriter(), text, leave)
      .catch(leave)
      // Until the work has noticed the abort and has ended.
      .then(() => text)
      .catch(() => {}),
  )
  return new Response(readable, { headers })
}

/** Writes blanks until the text is there, then the text. @throws if nobody reads, or what `text` throws */
async function writeSlowly(
  writer: WritableStreamDefaultWriter<Uint8Array>,
  text: Promise<string>,
  leave: () => void | Promise<void>,
): Promise<void> {
  const blank = async (): Promise<void> => {
    if (!(await settlesWithin(STALLED_MS, writer.write(BLANK)))) throw new Error('nobody takes the answer')
  }
  try {
    while (!(await settlesWithin(BLANK_MS, text))) await blank()
    const bytes = new TextEncoder().encode(await text)
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const written = writer.write(bytes.subarray(at, at + PIECE_BYTES))
      // Whoever reads this slowly may still read on.
      if (!(await settlesWithin(STALLED_MS, written))) await leave()
      await written
    }
    for (let blanks = 0; blanks < LAST_BLANKS; blanks++) {
      await new Promise((resolve) => setTimeout(resolve, LAST_BLANK_MS))
      await blank()
    }
    await writer.close()
  } catch (error) {
    await writer.abort(error).catch(() => {})
    throw error
  }
}

// =============================================================================
// JSON answers and errors in Typesense's shape, for every protocol that has no shape of its own.

const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' }

export const json = (value: unknown, status = 200): Response => jsonText(JSON.stringify(value), status)

const jsonText = (text: string, status = 200): Response =>
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
  const failure = failureOf(error, request)
  const { status, message, detail } = failure
  // Clients of Typesense pass on unknown keys.
  return toRetry(json({ message, ...(detail !== undefined && { detail }) }, status), failure)
}

/** An answer that says when to ask again, if its failure does. */
export function toRetry(response: Response, { retryAfter }: Pick<Failure, 'retryAfter'>): Response {
  if (retryAfter !== undefined) response.headers.set('retry-after', String(retryAfter))
  return response
}

// A protocol's table of errors, by code.

/** One row for each code of an HTTP status, and rows for other codes that need their own. */
export type ErrorTable<Row> = Record<StatusCode, Row> & Partial<Record<ErrorCode, Row>>

/** The row of a failure's code. If it has none, the row of its HTTP status. */
export const rowOf = <Row>(table: ErrorTable<Row>, failure: Failure): Row =>
  table[codeOf(failure)] ?? table[codeOfStatus(failure.status)]
