/** Turns as Parley's own routes answer them: the log itself as server-sent events, or one JSON object of a turn. */
import type { Answering } from '../../conversation/ask'
import { deliver } from '../edge/deliver'
import { COMMENT, type EventEncoder, streamEvents } from '../turn/event-stream'
import { throwFailure } from '../turn/failure'
import { OPENINGS, Patience } from '../turn/head'
import type { EventReader } from '../turn/read'
import { wholeTurn } from '../turn/stream'
import { answerOf } from './answer'
import { encodeEvent, RETRY } from './encoder'

/**
 * The turn as it is written. An error that comes at once and before anything else is a plain answer with its own
 * status; every other one is an event.
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
 * The events as they come, of as many turns as there are, to the end of their log.
 *
 * @param first a read that was begun already
 */
export const streamLog = (
  read: EventReader,
  headers: Record<string, string> = {},
  first?: ReturnType<EventReader>,
): Response =>
  streamEvents(read, LOG, {
    headers: { 'cache-control': 'no-store', ...headers },
    head: { text: RETRY, end: false },
    heartbeat: COMMENT,
    pending: first,
  })

/**
 * Every event has a number, so that none is put together with the next one. A stream that ends without `done` or
 * `error` was cut off on the way, and its client asks for the rest.
 */
const LOG: EventEncoder = {
  encode: (events) => ({ text: events?.map(encodeEvent).join('') ?? '', end: !events }),
  breakOff: () => '',
}

/** The turn in one piece. @throws ApiError when it ended in an error */
export async function answerWhole(
  read: EventReader,
  headers: Record<string, string>,
  delivery: Answering['delivery'],
): Promise<Response> {
  const turn = await wholeTurn(read)
  return deliver(answerOf(turn), headers, delivery(turn.turn))
}
