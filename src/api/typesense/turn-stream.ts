/** A turn as Typesense answers it: in one JSON body, or as a stream of server-sent events. */
import type { Answering } from '../../conversation/ask'
import { allFailed, foldTurn } from '../../turn/fold'
import { deliver } from '../edge/deliver'
import { json } from '../edge/response'
import { type Opening, readHead } from '../turn/head'
import { type Resume, resultsReader } from '../turn/read'
import { streamFrom, wholeTurn } from '../turn/stream'
import { type AnswerShape, MessageEncoder, responseBody } from './encoder'

/**
 * How long an error may still turn the answer into a plain one. Clients give up on headers after 5 s, and try
 * again: whatever happens, ours are out before that.
 */
const OPENING: Opening = { awaits: ['delta', 'done'], graceMs: 4_000, foundGraceMs: 2_000 }

/** A bare newline is the one thing that every client passes over in silence (contract 1.11). */
const HEARTBEAT = '\n'
const HEARTBEAT_MS = 2_500

/** The answer in one piece. @throws ApiError when the turn ended in an error */
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
  resume?: Resume,
): Promise<Response> {
  const read = resultsReader(events, resume)
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
