/**
 * A whole answer, sent so that it is noticed when nobody is there to take it any more.
 *
 * Deployed, `request.signal` tells of a caller who hangs up (compatibility flag `enable_request_signal`). Where it does
 * not, as in workerd 2026-08 on its own, nothing tells a Worker while it is still thinking. Only writes to the
 * connection fail, and of those the first does not. So after an answer that took its time come blanks, which JSON
 * allows, a few milliseconds apart. Where somebody reads they are all taken; where nobody does the stream is never
 * asked for its end. Once a signal has fired there are no blanks any more.
 */
import type { Delivery } from '../../conversation/ask'

/** Nobody leaves an answer that came so soon, in milliseconds since it was asked for: it goes without blanks. */
const SOON_MS = 1_000

/** One for each connection on the way, and one more: each needs a write to learn of the next one's end. */
const BLANKS = 4

/** Above a round trip nearby, and in all far below what an answer takes. */
const PAUSE_MS = 8

/** Without any progress for this long, nobody is reading. */
const STALLED_MS = 1_000

/** So that a slow reader of a long answer makes progress. */
const PIECE_BYTES = 16 * 1024

const BLANK = new Uint8Array([0x20])

/** Whether signals fire here: one has. */
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

/** A body that finds out whether it is read to its end. */
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
