/**
 * A running turn as an HTTP answer: events in, one JSON body or a stream of server-sent events out.
 *
 * The path of a piece of text is one read, one parse, one write. Pieces that arrive together leave together,
 * and no transform stream stands between: in workerd each costs as much as all of the work done here.
 */
import type { Answering } from '../../conversation/ask'
import type { TurnEvent } from '../../conversation/events'
import { ApiError } from '../../errors'
import { deliver } from '../edge/deliver'
import { allFailed, emptyTurn, fold } from '../folded-turn'
import { endless, eventReader } from '../turn-events'
import { type AnswerShape, encodeEnd, encodeFailure, encodeMessage, responseBody } from './encoder'
import { failureOf, json } from './response'

/**
 * How long an error may still turn the answer into a plain one. Clients give up on headers after 5 s, and try
 * again: whatever happens, ours are out before that.
 */
const GRACE_MS = 2_000
const LATEST_MS = 4_000

/** A bare newline is the one thing that every client passes over in silence (contract 1.11). */
const HEARTBEAT_MS = 2_500
const HEARTBEAT = new Uint8Array([0x0a])

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
}

/** The answer in one piece. @throws ApiError when the turn ended in an error */
export async function answerWhole(
  events: ReadableStream<Uint8Array>,
  shape: AnswerShape,
  delivery: Answering['delivery'],
): Promise<Response> {
  const turn = emptyTurn()
  const read = eventReader(events)
  for (;;) {
    for (const event of (await read()) ?? endless()) {
      fold(turn, event)
      if (event.type === 'error') throw new ApiError(event.status, event.message)
      if (event.type === 'done') return deliver(responseBody(turn, shape), {}, delivery(event.turn))
    }
  }
}

/**
 * The answer as it is written. An error before the first text, and before the headers had to go, is a plain
 * answer with its own status. A later one becomes the final event. Breaking the connection off instead does not
 * work: workerd ends a chunked body that failed as if it were whole (seen on the wire), and a stream that ends
 * without a complete event kills the process of a Node client (contract 1.11).
 *
 * @throws ApiError
 */
export async function answerStreaming(
  events: ReadableStream<Uint8Array>,
  shape: AnswerShape,
): Promise<Response> {
  const turn = emptyTurn()
  const read = eventReader(events)

  /** What a batch of events adds to the stream. @throws ApiError when the turn ended in an error */
  const encode = (batch: TurnEvent[] | undefined): { text: string; end: boolean } => {
    let text = ''
    let message = ''
    for (const event of batch ?? endless()) {
      if (event.type === 'delta') {
        message += event.text
        continue
      }
      fold(turn, event)
      if (event.type === 'error') throw new ApiError(event.status, event.message)
      if (event.type === 'done') {
        if (message !== '') text += encodeMessage(shape.conversationId, message)
        return { text: text + encodeEnd(turn, shape), end: true }
      }
    }
    if (message !== '') text += encodeMessage(shape.conversationId, message)
    return { text, end: false }
  }

  const patience = startPatience()
  let pending: ReturnType<typeof read> | undefined
  let head = { text: '', end: false }
  try {
    while (head.text === '') {
      pending = read()
      const batch = await Promise.race([pending, patience.over])
      if (batch === 'over') break
      pending = undefined
      head = encode(batch)
      if (turn.replies.length > 0) patience.shorten()
    }
  } finally {
    patience.stop()
  }
  if (head.end && allFailed(turn)) return json(responseBody(turn, shape))

  const encoder = new TextEncoder()
  let silent = true
  let stopHeartbeat = (): void => {}
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(head.text === '' ? HEARTBEAT : encoder.encode(head.text))
      if (head.end) {
        controller.close()
        return
      }
      const heartbeat = setInterval(() => {
        if (silent) controller.enqueue(HEARTBEAT)
        silent = true
      }, HEARTBEAT_MS)
      stopHeartbeat = () => clearInterval(heartbeat)
    },
    async pull(controller) {
      try {
        for (let written = false; !written; ) {
          const { text, end } = encode(await (pending ?? read()))
          pending = undefined
          written = text !== ''
          silent = !written
          if (written) controller.enqueue(encoder.encode(text))
          if (end) {
            stopHeartbeat()
            controller.close()
          }
        }
      } catch (error) {
        stopHeartbeat()
        controller.enqueue(encoder.encode(encodeFailure(turn, shape, failureOf(error))))
        controller.close()
      }
    },
    async cancel() {
      // The turn goes on without its reader; only an explicit stop ends it.
      stopHeartbeat()
      await read.stop()
    },
  })
  return new Response(body, { headers: STREAM_HEADERS })
}

interface Patience {
  over: Promise<'over'>
  /** What was waited for came: from now on only the grace is left. */
  shorten(): void
  stop(): void
}

function startPatience(): Patience {
  let end = (_: 'over'): void => {}
  const over = new Promise<'over'>((resolve) => {
    end = resolve
  })
  const latest = setTimeout(() => end('over'), LATEST_MS)
  let stopGrace: (() => void) | undefined
  return {
    over,
    shorten: () => {
      if (stopGrace) return
      const grace = setTimeout(() => end('over'), GRACE_MS)
      stopGrace = () => clearTimeout(grace)
    },
    stop: () => {
      clearTimeout(latest)
      stopGrace?.()
    },
  }
}
