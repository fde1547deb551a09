/** Reads the body of /v1/responses (contract 3.3). Pure. */
import * as v from 'valibot'
import {
  checkBody,
  common,
  givenOf,
  InvalidParameter,
  LONGEST_ID,
  type ModelQuestion,
  readMessages,
  Tokens,
} from './question'

const Id = v.pipe(v.string(), v.maxLength(LONGEST_ID))

/** Items without a role are tool calls, reasoning and the like, not messages. */
const Item = v.looseObject({ role: v.optional(v.string()), content: v.optional(v.unknown()) })

const Body = v.looseObject({
  ...common,
  input: v.union([v.string(), v.pipe(v.array(Item), v.minLength(1))]),
  instructions: v.nullish(v.string()),
  max_output_tokens: v.nullish(Tokens),
  conversation: v.nullish(v.union([Id, v.looseObject({ id: Id })])),
  previous_response_id: v.nullish(v.string()),
})

export interface ResponseRequest extends ModelQuestion {
  /** the earlier response that this one follows. It has to exist */
  previous?: string
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
    ...given
  } = checkBody(Body, body)
  if (conversation != null && previous != null) {
    throw new InvalidParameter(
      'Give either `conversation` or `previous_response_id`.',
      'previous_response_id',
    )
  }
  const messages =
    typeof input === 'string'
      ? [{ role: 'user', content: input }]
      : input.flatMap(({ role, content }) => (role === undefined ? [] : [{ role, content }]))
  const said = readMessages(messages, 'input')
  const { temperature, top_p, max_output_tokens: max_tokens } = given
  const place = placeOf(previous)
  const named = typeof conversation === 'string' ? conversation : (conversation?.id ?? place?.conversation)
  return {
    model,
    ...said,
    instructions: [instructions ?? '', said.instructions].filter(Boolean).join('\n\n'),
    stream: stream ?? false,
    ...(user && { user }),
    ...(named && { conversation: named }),
    ...(previous != null && { previous }),
    ...(place && { after: place.turn }),
    sampling: givenOf({ temperature, top_p, seed: undefined, max_tokens }),
  }
}

export const responseId = (conversationId: string, turn: number): string => `resp_${conversationId}.${turn}`

/** The conversation and the turn of a response. @throws InvalidParameter for an id that is not ours */
function placeOf(previous: string | null | undefined): { conversation: string; turn: number } | undefined {
  if (previous == null) return undefined
  const [, conversation, turn] = /^resp_(.{1,512})\.(\d{1,9})$/s.exec(previous) ?? []
  if (conversation === undefined) throw previousNotFound(previous)
  return { conversation, turn: Number(turn) }
}

export const previousNotFound = (id: string): InvalidParameter =>
  new InvalidParameter(
    `Previous response with id '${id}' not found.`,
    'previous_response_id',
    'previous_response_not_found',
  )
