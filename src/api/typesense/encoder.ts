/**
 * A turn's events in Typesense's words: pure functions from events to JSON and to the bytes of the stream
 * (contract 1.6, 1.7 and 1.10).
 *
 * Everything in a stream is ASCII: the official client decodes every network read on its own, and a
 * character cut in two would arrive broken.
 */

import type { Failure } from '../../errors'
import type { SearchResult } from '../../search/types'
import type { HistoryMessage, SearchReply, TurnEvent } from '../../turn/events'
import { allFailed, emptyTurn, fold, type Turn } from '../../turn/fold'
import type { TurnEncoder } from '../turn/stream'
import { type Shape, told } from './errors'

/** What of the request decides the shape of its answer. */
export interface AnswerShape {
  conversationId: string
  /** the question as it was asked */
  question: string
  shape: Shape
  /** the model's ttl in seconds, shown with the history */
  ttl: number
  /** false where exclude_fields lists conversation_history */
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
    return { results: turn.replies.map((reply) => withQuestion(reply, shape.question)) }
  }
  const reply = turn.replies[0]
  return reply && 'result' in reply ? { ...asAsked(reply.result, shape.question) } : { found: 0, hits: [] }
}

const withQuestion = (reply: SearchReply, question: string): unknown =>
  'result' in reply ? asAsked(reply.result, question) : { code: reply.code, error: reply.error }

/** A search's result with the question that was asked in the place of the one that was searched. */
function asAsked(result: SearchResult, question: string): SearchResult {
  if (!result.request_params) return result
  return { ...result, request_params: { ...result.request_params, first_q: question, q: question } }
}

function conversationObject(turn: Turn, shape: AnswerShape): Record<string, unknown> {
  return {
    answer: turn.answer,
    ...(shape.withHistory ? { conversation_history: historyObject(turn.history ?? [], shape) } : {}),
    conversation_id: shape.conversationId,
    query: (shape.shape === 'single' && turn.standalone) || shape.question,
    // Not Typesense's: the sources of the answer and what it cost. Its client hands unknown keys on.
    citations: turn.citations,
    ...(turn.cut && { cut: turn.cut }),
    ...(turn.followups && turn.followups.length > 0 ? { followups: turn.followups } : {}),
    ...(turn.finishReason === undefined ? {} : { finish_reason: turn.finishReason }),
    ...(turn.usage === undefined ? {} : { usage: turn.usage }),
    ...(turn.timings === undefined ? {} : { timings: turn.timings }),
  }
}

const historyObject = (history: HistoryMessage[], shape: AnswerShape): Record<string, unknown> => ({
  conversation: history.map(({ role, message }) => ({ [role]: message })),
  id: shape.conversationId,
  last_updated: history.at(-1)?.timestamp ?? 0,
  ttl: shape.ttl,
})

/** JSON without a character outside ASCII, on one line. */
export const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** One piece of the answer: `data: {"conversation_id":"...","message":"..."}`. Flat, as servers send it. */
export const encodeMessage = (conversationId: string, message: string): string =>
  `data: {"conversation_id":${asciiJson(conversationId)},"message":${asciiJson(message)}}\n\n`

/**
 * What follows the last piece: an empty one, the end marker, and then the whole response. The id and an empty
 * message stand at its top level too, since the client passes this event to its callers as one more piece.
 */
export function encodeEnd(turn: Turn, shape: AnswerShape): string {
  const whole = { ...responseBody(turn, shape), conversation_id: shape.conversationId, message: '' }
  return `${encodeMessage(shape.conversationId, '')}data: [DONE]\n\ndata: ${asciiJson(whole)}\n\n`
}

/**
 * The end of a stream whose turn failed after it had begun: a whole response without a conversation, with the
 * error beside it, which the official client hands to its caller. There is no end marker, since what came
 * before is not an answer.
 */
export function encodeFailure(turn: Turn, shape: AnswerShape, failure: Failure): string {
  const { status, message } = told(failure, shape.shape)
  return `data: ${asciiJson({
    ...searchBody(turn, shape),
    code: status,
    error: message,
    conversation_id: shape.conversationId,
    message: '',
  })}\n\n`
}

/** The stream of one turn. */
export class MessageEncoder implements TurnEncoder {
  readonly #shape: AnswerShape
  readonly #turn = emptyTurn()

  constructor(shape: AnswerShape) {
    this.#shape = shape
  }

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    if (event.type === 'delta') return encodeMessage(this.#shape.conversationId, event.text)
    return event.type === 'done' ? encodeEnd(this.#turn, this.#shape) : ''
  }

  fail(failure: Failure): string {
    return encodeFailure(this.#turn, this.#shape, failure)
  }
}
