/**
 * Writes a turn as a response of OpenAI's newer API (contract 3.3): pure functions from events to JSON and to the bytes of the
 * stream.
 *
 *     response.created · response.in_progress · response.output_item.added · response.content_part.added ·
 *     response.output_text.delta… · response.output_text.annotation.added… · response.output_text.done ·
 *     response.content_part.done · response.output_item.done · response.completed
 */

import type { Failure } from '../../errors'
import { textOf } from '../../lib/parts'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { writeDelta } from '../../turn/wording'
import { sourcesOf } from '../shared/sources'
import { eventWording, type TurnEncoder } from '../shared/stream'
import { type CompletionShape, citedPlaces } from './encoder'
import { errorBody } from './errors'
import { messageId, responseId } from './ids'

export interface ResponseShape extends CompletionShape {
  /** the response that this one continues */
  previous: string | null
  /** the conversation in the id of the response (conversation/conversation-id.ts) */
  handle: string
}

type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

/** Finish reasons of an answer that was cut off. */
const INCOMPLETE: Record<string, string> = { length: 'max_output_tokens', content_filter: 'content_filter' }

/** Frames before the first piece of text (`#begin`). */
const FRAMES_BEFORE = 4

/** How the pieces of an answer are written. */
export const DELTA_WORDING = eventWording([
  'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":',
  { slot: 'piece', from: FRAMES_BEFORE },
  ',"item_id":"msg_',
  { slot: 'conversation' },
  '.',
  { slot: 'turn' },
  '","output_index":0,"content_index":0,"delta":"',
  { slot: 'text' },
  '","logprobs":[]}\n\n',
])

export class ResponseEncoder implements TurnEncoder {
  readonly #shape: ResponseShape
  readonly #turn: Turn = emptyTurn()
  #sequence = 0
  #begun = false

  constructor(shape: ResponseShape) {
    this.#shape = shape
  }

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    switch (event.type) {
      case 'question':
        this.#begun = true
        return this.#begin()
      case 'delta':
        return writeDelta(DELTA_WORDING, event, this.#sequence++ - FRAMES_BEFORE)
      case 'done':
        return this.#end()
      default:
        return ''
    }
  }

  fail(failure: Failure): string {
    const { message, type, param, code } = errorBody(failure).error
    if (!this.#begun) return this.#frame('error', { code, message, param })
    const response = {
      ...frameOf(this.#turn, this.#shape, 'failed'),
      output: [],
      error: { code: code ?? type, message },
    }
    return this.#frame('response.failed', { response })
  }

  passed(pieces: number): void {
    this.#sequence += pieces
  }

  #begin(): string {
    const response = { ...frameOf(this.#turn, this.#shape, 'in_progress'), output: [] }
    const item = { ...itemOf(this.#turn, 'in_progress'), content: [] }
    return (
      this.#frame('response.created', { response }) +
      this.#frame('response.in_progress', { response }) +
      this.#frame('response.output_item.added', { output_index: 0, item }) +
      this.#frame('response.content_part.added', { ...this.#place(), part: partOf('', []) })
    )
  }

  #end(): string {
    const response = responseOf(this.#turn, this.#shape)
    const [item] = response.output
    const [part] = item.content
    const kind = response.status === 'incomplete' ? 'response.incomplete' : 'response.completed'
    return (
      part.annotations
        .map((annotation, index) =>
          this.#frame('response.output_text.annotation.added', {
            ...this.#place(),
            annotation_index: index,
            annotation,
          }),
        )
        .join('') +
      this.#frame('response.output_text.done', { ...this.#place(), text: part.text, logprobs: [] }) +
      this.#frame('response.content_part.done', { ...this.#place(), part }) +
      this.#frame('response.output_item.done', { output_index: 0, item }) +
      this.#frame(kind, { response })
    )
  }

  #place() {
    return { item_id: itemId(this.#turn), output_index: 0, content_index: 0 }
  }

  #frame(type: string, content: object): string {
    const data = { type, sequence_number: this.#sequence++, ...content }
    return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
  }
}

/** The whole answer. @param turn one that is done */
export function responseOf(turn: Turn, shape: ResponseShape) {
  const annotations = citedPlaces(turn, sourcesOf(turn.passages, shape.fields)).map((place) => ({
    type: 'url_citation' as const,
    ...place,
  }))
  const reason = INCOMPLETE[turn.finishReason ?? '']
  const status = reason === undefined ? 'completed' : 'incomplete'
  const { input_tokens = 0, output_tokens = 0 } = turn.usage ?? {}
  return {
    ...frameOf(turn, shape, status),
    incomplete_details: reason === undefined ? null : { reason },
    output: [{ ...itemOf(turn, status), content: [partOf(textOf(turn.answer), annotations)] }] as const,
    usage: {
      input_tokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input_tokens + output_tokens,
    },
  }
}

/** The properties of a response in every state. Clients expect all of them. */
export const frameOf = ({ conversationId, turn }: Turn, shape: ResponseShape, status: Status) => ({
  id: responseId(shape.handle, turn),
  object: 'response',
  created_at: shape.created,
  status,
  model: shape.model,
  conversation: shape.unstored ? null : { id: conversationId },
  store: !shape.unstored,
  previous_response_id: shape.previous,
  error: null,
  incomplete_details: null as { reason: string } | null,
  instructions: null,
  metadata: {},
  parallel_tool_calls: false,
  temperature: null,
  tool_choice: 'none',
  tools: [],
  top_p: null,
  ...(shape.ignored && { context: { ignored: shape.ignored } }),
})

const itemId = ({ conversationId, turn }: Turn): string => messageId(conversationId, turn)

const itemOf = (turn: Turn, status: Status) => ({
  id: itemId(turn),
  type: 'message',
  status,
  role: 'assistant',
})

const partOf = (text: string, annotations: object[]) => ({
  type: 'output_text',
  text,
  annotations,
  logprobs: [],
})
