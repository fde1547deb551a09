/** One turn as an HTTP reply: streamed while it runs, or whole at its end. */
import type { Failure } from '../../errors'
import { settlesWithin } from '../../lib/settles'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { failureOf } from '../http/response'
import { COMMENT, type EventEncoder, streamEvents, type Words } from './event-stream'
import { type EventReader, endless, throwFailure } from './read'

/** Writes the events of one turn in a protocol's words. Each stream has its own encoder, which may keep state. */
export interface TurnEncoder {
  /** The text for an event. Never called with an `error`. */
  encode(event: TurnEvent): string
  /** The text that ends the stream of a turn that failed or was cut off. */
  fail(failure: Failure): string
  /**
   * Call this after the conversation's object wrote this many pieces of text (turn/wording.ts). For encoders that
   * number their output
   */
  passed?(pieces: number): void
}

export interface TurnStreaming {
  headers: Record<string, string>
  /** written when nothing else is; a comment in server-sent events by default */
  heartbeat?: string
  /** milliseconds of silence before a heartbeat, 15,000 by default */
  heartbeatMs?: number
}

export interface Streaming extends TurnStreaming {
  /** what to wait for before sending headers. `once`: nothing, as when a reader resumes */
  opensAt: keyof typeof OPENINGS | 'once'
}

const HEADERS = { 'cache-control': 'no-cache, no-transform' }

/** Streams the answer. @throws ApiError if the turn fails before the headers are sent */
export async function streamTurn(
  read: EventReader,
  encoder: TurnEncoder,
  { opensAt, ...streaming }: Streaming,
): Promise<Response> {
  const head = opensAt === 'once' ? { events: [] } : await readHead(read, OPENINGS[opensAt])
  return streamFrom(head, read, encoder, streaming)
}

/** Streams the rest of a turn after its head. */
export function streamFrom(
  { events, pending }: TurnHead,
  read: EventReader,
  encoder: TurnEncoder,
  { headers, heartbeat = COMMENT, heartbeatMs }: TurnStreaming,
): Response {
  const turn = new OneTurn(encoder)
  // The words come after the first piece of text, and before what follows it.
  const first = read.words ? events.findIndex(({ type }) => type === 'delta') : -1
  const { text, end } = turn.encode(first < 0 ? events : events.slice(0, first))
  return streamEvents(read, turn, {
    headers: { ...HEADERS, ...headers },
    head: { text: first < 0 ? text || heartbeat : text, end },
    heartbeat,
    heartbeatMs,
    pending: first < 0 ? pending : Promise.resolve(events.slice(first)),
  })
}

/** Waits for the whole turn. @throws ApiError if it fails */
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

/** Encodes a log of one turn. The stream ends with the turn. */
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

  passed(pieces: number): void {
    this.#encoder.passed?.(pieces)
  }

  /** Joins text that arrived together: one write instead of many. */
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

/** What to wait for before sending headers, and how long. */
export interface Opening {
  /** wait for one of these events; absent: any */
  awaits?: TurnEvent['type'][]
  /** milliseconds. Clients wait a few seconds for headers, and then retry */
  graceMs: number
}

export interface TurnHead {
  events: TurnEvent[]
  /** a read that has begun and not ended */
  pending?: ReturnType<EventReader>
}

/** Wait for any event, for what was found, or for the first text. */
export const OPENINGS = {
  event: { graceMs: 1_000 },
  found: { awaits: ['retrieval', 'done'], graceMs: 1_000 },
  text: { awaits: ['delta', 'done'], graceMs: 2_500 },
} satisfies Record<string, Opening>

/** Reads until the reply may begin. @throws ApiError if the turn fails before that */
export async function readHead(read: EventReader, { awaits, graceMs }: Opening): Promise<TurnHead> {
  const events: TurnEvent[] = []
  const until = Date.now() + graceMs
  for (;;) {
    const pending = read()
    if (!(await settlesWithin(Math.max(0, until - Date.now()), pending))) return { events, pending }
    for (const event of (await pending) ?? endless()) {
      throwFailure(event)
      events.push(event)
    }
    if (!awaits || events.some(({ type }) => awaits.includes(type))) return { events }
  }
}
