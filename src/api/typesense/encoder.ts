/**
 * Writes a turn as Typesense does: pure functions from events to JSON and to the bytes of the stream (contract 1.6, 1.7 and
 * 1.10).
 *
 * Everything in a stream is ASCII. The official client decodes every network read by itself, so a character that is split
 * between two reads would arrive broken.
 */

import type { Answering } from '../../conversation/ask'
import type { Failure } from '../../errors'
import { textOf } from '../../lib/parts'
import { settlesWithin } from '../../lib/waiting'
import {
  asciiJson,
  type HistoryMessage,
  type LineWording,
  type TurnEvent,
  type Wording,
  writeDelta,
} from '../../turn/events'
import { allFailed, emptyTurn, foldTurn, type Turn } from '../../turn/fold'
import { deliver, failureOf, json, slowly } from '../http/deliver'
import { asAsked, repliesOf, shownReply } from '../shared/sources'
import {
  type EventReader,
  eventReader,
  type Opening,
  type Resume,
  readerOver,
  readHead,
  searchError,
  streamFrom,
  type TurnEncoder,
  turnEncoder,
  wholeTurn,
} from '../shared/stream'
import { type Shape, told } from './errors'

/** The parameters for the shape of the answer. */
export interface AnswerShape {
  conversationId: string
  /** the question as it was asked */
  question: string
  shape: Shape
  /** the model's ttl in seconds, shown with the history */
  ttl: number
  /** false if exclude_fields lists conversation_history */
  withHistory: boolean
}

/** The response as JSON, whole. */
export function responseBody(turn: Turn, shape: AnswerShape): Record<string, unknown> {
  const found = searchBody(turn, shape)
  return allFailed(turn) ? found : { conversation: conversationObject(turn, shape), ...found }
}

/** The searches' part of the response. It is complete in the eyes of the official client even without a hit. */
function searchBody(turn: Turn, shape: AnswerShape): Record<string, unknown> {
  if (shape.shape === 'multi') {
    return { results: repliesOf(turn).map((reply) => shownReply(reply, shape.question)) }
  }
  const [reply] = repliesOf(turn)
  return reply && 'result' in reply ? { ...asAsked(reply.result, shape.question) } : { found: 0, hits: [] }
}

function conversationObject(turn: Turn, shape: AnswerShape): Record<string, unknown> {
  return {
    answer: textOf(turn.answer),
    ...(shape.withHistory ? { conversation_history: historyObject(turn.history ?? [], shape) } : {}),
    conversation_id: shape.conversationId,
    query: (shape.shape === 'single' && turn.standalone) || shape.question,
    // Not part of Typesense's wire: the sources of the answer and what it cost. Its client passes unknown keys on.
    citations: turn.citations,
    ...(turn.cut && { cut: turn.cut }),
    ...(turn.suggestions && turn.suggestions.length > 0 ? { followups: turn.suggestions } : {}),
    ...(turn.finishReason === undefined ? {} : { finish_reason: turn.finishReason }),
    ...(turn.usage === undefined ? {} : { usage: turn.usage }),
    ...(turn.timings === undefined ? {} : { timings: turn.timings }),
  }
}

const historyObject = (history: HistoryMessage[], shape: AnswerShape): Record<string, unknown> => ({
  conversation: history.map(({ role, content }) => ({ [role]: textOf(content) })),
  id: shape.conversationId,
  last_updated: history.at(-1)?.timestamp ?? 0,
  ttl: shape.ttl,
})

/** How a piece of the answer is written: `data: {"conversation_id":"...","message":"..."}`. Flat, as servers send it. */
const MESSAGE_WORDING: LineWording = {
  line: ['data: {"conversation_id":"', { slot: 'conversation' }, '","message":"', { slot: 'text' }, '"}\n\n'],
  escapes: 'ascii',
}

export const encodeMessage = (conversation_id: string, text: string): string =>
  writeDelta(MESSAGE_WORDING, { conversation_id, text, turn: 0, seq: 0 })

/**
 * The end of a stream: an empty piece, the end marker, and the whole response. The response also has the id and an empty
 * message at its top level, because the client passes this event to its callers as one more piece.
 */
function encodeEnd(turn: Turn, shape: AnswerShape): string {
  const whole = { ...responseBody(turn, shape), conversation_id: shape.conversationId, message: '' }
  return `${encodeMessage(shape.conversationId, '')}data: [DONE]\n\ndata: ${asciiJson(whole)}\n\n`
}

/** A whole response without a conversation, with the error, which the official client passes to its caller. */
function failureBody(turn: Turn, shape: AnswerShape, failure: Failure): Record<string, unknown> {
  const { status, message } = told(failure, shape.shape)
  const named = { conversation_id: shape.conversationId, message }
  return { ...searchBody(turn, shape), code: status, error: message, ...named }
}

/** Encodes one turn as a stream. */
export const messageEncoder = (shape: AnswerShape): TurnEncoder =>
  turnEncoder((turn) => ({
    delta: ({ text }) => encodeMessage(shape.conversationId, text),
    done: () => encodeEnd(turn, shape),
    // There is no end marker, because the text before is not a complete answer.
    fail: (failure) => `data: ${asciiJson({ ...failureBody(turn, shape, failure), message: '' })}\n\n`,
  }))

// =============================================================================
// Long replies in plain text, written piece by piece.

const TEXT_HEADERS = { 'content-type': 'text/plain; charset=utf-8' }

export const plainText = (body: string | ReadableStream): Response =>
  new Response(body, { headers: TEXT_HEADERS })

/**
 * A body of pieces as they come. The first piece is awaited before the reply begins, so that its error can have its own
 * status.
 *
 * @param readAhead bytes to produce before the client reads any. Otherwise a client that sends its whole body before it reads
 *   would wait for us to read its body, while we wait for it to read our reply
 */
export async function streamText(
  pieces: AsyncGenerator<string, void, undefined>,
  readAhead = 0,
): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder()
  const first = await pieces.next()
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (first.done) controller.close()
        else controller.enqueue(encoder.encode(first.value))
      },
      async pull(controller) {
        const next = await pieces.next()
        if (next.done) controller.close()
        else controller.enqueue(encoder.encode(next.value))
      },
      async cancel() {
        await pieces.return()
      },
    },
    { highWaterMark: readAhead, size: (chunk) => chunk?.byteLength ?? 0 },
  )
}

// =============================================================================
// Typesense's replies to a turn: one JSON body, or a stream of server-sent events.

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
    (error) => failureBody(emptyTurn(), shape, (failed ?? failureOf)(error)),
  )
  return slowly(
    body.then((json) => JSON.stringify(json)),
    leave,
  )
}

interface WholeReply {
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
  return streamFrom(head, read, messageEncoder(shape), {
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
function resultsReader(
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
