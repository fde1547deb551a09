/** /v1/responses: reads its body, and writes a turn as its events (contract 3.3). Pure. */
import * as v from 'valibot'
import type { Failure } from '../../errors'
import { once } from '../../lib/once'
import { type ToolCallPart, textOf } from '../../lib/parts'
import { writeDelta } from '../../turn/events'
import type { Turn } from '../../turn/fold'
import type { Decision } from '../../turn/request'
import { waitingIn } from '../../turn/tools'
import { textIn } from '../shared/foreign'
import { sourcesOf } from '../shared/sources'
import { eventWording, frame, type TurnEncoder, turnEncoder } from '../shared/stream'
import { type CompletionShape, citedPlaces } from './encoder'
import { errorBody } from './errors'
import { messageId, readPlace, responseId } from './ids'
import {
  checkBody,
  common,
  Effort,
  Format,
  formOf,
  InvalidParameter,
  LONGEST_ID,
  type ModelQuestion,
  othersOf,
  pageTools,
  readMessages,
  type SaidMessage,
  Tokens,
  under,
} from './question'

// =============================================================================
// Reads the body of /v1/responses (contract 3.3). Pure.

const Id = once(() => v.pipe(v.string(), v.maxLength(LONGEST_ID)))

/** Items without a role are references to earlier answers, calls of tools and their results, reasoning and the like. */
const Item = once(() =>
  v.looseObject({
    type: v.optional(v.string()),
    id: v.nullish(v.string()),
    role: v.optional(v.string()),
    content: v.optional(v.unknown()),
    call_id: v.optional(v.string()),
    name: v.optional(v.string()),
    arguments: v.optional(v.string()),
    output: v.optional(v.unknown()),
  }),
)

const Body = once(() =>
  v.looseObject({
    ...common(),
    input: v.union([v.string(), v.array(Item())]),
    instructions: v.nullish(v.string()),
    max_output_tokens: v.nullish(Tokens()),
    conversation: v.nullish(v.union([Id(), v.looseObject({ id: Id() })])),
    previous_response_id: v.nullish(v.string()),
    text: v.nullish(v.looseObject({ format: v.nullish(Format()) })),
    reasoning: v.nullish(v.looseObject({ effort: Effort() })),
    background: v.nullish(
      v.literal(false, 'No answer is written in the background: stream it, or read it again by its id.'),
    ),
    prompt: v.optional(v.null('No prompts are stored here: the assistant has its own.')),
  }),
)

interface ResponseRequest extends ModelQuestion {
  /** the earlier response that this one follows. It has to exist */
  previous?: string
  /** the message of an earlier answer that `input` refers to, the last one. It has to exist */
  referred?: string
}

/** @param body parsed JSON @throws InvalidParameter */
export function readResponse(body: unknown): ResponseRequest {
  const {
    model,
    input,
    instructions,
    stream,
    user,
    conversation,
    previous_response_id: previous,
    store,
    text,
    reasoning,
    tool_choice: choice,
    tools,
    ...given
  } = checkBody(Body(), body)
  if (conversation != null && previous != null) {
    throw new InvalidParameter(
      'Give either `conversation` or `previous_response_id`.',
      'previous_response_id',
    )
  }
  const messages = typeof input === 'string' ? [{ role: 'user', content: input }] : input.flatMap(messageOf)
  // Results alone are for the calls of the response before, which stands in its conversation.
  const results =
    previous != null && messages.every(({ role }) => role === 'tool') ? resultsOf(messages) : undefined
  const said = results ? { question: '', transcript: [], instructions: '' } : readMessages(messages, 'input')
  const { format, ...written } = text ?? {}
  const form = formOf(format, 'text.format')
  const referred = previous == null && typeof input !== 'string' ? lastReference(input) : undefined
  const earlier = previous ?? referred
  const place = earlier === undefined ? undefined : readPlace(earlier, previous == null ? 'msg_' : 'resp_')
  // An id that is not ours.
  if (earlier !== undefined && !place) throw (previous == null ? itemNotFound : previousNotFound)(earlier)
  const named = place?.conversation ?? (typeof conversation === 'string' ? conversation : conversation?.id)
  return {
    model,
    ...said,
    ...(results && { results }),
    ...(choice !== 'none' && pageTools(tools)),
    instructions: [instructions ?? '', said.instructions].filter(Boolean).join('\n\n'),
    stream: stream ?? false,
    ...(user && { user }),
    ...(store === false && { unstored: true }),
    ...(named && { conversation: named }),
    ...(previous != null && { previous }),
    ...(referred !== undefined && { referred }),
    ...(place && { after: place.turn }),
    ...(form && { form }),
    ...othersOf({ ...given, ...under('text', written), ...under('reasoning', reasoning ?? {}) }, [
      'temperature',
      'top_p',
      'max_output_tokens',
      'reasoning.effort',
    ]),
  }
}

const resultsOf = (messages: readonly SaidMessage[]): Record<string, Decision> =>
  Object.fromEntries(
    messages.map(({ tool_call_id: id = '', content }) => [id, { result: textIn(content, false) }]),
  )

