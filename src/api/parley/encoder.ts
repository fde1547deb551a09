/**
 * Writes the events of a turn as server-sent events. It remembers the search results.
 *
 *     id: <turn>.<seq>
 *     event: <type>
 *     data: <the event as JSON, without what the other lines say>
 *
 * JSON escapes line breaks, so the data is always one line. A `retrieval` shows the engine's replies beside the documents of
 * the prompt.
 */

import type { InferOutput } from 'valibot'
import type { Answering } from '../../conversation/ask'
import { ApiError, type ErrorCode } from '../../errors'
import { textOf } from '../../lib/parts'
import { settlesWithin } from '../../lib/waiting'
import { codeOf } from '../../turn/errors'
import { type ErrorEvent, type SearchReply, type TurnEvent, writeDelta } from '../../turn/events'
import { callsOf, type Turn } from '../../turn/fold'
import { deliver, type FailedRequest, failureOf, json, toRetry } from '../http/deliver'
import { askedReplies } from '../shared/sources'
import {
  COMMENT,
  type EventEncoder,
  type EventReader,
  eventWording,
  frame,
  OPENINGS,
  streamEvents,
  type TurnEncoder,
  throwFailure,
  wholeTurn,
} from '../shared/stream'
import type { Answer } from './response-schemas'

/** How long a client waits before it reconnects, in milliseconds. Sent once, at the beginning of a stream. */
export const RETRY = 'retry: 1000\n\n'

/** How the pieces of an answer are written. */
export const LOG_WORDING = eventWording([
  'id: ',
  { slot: 'turn' },
  '.',
  { slot: 'seq' },
  '\nevent: delta\ndata: {"text":"',
  { slot: 'text' },
  '"}\n\n',
])

export function logEncoder(): Pick<TurnEncoder, 'encode'> {
  /** the engine's replies, kept until their `retrieval` event */
  let results: SearchReply[] | undefined
  /** the latest turn's question, as it was asked */
  let asked: { turn: number; question: string } | undefined
  const dataOf = (event: TurnEvent): object => {
    const { type: _type, conversation_id, turn: _turn, seq: _seq, ...data } = event
    // The first event of a turn is where a client learns which conversation it began.
    if (event.type === 'question') {
      const question = textOf(event.question)
      asked = { turn: event.turn, question }
      return { conversation_id, ...data, question }
    }
    if (event.type === 'done') return { ...data, answer: textOf(event.answer) }
    if (event.type === 'resumed') return { answer: textOf(event.content), calls: callsOf(event.content) }
    if (event.type === 'error') return { ...data, message: wordsOf(event) }
    if (event.type !== 'retrieval') return data
    const { passages, searches, cut } = event
    const turn = { passages, summaries: searches, ...(results && { results }) }
    results = undefined
    const further = searches.flatMap(({ collection, q, found }) =>
      q === undefined ? [] : { collection, q, found },
    )
    return {
      replies: askedReplies(turn, asked?.turn === event.turn ? asked.question : undefined),
      ...(further.length > 0 && { further }),
      sources: passages.map(({ collection, id }) => ({ collection, document_id: id })),
      ...(cut && { cut }),
    }
  }
  return {
    encode(event) {
      const { type, turn, seq } = event
      if (type === 'results') results = event.replies
      if (type === 'results' || type === 'history') return ''
      if (type === 'part') {
        const { type: kind, ...part } = event.part
        const isTool = kind === 'tool_call' || kind === 'tool_result'
        return isTool ? `id: ${turn}.${seq}\nevent: ${kind}\n${frame(part)}` : ''
      }
      if (type === 'delta') return writeDelta(LOG_WORDING, event)
      return `id: ${turn}.${seq}\nevent: ${type}\n${frame(dataOf(event))}`
    },
  }
}

// =============================================================================
// Replies on Parley's own routes: the log of a conversation as server-sent events, or a turn as one JSON object.

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
  streamEvents(read, eachByItself(), {
    headers: { 'cache-control': 'no-store', ...headers },
    head: { text: RETRY, end: false },
    heartbeat: COMMENT,
    pending: first,
  })

/** Each event has a number. A stream that ends without `done` or `error` was cut off, and its client asks for the rest. */
function eachByItself(): EventEncoder {
  const log = logEncoder()
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

/** @param folded one that is done */
export function answerOf(folded: Turn): Omit<InferOutput<typeof Answer>, 'results'> & { results: unknown[] } {
  const { standalone, suggestions, usage, timings, cut, ...turn } = folded
  const calls = callsOf(turn.answer)
  const question = textOf(turn.question)
  return {
    conversation_id: turn.conversationId,
    turn: turn.turn,
    question,
    ...(standalone !== undefined && { standalone }),
    answer: textOf(turn.answer),
    finish_reason: turn.finishReason ?? '',
    ...turn.verdict,
    citations: turn.citations,
    ...(calls.length > 0 && { calls }),
    ...(cut && { cut }),
    ...(suggestions && { followups: suggestions }),
    ...(usage && { usage }),
    ...(timings && { timings }),
    results: askedReplies(folded, question).map((reply) => ('result' in reply ? reply.result : reply)),
  }
}

// =============================================================================
// Errors of Parley's own routes: `{"message", "detail", "code"}`.

/** Codes with a status and words of their own here. Errors with other codes are unchanged. */
const TABLE: Partial<Record<ErrorCode, { status?: number; words: string }>> = {
  unknown_conversation: { status: 404, words: 'Conversation not found' },
  unknown_turn: { status: 404, words: 'Turn not found' },
  unknown_assistant: { status: 404, words: 'Assistant not found' },
  unknown_model: { status: 404, words: 'Model not found' },
  too_long: {
    words:
      'The question is too long for its conversation model. Ask a shorter one, or raise `max_bytes` of the model.',
  },
  // The status depends on whether the path or a property names the collection.
  unknown_collection: { words: 'Collection not found' },
}

/** The words of an error that ends a turn. */
export const wordsOf = ({ code, message }: ErrorEvent): string => TABLE[code]?.words ?? message

/** The answer to a thrown error. Clients compare `code`; `message` and `detail` are for people. */
export function parleyError(error: unknown, request: FailedRequest): Response {
  const failure = failureOf(error, request)
  const code = codeOf(error instanceof ApiError ? error : failure)
  const { status = failure.status, words = failure.message } = TABLE[code] ?? {}
  const { detail } = failure
  return toRetry(json({ message: words, ...(detail !== undefined && { detail }), code }, status), failure)
}
