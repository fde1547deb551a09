/** Replies on Parley's own routes: the log of a conversation as server-sent events, or a turn as one JSON object. */
import type { Answering } from '../../conversation/ask'
import type { TurnEvent } from '../../turn/events'
import { deliver } from '../edge/deliver'
import { asAsked } from '../turn/asked'
import { COMMENT, type EventEncoder, streamEvents, type Words } from '../turn/event-stream'
import { throwFailure } from '../turn/failure'
import { OPENINGS, Patience } from '../turn/head'
import type { EventReader } from '../turn/read'
import { wholeTurn } from '../turn/stream'
import { answerOf } from './answer'
import { encodeEvent, RETRY } from './encoder'

/**
 * Streams a turn. If an error comes first and at once, it is a plain reply with its own status. Any other error is an
 * event.
 *
 * @throws ApiError
 */
export async function answerStreaming(read: EventReader, headers: Record<string, string>): Promise<Response> {
  const first = read()
  const patience = new Patience(OPENINGS.event.graceMs)
  const begun = await Promise.race([first.catch(() => undefined), patience.over]).finally(() =>
    patience.stop(),
  )
  if (begun && begun !== 'over') throwFailure(begun[0]!)
  return streamLog(read, headers, first)
}

/**
 * Streams the events of all turns to the end of the log.
 *
 * @param first a read that has begun
 */
export const streamLog = (
  read: EventReader,
  headers: Record<string, string> = {},
  first?: ReturnType<EventReader>,
): Response =>
  streamEvents(read, new LogEncoder(), {
    headers: { 'cache-control': 'no-store', ...headers },
    head: { text: RETRY, end: false },
    heartbeat: COMMENT,
    pending: first,
  })

/**
 * Writes each event by itself, because each has a number. A stream that ends without `done` or `error` was cut off, and its
 * client asks for the rest.
 */
class LogEncoder implements EventEncoder {
  /** the latest turn's question, as it was asked */
  #asked: { turn: number; question: string } | undefined

  encode(events: TurnEvent[] | undefined): Words {
    return { text: events?.map((event) => this.#encodeOne(event)).join('') ?? '', end: !events }
  }

  breakOff(): string {
    return ''
  }

  #encodeOne(event: TurnEvent): string {
    if (event.type === 'question') this.#asked = event
    if (event.type !== 'retrieval' || this.#asked?.turn !== event.turn) return encodeEvent(event)
    const { question } = this.#asked
    const replies = event.replies.map((reply) =>
      'result' in reply ? { result: asAsked(reply.result, question) } : reply,
    )
    return encodeEvent({ ...event, replies })
  }
}

/** Replies with the whole turn. @throws ApiError if it fails */
export async function answerWhole(
  read: EventReader,
  headers: Record<string, string>,
  delivery: Answering['delivery'],
): Promise<Response> {
  const turn = await wholeTurn(read)
  return deliver(answerOf(turn), headers, delivery(turn.turn))
}
