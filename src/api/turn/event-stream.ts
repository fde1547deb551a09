/**
 * Streams a log of events as an HTTP reply while the log grows. A protocol's encoder writes the events.
 *
 * Each piece of text is read once, parsed once and written once. There is no TransformStream in between: in workerd one
 * costs as much as everything else here.
 */
import type { TurnEvent } from '../../turn/events'
import type { EventReader } from './read'

/** Writes a log in a protocol's words. Each stream has its own encoder, which may keep state. */
export interface EventEncoder {
  /** @param events that arrived together; undefined: the log has ended. @throws Error if the log is incomplete */
  encode(events: TurnEvent[] | undefined): Words
  /** What the stream ends with when its log cannot be read to the end. */
  breakOff(error: unknown): string
}

/** Text to write. */
export interface Words {
  text: string
  /** true if the stream ends here */
  end: boolean
}

export interface EventStream {
  headers: Record<string, string>
  /** written first */
  head: Words
  /** written when nothing else is; every client of the protocol ignores it */
  heartbeat: string
  /** milliseconds of silence before a heartbeat, 15,000 by default */
  heartbeatMs?: number | undefined
  /** a read that has begun and not ended */
  pending?: ReturnType<EventReader> | undefined
}

/** A comment in server-sent events (contract chat-protocols 3.2). */
export const COMMENT = ': ping\n\n'

/** Proxies and load balancers close an idle connection after 30 s at the earliest. */
const HEARTBEAT_MS = 15_000

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'x-accel-buffering': 'no',
}

/** A reply with status 200. A reader who disconnects stops reading; the turn goes on until somebody stops it. */
export function streamEvents(
  read: EventReader,
  encoder: EventEncoder,
  { headers, head, heartbeat, heartbeatMs = HEARTBEAT_MS, pending }: EventStream,
): Response {
  const bytes = new TextEncoder()
  let begun = pending
  let silent = true
  let left = false
  let stopHeartbeat = (): void => {}

  const next = async (): Promise<Words> => {
    try {
      return encoder.encode(await (begun ?? read()))
    } catch (error) {
      return { text: left ? '' : encoder.breakOff(error), end: true }
    } finally {
      begun = undefined
    }
  }

  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes.encode(head.text))
      if (head.end) {
        controller.close()
        return
      }
      const timer = setInterval(() => {
        if (silent) controller.enqueue(bytes.encode(heartbeat))
        silent = true
      }, heartbeatMs)
      stopHeartbeat = () => clearInterval(timer)
    },
    async pull(controller) {
      for (let written = false; !written; ) {
        const { text, end } = await next()
        if (left) return
        written = text !== ''
        silent = !written
        if (written) controller.enqueue(bytes.encode(text))
        if (end) {
          stopHeartbeat()
          controller.close()
          return
        }
      }
    },
    async cancel() {
      left = true
      stopHeartbeat()
      await read.stop()
    },
  })
  return new Response(body, { headers: { ...HEADERS, ...headers } })
}
