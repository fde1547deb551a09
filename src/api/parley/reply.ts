/** Replies on Parley's own routes: the log of a conversation as server-sent events, or a turn as one JSON object. */
import type { Answering } from '../../conversation/ask'
import { settlesWithin } from '../../lib/settles'
import { deliver } from '../http/deliver'
import { type EventReader, throwFailure } from '../shared/read'
import { COMMENT, type EventEncoder, OPENINGS, streamEvents, wholeTurn } from '../shared/stream'
import { answerOf } from './answer'
import { LogEncoder, RETRY } from './encoder'

/**
 * Streams a turn. If an error comes first and at once, it is a plain reply with its own status. Any other error is an
 * event.
 *
 * @throws ApiError
 */
export async function answerStreaming(read: EventReader, headers: Record<string, string>): Promise<Response> {
  const first = read()
  const isQuick = await settlesWithin(OPENINGS.event.graceMs, first).catch(() => false)
  const [event] = (isQuick && (await first)) || []
  if (event) throwFailure(event)
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
  streamEvents(read, logEncoder(), {
    headers: { 'cache-control': 'no-store', ...headers },
    head: { text: RETRY, end: false },
    heartbeat: COMMENT,
    pending: first,
  })

/**
 * Writes each event by itself, because each has a number. A stream that ends without `done` or `error` was cut off, and its
 * client asks for the rest.
 */
function logEncoder(): EventEncoder {
  const log = new LogEncoder()
  return {
    encode: (events) => ({ text: events?.map((event) => log.encode(event)).join('') ?? '', end: !events }),
    breakOff: () => '',
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
