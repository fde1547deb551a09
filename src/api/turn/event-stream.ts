/**
 * A log of events as an HTTP answer that is written while the log grows, in the words of a protocol's encoder.
 *
 * The path of a piece of text is one read, one parse, one write, and no transform stream stands between: in workerd
 * each costs as much as all of the work done here.
 */
import type { TurnEvent } from '../../turn/events'
import type { EventReader } from './read'

/** A protocol's words for a log. One encoder serves one stream: it may remember what it wrote. */
export interface EventEncoder {
  /** @param events that came together; undefined: the log has ended. @throws Error where the log is not whole */
  encode(events: TurnEvent[] | undefined): Words
  /** The last words of a stream whose log cannot be read to its end. */
  breakOff(error: unknown): string
}

/** What events add to a stream. */
export interface Words {
  text: string
  /** whether nothing follows */
  end: boolean
}

export interface EventStream {
  headers: Record<string, string>
  /** what the stream begins with */
  head: Words
  /** what goes out in silence, and is passed over by every client of the protocol */
  heartbeat: string
  /** milliseconds of silence before it does: 15 s unless said otherwise */
  heartbeatMs?: number | undefined
  /** a read that was begun, and has not ended */
  pending?: ReturnType<EventReader> | undefined
}

/** A comment of server-sent events (contract chat-protocols 3.2). */
export const COMMENT = ': ping\n\n'

/** Proxies and load balancers give up after 30 s at the earliest. */
const HEARTBEAT_MS = 15_000

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'x-accel-buffering': 'no',
}

/** A 200 answer. A caller who leaves it leaves the log, and not the turn: only an explicit stop ends that. */
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
