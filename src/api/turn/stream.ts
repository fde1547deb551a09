/** One turn as an HTTP answer: written while it runs, in a protocol's words, or told at its end. */
import type { Failure } from '../../errors'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { failureOf } from '../edge/response'
import { COMMENT, type EventEncoder, streamEvents, type Words } from './event-stream'
import { throwFailure } from './failure'
import { OPENINGS, readHead, type TurnHead } from './head'
import { type EventReader, endless } from './read'

/** A protocol's words for the events of one turn. One encoder serves one stream: it may remember what it wrote. */
export interface TurnEncoder {
  /** What an event adds to the stream. An `error` never comes here. */
  encode(event: TurnEvent): string
  /** How a stream ends whose turn failed or was cut off. */
  fail(failure: Failure): string
}

export interface TurnStreaming {
  headers: Record<string, string>
  /** what goes out in silence, and is passed over: a comment of server-sent events unless said otherwise */
  heartbeat?: string
  /** milliseconds of silence before it does: 15 s unless said otherwise */
  heartbeatMs?: number
}

export interface Streaming extends TurnStreaming {
  /** what is waited for before the headers go (turn-head.ts). A stream that resumes waits for nothing */
  opensAt: keyof typeof OPENINGS | 'once'
}

const HEADERS = { 'cache-control': 'no-cache, no-transform' }

/** The answer as it is written. @throws ApiError for a failure before the headers went */
export async function streamTurn(
  read: EventReader,
  encoder: TurnEncoder,
  { opensAt, ...streaming }: Streaming,
): Promise<Response> {
  const head = opensAt === 'once' ? { events: [] } : await readHead(read, OPENINGS[opensAt])
  return streamFrom(head, read, encoder, streaming)
}

/** The rest of a turn as it is written, after the head that was read of it. */
export function streamFrom(
  { events, pending }: TurnHead,
  read: EventReader,
  encoder: TurnEncoder,
  { headers, heartbeat = COMMENT, heartbeatMs }: TurnStreaming,
): Response {
  const turn = new OneTurn(encoder)
  const { text, end } = turn.encode(events)
  return streamEvents(read, turn, {
    headers: { ...HEADERS, ...headers },
    head: { text: text || heartbeat, end },
    heartbeat,
    heartbeatMs,
    pending,
  })
}

/** The turn in one piece. @throws ApiError when it failed */
export async function wholeTurn(read: EventReader): Promise<Turn> {
  const turn = emptyTurn()
  for (;;) {
    for (const event of (await read()) ?? endless()) {
      throwFailure(event)
      fold(turn, event)
      if (event.type === 'done') return turn
    }
  }
}

/** A log that holds one turn, and ends with it. */
class OneTurn implements EventEncoder {
  readonly #encoder: TurnEncoder

  constructor(encoder: TurnEncoder) {
    this.#encoder = encoder
  }

  encode(events: TurnEvent[] | undefined): Words {
    if (!events) endless()
    const last = events.at(-1)
    if (last?.type !== 'error') return { text: this.#encodeAll(events), end: last?.type === 'done' }
    const { code, status, message } = last
    const text = this.#encodeAll(events.slice(0, -1))
    return { text: text + this.#encoder.fail({ code, status, message }), end: true }
  }

  breakOff(error: unknown): string {
    return this.#encoder.fail(failureOf(error))
  }

  /** Pieces of text that came together leave as one. */
  #encodeAll(events: TurnEvent[]): string {
    let encoded = ''
    for (let at = 0; at < events.length; at++) {
      let event = events[at]!
      while (event.type === 'delta' && events[at + 1]?.type === 'delta') {
        const next = events[++at] as typeof event
        event = { ...event, text: event.text + next.text }
      }
      encoded += this.#encoder.encode(event)
    }
    return encoded
  }
}