/** An item as messages of chat completions. */
function messageOf(item: v.InferOutput<ReturnType<typeof Item>>): SaidMessage[] {
  const { type, role, content, call_id: id = '', name = '', arguments: given = '', output } = item
  if (role !== undefined) return [{ role, content }]
  if (type === 'function_call') {
    return [{ role: 'assistant', content: '', tool_calls: [{ id, function: { name, arguments: given } }] }]
  }
  return type === 'function_call_output' ? [{ role: 'tool', tool_call_id: id, content: output }] : []
}

/**
 * The last earlier answer that the input refers to instead of repeating it, as the AI SDK does by default. The
 * question continues from there: the conversation has the answer itself.
 */
const lastReference = (items: readonly v.InferOutput<ReturnType<typeof Item>>[]): string | undefined =>
  items.findLast(({ type, id }) => type === 'item_reference' && id?.startsWith('msg_'))?.id ?? undefined

/** OpenAI's error for a reference to nothing. */
export const itemNotFound = (id: string): InvalidParameter =>
  new InvalidParameter(`Item with id '${id}' not found.`, 'input', 'item_not_found')

export const previousNotFound = (id: string): InvalidParameter =>
  new InvalidParameter(
    `Previous response with id '${id}' not found.`,
    'previous_response_id',
    'previous_response_not_found',
  )

// =============================================================================
// Writes a turn as a response of OpenAI's newer API (contract 3.3): pure functions from events to JSON and to the bytes of the
// stream.
//
//     response.created · response.in_progress · response.output_item.added · response.content_part.added ·
//     response.output_text.delta… · response.output_text.annotation.added… · response.output_text.done ·
//     response.content_part.done · response.output_item.done · response.completed

export interface ResponseShape extends CompletionShape {
  /** the response that this one continues */
  previous: string | null
  /** the conversation in the id of the response (conversation/conversation-id.ts) */
  handle: string
}

type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

/** Finish reasons of an answer that was cut off. */
const INCOMPLETE: Record<string, string> = { length: 'max_output_tokens', content_filter: 'content_filter' }

/** Frames before the first piece of text. */
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

export const responseEncoder = (shape: ResponseShape): TurnEncoder =>
  turnEncoder((turn) => {
    let sequence = 0
    let hasBegun = false
    const write = (type: string, content: object): string =>
      `event: ${type}\n${frame({ type, sequence_number: sequence++, ...content })}`
    const place = () => ({ item_id: itemId(turn), output_index: 0, content_index: 0 })
    return {
      question: () => {
        hasBegun = true
        const response = { ...frameOf(turn, shape, 'in_progress'), output: [] }
        const item = { ...itemOf(turn, 'in_progress'), content: [] }
        return (
          write('response.created', { response }) +
          write('response.in_progress', { response }) +
          write('response.output_item.added', { output_index: 0, item }) +
          write('response.content_part.added', { ...place(), part: partOf('', []) })
        )
      },
      delta: (event) => writeDelta(DELTA_WORDING, event, sequence++ - FRAMES_BEFORE),
      done: () => {
        const response = responseOf(turn, shape)
        const [item, ...calls] = response.output
        const [part] = item.content
        const kind = response.status === 'incomplete' ? 'response.incomplete' : 'response.completed'
        const annotations = part.annotations.map((annotation, annotation_index) =>
          write('response.output_text.annotation.added', { ...place(), annotation_index, annotation }),
        )
        const written = calls.map((call, at) => {
          const [id, output_index] = [{ item_id: call.id }, at + 1]
          return (
            write('response.output_item.added', {
              output_index,
              item: { ...call, arguments: '', status: 'in_progress' },
            }) +
            write('response.function_call_arguments.delta', { ...id, output_index, delta: call.arguments }) +
            write('response.function_call_arguments.done', {
              ...id,
              output_index,
              arguments: call.arguments,
              name: call.name,
            }) +
            write('response.output_item.done', { output_index, item: call })
          )
        })
        return (
          annotations.join('') +
          write('response.output_text.done', { ...place(), text: part.text, logprobs: [] }) +
          write('response.content_part.done', { ...place(), part }) +
          write('response.output_item.done', { output_index: 0, item }) +
          written.join('') +
          write(kind, { response })
        )
      },
      fail: (failure) => {
        const { message, param, code } = errorBody(failure).error
        if (!hasBegun) return write('error', { code, message, param })
        return write('response.failed', { response: failedResponse(turn, shape, failure) })
      },
      passed: (pieces) => {
        sequence += pieces
      },
    }
  })

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
    output: [
      { ...itemOf(turn, status), content: [partOf(textOf(turn.answer), annotations)] },
      ...waitingIn(turn.answer).map(calledItem),
    ] as [Message, ...ReturnType<typeof calledItem>[]],
    usage: {
      input_tokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input_tokens + output_tokens,
    },
  }
}

export function failedResponse(turn: Turn, shape: ResponseShape, failure: Failure) {
  const { code, type, message } = errorBody(failure).error
  return { ...frameOf(turn, shape, 'failed'), output: [], error: { code: code ?? type, message } }
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

type Message = ReturnType<typeof itemOf> & { content: [ReturnType<typeof partOf>] }

/** A call that waits for the caller. */
const calledItem = ({ id, name, arguments: given }: ToolCallPart) => ({
  id: `fc_${id}`,
  type: 'function_call',
  status: 'completed',
  call_id: id,
  name,
  arguments: given,
})

const partOf = (text: string, annotations: object[]) => ({
  type: 'output_text',
  text,
  annotations,
  logprobs: [],
})
