/** Typesense's replies to a turn: one JSON body, or a stream of server-sent events. */
import type { Answering } from '../../conversation/ask'
import type { Failure } from '../../errors'
import { settlesWithin } from '../../lib/waiting'
import type { TurnEvent, Wording } from '../../turn/events'
import { allFailed, foldTurn, type Turn } from '../../turn/fold'
import { deliver, failureOf, json, slowly } from '../http/deliver'
import {
  type EventReader,
  eventReader,
  type Opening,
  type Resume,
  readerOver,
  readHead,
  searchError,
  streamFrom,
  wholeTurn,
} from '../shared/stream'
import { type AnswerShape, MESSAGE_WORDING, MessageEncoder, responseBody, wholeFailure } from './encoder'

/**
 * How long to wait before sending headers, so that an error still gets its own status. Typesense's clients wait 5 s for
 * headers, and for each read after that, and then ask again; its documentation has them wait 2 s.
 */
const OPENING = { awaits: ['delta', 'done'], graceMs: 1_250 } satisfies Opening

/** A bare newline: the only thing that every client ignores (contract 1.11). */
const HEARTBEAT = '\n'
const HEARTBEAT_MS = 1_000

/** How the conversation's object writes the pieces of a streamed answer. */
export const STREAM_WORDING: Wording = { ...MESSAGE_WORDING, heartbeat: HEARTBEAT, heartbeatMs: HEARTBEAT_MS }

/**
 * Replies with the whole answer. One that takes longer than the clients wait begins with blanks, and if its turn then fails,
 * it is a response without a conversation, with the error.
 * @throws ApiError if the turn fails before that
 */
export async function answerWhole(
  events: ReadableStream<Uint8Array>,
  shape: AnswerShape,
  delivery: Answering['delivery'],
  { signal, resume, failed }: WholeReply = {},
): Promise<Response> {
  const read = resultsReader(events, resume)
  const turning = wholeTurn(read)
  if (await settlesWithin(OPENING.graceMs, turning)) {
    const turn = await turning
    return deliver(responseBody(turn, shape), {}, delivery(turn.turn))
  }
  let answered: Turn | undefined
  const leave = () => void (answered ? delivery(answered.turn).lost() : read.stop())
  signal?.addEventListener('abort', leave, { once: true })
  const body = turning.then(
    (turn) => {
      answered = turn
      return responseBody(turn, shape)
    },
    (error) => wholeFailure(shape, (failed ?? failureOf)(error)),
  )
  return slowly(
    body.then((json) => JSON.stringify(json)),
    leave,
  )
}

export interface WholeReply {
  /** of the request */
  signal?: AbortSignal
  resume?: Resume
  /** the failure that the caller sees for a thrown error */
  failed?: (error: unknown) => Failure
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

// Reads a turn for Typesense's searches.

/**
 * The events for Typesense's searches. If every search failed, Typesense replies with the searches' errors as results, so
 * for this reader the turn ends in `done` (contract typesense 1.7).
 */
export function resultsReader(
  events: ReadableStream<Uint8Array>,
  resume?: Resume,
  words?: ReadableStream<Uint8Array>,
): EventReader {
  const read = eventReader(events, resume, words)
  let failed = false
  const readResults = async (): Promise<TurnEvent[] | undefined> => {
    const batch = await read()
    return batch?.map((event) => {
      failed ||= searchError(event) !== undefined
      if (!failed || event.type !== 'error') return event
      const { conversation_id, turn, seq } = event
      return { type: 'done', finish_reason: 'error', answer: [], conversation_id, turn, seq }
    })
  }
  return readerOver(read, readResults)
}
