/**
 * Sends a whole answer and notices if the caller has disconnected.
 *
 * On Cloudflare `request.signal` fires when a caller hangs up (compatibility flag `enable_request_signal`). In workerd
 * 2026-08 on its own it does not. There only writes to a closed connection fail, and the first one succeeds. So an answer
 * that took long is followed by a few blanks, which JSON allows, some milliseconds apart. If the caller is there, all of
 * them are read. If not, the stream stalls. Once a signal has fired in this isolate, no more blanks are needed.
 */
import type { Delivery } from '../../conversation/ask'

/** Milliseconds. An answer that comes sooner goes without blanks: hardly anybody hangs up that fast. */
const SOON_MS = 1_000

/** One for each connection on the way and one more: each notices that the next is closed only by a write. */
const BLANKS = 4

/** Longer than a round trip nearby. Together they are far shorter than an answer takes. */
const PAUSE_MS = 8

/** If nothing is read for this long, the caller has gone. */
const STALLED_MS = 1_000

/** Small, so that a slow reader of a long answer still makes progress. */
const PIECE_BYTES = 16 * 1024

const BLANK = new Uint8Array([0x20])

/** Whether `request.signal` works here: true once one has fired. */
let signalsFire = false

const HEADERS = { 'content-type': 'application/json; charset=utf-8' }

/** A 200 answer in JSON. */
export function deliver(answer: unknown, headers: HeadersInit, delivery: Delivery): Response {
  const body = JSON.stringify(answer)
  const all = { headers: { ...HEADERS, ...Object.fromEntries(new Headers(headers)) } }
  const { signal, asked, lost, waitUntil } = delivery
  const leave = (): void => {
    signalsFire = true
    waitUntil(lost())
  }
  if (signal?.aborted) leave()
  else signal?.addEventListener('abort', leave, { once: true })
  const isWatched = !signalsFire && Date.now() - asked >= SOON_MS
  return new Response(isWatched ? withBlanks(body, delivery) : body, all)
}

/** A body that notices whether it is read to its end. */
function withBlanks(body: string, { lost, waitUntil }: Delivery): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(body)
  const watch = new StallWatch()
  waitUntil(watch.stalled.then((stalled) => (stalled ? lost() : undefined)))
  let at = 0
  let blanks = 0
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      watch.touch()
      if (at < bytes.length) {
        controller.enqueue(bytes.subarray(at, at + PIECE_BYTES))
        at += PIECE_BYTES
        return
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      if (blanks < BLANKS) {
        blanks += 1
        controller.enqueue(BLANK)
        return
      }
      watch.end(false)
      controller.close()
    },
    cancel: () => watch.end(true),
  })
}

class StallWatch {
  readonly stalled: Promise<boolean>
  #resolve!: (stalled: boolean) => void
  #timer: ReturnType<typeof setTimeout> | null = null

  constructor() {
    this.stalled = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.touch()
  }

  touch(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#resolve(true), STALLED_MS)
  }

  end(stalled: boolean): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#resolve(stalled)
  }
}
