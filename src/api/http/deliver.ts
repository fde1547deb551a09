/**
 * Sends a whole answer and notices if the caller has disconnected.
 *
 * On Cloudflare `request.signal` fires when a caller hangs up (compatibility flag `enable_request_signal`). In workerd
 * 2026-08 on its own it does not. There only blanks after the answer show it (slow-answer.ts). Once a signal has fired in this
 * isolate, no more blanks are needed.
 */
import { waitUntil } from 'cloudflare:workers'
import type { Delivery } from '../../conversation/ask'
import { slowly } from './slow-answer'

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
