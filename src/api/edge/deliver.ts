/**
 * A whole answer, sent so that it is noticed when nobody is there to take it any more.
 *
 * Nothing tells a Worker of a caller who hangs up while it is still thinking: not `request.signal`, and no
 * cancelled stream (seen in workerd 2026-08). Only writes to the connection fail, and of those the first does
 * not. So after the answer come blanks, which JSON allows, a few milliseconds apart. Where somebody reads
 * they are all taken; where nobody does the stream is never asked for its end.
 */
import type { Delivery } from '../../conversation/ask'

/** One for each connection on the way, and one more: each needs a write to learn of the next one's end. */
const BLANKS = 4

/** Above a round trip nearby, and in all far below what an answer takes. */
const PAUSE_MS = 8

/** Without any progress for this long, nobody is reading. */
const STALLED_MS = 1_000

/** So that a slow reader of a long answer makes progress. */
const PIECE_BYTES = 16 * 1024

const BLANK = new Uint8Array([0x20])

/** A 200 answer in JSON. */
export function deliver(answer: unknown, headers: HeadersInit, { lost, waitUntil }: Delivery): Response {
  const bytes = new TextEncoder().encode(JSON.stringify(answer))
  const watch = new StallWatch()
  waitUntil(watch.stalled.then((stalled) => (stalled ? lost() : undefined)))
  let at = 0
  let blanks = 0
  const stream = new ReadableStream<Uint8Array>({
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
  return new Response(stream, {
    headers: {
      'content-type': 'application/json; charset=utf-8',
      ...Object.fromEntries(new Headers(headers)),
    },
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
