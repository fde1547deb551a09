/** Reads the body of /v1/responses (contract 3.3). Pure. */
import * as v from 'valibot'
import { once } from '../../lib/once'
import { type Place, readPlace } from './ids'
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
  readMessages,
  type SaidMessage,
  Tokens,
  under,
} from './question'

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

export interface ResponseRequest extends ModelQuestion {
  /** the earlier response that this one follows. It has to exist */
  previous?: string
  /** the message of an earlier answer that `input` refers to, the last one. It has to exist */
  referred?: string
}

/**
 * @param body parsed JSON
 * @throws InvalidParameter
 */
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
    tool_choice: _,
    ...given
  } = checkBody(Body(), body)
  if (conversation != null && previous != null) {
    throw new InvalidParameter(
      'Give either `conversation` or `previous_response_id`.',
      'previous_response_id',
    )
  }
  const messages = typeof input === 'string' ? [{ role: 'user', content: input }] : input.flatMap(messageOf)
  const said = readMessages(messages, 'input')
  const { format, ...written } = text ?? {}
  const form = formOf(format, 'text.format')
  const referred = previous == null && typeof input !== 'string' ? lastReference(input) : undefined
  const place = referred === undefined ? placeOf(previous) : placeOfMessage(referred)
  const named = place?.conversation ?? (typeof conversation === 'string' ? conversation : conversation?.id)
  return {
    model,
    ...said,
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

/** An item as messages of chat completions. */
function messageOf(item: v.InferOutput<ReturnType<typeof Item>>): SaidMessage[] {
  const { type, role, content, call_id: id = '', name = '', arguments: given = '', output } = item
  if (role !== undefined) return [{ role, content }]
  if (type === 'function_call') {
    return [{ role: 'assistant', content: '', tool_calls: [{ id, function: { name, arguments: given } }] }]
  }
  return type === 'function_call_output' ? [{ role: 'tool', tool_call_id: id, content: output }] : []
}

/** The conversation and the turn of a response. @throws InvalidParameter for an id that is not ours */
function placeOf(previous: string | null | undefined): Place | undefined {
  if (previous == null) return undefined
  const place = readPlace(previous, 'resp_')
  if (place === undefined) throw previousNotFound(previous)
  return place
}

/**
 * The last earlier answer that the input refers to instead of repeating it, as the AI SDK does by default. The
 * question continues from there: the conversation has the answer itself.
 */
const lastReference = (items: readonly v.InferOutput<ReturnType<typeof Item>>[]): string | undefined =>
  items.findLast(({ type, id }) => type === 'item_reference' && id?.startsWith('msg_'))?.id ?? undefined

/** The conversation and the turn of an answer. @throws InvalidParameter for an id that is not ours */
function placeOfMessage(id: string): Place {
  const place = readPlace(id, 'msg_')
  if (place === undefined) throw itemNotFound(id)
  return place
}

/** OpenAI's error for a reference to nothing. */
export const itemNotFound = (id: string): InvalidParameter =>
  new InvalidParameter(`Item with id '${id}' not found.`, 'input', 'item_not_found')

export const previousNotFound = (id: string): InvalidParameter =>
  new InvalidParameter(
    `Previous response with id '${id}' not found.`,
    'previous_response_id',
    'previous_response_not_found',
  )
