/** Events as an HTTP answer: a stream of server-sent events, or one JSON object of a whole turn. */
import type { Answering } from '../../conversation/ask'
import type { TurnEvent } from '../../conversation/events'
import { ApiError } from '../../errors'
import { deliver } from '../edge/deliver'
import { type EventReader, endless } from '../turn-events'
import { answerOf } from './answer'
import { encodeEvent, PING, RETRY } from './encoder'

/** Silence after which a comment goes out. Proxies and load balancers give up after 30 s at the earliest. */
const HEARTBEAT_MS = 15_000

/** How long headers wait for a first event: long before any client gives up on them. */
const GRACE_MS = 1_000

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
}

/**
 * The turn as it is written. An error that comes at once and before anything else is a plain answer with its own
 * status; every other one is an event.
 *
 * @throws ApiError
 */
export async function answerStreaming(read: EventReader, headers: HeadersInit): Promise<Response> {
  const first = read()
  let stop = (): void => {}
  const patience = new Promise<undefined>((resolve) => {
    const timer = setTimeout(() => resolve(undefined), GRACE_MS)
    stop = () => clearTimeout(timer)
  })
  const [event] = (await Promise.race([first.catch(() => undefined), patience]).finally(stop)) ?? []
  if (event?.type === 'error') throw new ApiError(event.status, event.message)
  return streamEvents(read, headers, first)
}

/**
 * The events as they come, to the end of their stream. A stream that ends without `done` or `error` was cut off on
 * the way, and its client asks for the rest.
 *
 * @param first a read that was begun already
 */
export function streamEvents(
  read: EventReader,
  headers: HeadersInit = {},
  first?: ReturnType<EventReader>,
): Response {
  let pending = first
  const encoder = new TextEncoder()
  let silent = true
  let stopHeartbeat = (): void => {}
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encoder.encode(RETRY))
      const heartbeat = setInterval(() => {
        if (silent) controller.enqueue(encoder.encode(PING))
        silent = true
      }, HEARTBEAT_MS)
      stopHeartbeat = () => clearInterval(heartbeat)
    },
    async pull(controller) {
      const batch = await (pending ?? read()).catch(() => undefined)
      pending = undefined
      if (batch) {
        silent = false
        controller.enqueue(encoder.encode(batch.map(encodeEvent).join('')))
      } else {
        stopHeartbeat()
        controller.close()
      }
    },
    async cancel() {
      // The turn goes on without its reader; only an explicit stop ends it.
      stopHeartbeat()
      await read.stop()
    },
  })
  return new Response(body, { headers: { ...STREAM_HEADERS, ...headers } })
}

/** The turn in one piece. @throws ApiError when it ended in an error */
export async function answerWhole(
  read: EventReader,
  headers: HeadersInit,
  delivery: Answering['delivery'],
): Promise<Response> {
  const events: TurnEvent[] = []
  for (;;) {
    for (const event of (await read()) ?? endless()) {
      events.push(event)
      if (event.type === 'error') throw new ApiError(event.status, event.message)
      if (event.type === 'done') {
        return deliver(answerOf(events), headers, delivery(event.turn))
      }
    }
  }
}
