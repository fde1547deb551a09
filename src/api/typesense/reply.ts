/** Typesense's replies to a turn: one JSON body, or a stream of server-sent events. */
import type { Answering } from '../../conversation/ask'
import { allFailed, foldTurn } from '../../turn/fold'
import type { Wording } from '../../turn/wording'
import { deliver } from '../edge/deliver'
import { json } from '../edge/response'
import { type Opening, readHead } from '../turn/head'
import type { Resume } from '../turn/read'
import { streamFrom, wholeTurn } from '../turn/stream'
import { type AnswerShape, MESSAGE_WORDING, MessageEncoder, responseBody } from './encoder'
import { resultsReader } from './results-reader'

/**
 * How long to wait before sending headers, so that an error still gets its own status. Clients wait 5 s for headers
 * and then retry, so Parley always sends its headers before that.
 */
const OPENING: Opening = { awaits: ['delta', 'done'], graceMs: 4_000, foundGraceMs: 2_000 }

/** A bare newline: the only thing that every client ignores (contract 1.11). */
const HEARTBEAT = '\n'
const HEARTBEAT_MS = 2_500

/** How the conversation's object writes the pieces of a streamed answer. */
export const STREAM_WORDING: Wording = { ...MESSAGE_WORDING, heartbeat: HEARTBEAT, heartbeatMs: HEARTBEAT_MS }

/** Replies with the whole answer. @throws ApiError if the turn fails */
export async function answerWhole(
  events: ReadableStream<Uint8Array>,
  shape: AnswerShape,
  delivery: Answering['delivery'],
  resume?: Resume,
): Promise<Response> {
  const turn = await wholeTurn(resultsReader(events, resume))
  return deliver(responseBody(turn, shape), {}, delivery(turn.turn))
}

/**
 * Streams the answer. An error before the first text, and before the headers are sent, is a plain reply with its own
 * status. A later error becomes the last event. Breaking the connection off instead does not work: workerd ends a
 * failed chunked body as if it were complete (seen on the wire), and a stream that ends without a complete event
 * kills a Node client's process (contract 1.11).
 *
 * @throws ApiError
 */
export async function answerStreaming(
  events: ReadableStream<Uint8Array>,
  shape: AnswerShape,
  resume?: Resume,
  words?: ReadableStream<Uint8Array>,
): Promise<Response> {
  const read = resultsReader(events, resume, words)
  const head = await readHead(read, OPENING)
  if (head.events.at(-1)?.type === 'done') {
    const turn = foldTurn(head.events)
    if (allFailed(turn)) return json(responseBody(turn, shape))
  }
  return streamFrom(head, read, new MessageEncoder(shape), {
    headers: { 'cache-control': 'no-store' },
    heartbeat: HEARTBEAT,
    heartbeatMs: HEARTBEAT_MS,
  })
}
