/**
 * Reads the body that chat widgets send (contract 3.2), in any of their shapes. Pure.
 *
 *     {id, messages: [{id, role, parts: [{type: 'text', text}]}], trigger, messageId}   AI SDK, InstantSearch
 *     {id, message: {…}}                                                                AI SDK, trimmed
 *     {threadId, messages: [{role, content: [{type: 'text', text}]}]}                   assistant-ui
 *     {conversation_id, messages: [{role, content: '…'}]}                               plain
 *     {prompt: '…'}                                                                     useCompletion
 */
import * as v from 'valibot'
import { badRequest } from '../../errors'
import { once } from '../../lib/once'
import type { Decision } from '../../turn/request'
import { shaped } from '../http/body'
import { questionIn, transcriptIn } from '../shared/foreign'

const LONGEST_ID = 512

const Message = once(() =>
  v.looseObject({
    // Ignore anything but an id that Parley made.
    id: v.fallback(v.optional(v.string()), undefined),
    role: v.string(),
    parts: v.optional(v.array(v.unknown())),
    content: v.optional(v.unknown()),
  }),
)
type Message = v.InferOutput<ReturnType<typeof Message>>

const Name = once(() => v.nullish(v.pipe(v.string(), v.maxLength(LONGEST_ID))))

const Body = once(() =>
  v.looseObject({
    id: Name(),
    threadId: Name(),
    conversation_id: Name(),
    messages: v.optional(v.array(Message())),
    message: v.optional(Message()),
    prompt: v.optional(v.string()),
    trigger: v.optional(v.string()),
    messageId: v.nullish(v.string()),
    context: v.optional(v.unknown()),
  }),
)

/** The part of a page's context that is for the assistant. Other clients use the property for other things. */
const Context = once(() => v.object({ overrides: v.record(v.string(), v.unknown()) }))

/** @param body parsed JSON @throws ApiError 400 that names the place of the first fault */
export function readUiRequest(body: unknown) {
  const given = shaped(Body(), body, null)
  const { id, threadId, conversation_id, messages, prompt, trigger, messageId, context } = given
  const message = given.message ?? (prompt === undefined ? undefined : { role: 'user', content: prompt })
  const said = message ? [message as Message] : [...(messages ?? [])]
  const again = trigger === 'regenerate-message'
  // Some clients leave the answer to be regenerated in their transcript.
  while (again && said.at(-1)?.role === 'assistant') said.pop()
  const asked = said.pop()
  const decided = asked?.role === 'assistant' ? decisionsIn(asked) : {}
  const isDecided = Object.keys(decided).length > 0
  if (asked?.role !== 'user' && !isDecided) {
    throw badRequest('The last of `messages` must be the message of a `user`: the question.')
  }
  const question = asked && !isDecided ? questionIn(withContent(asked)) : ''
  const edits = messageId != null && messageId === asked?.id && !isDecided
  const chat = chatName(id ?? threadId ?? conversation_id ?? undefined)
  const held = said.findLast(({ role, id }) => role === 'assistant' && id)?.id
  return {
    /** the client's own name for the chat */
    ...(chat !== undefined && { chat }),
    question,
    /** the answer that waited for what is decided now */
    ...(isDecided && { goesOn: { id: asked?.id, decided } }),
    /** the last answer in the transcript, by its id */
    ...(held && { held }),
    /** the request does not show whether it asks for another answer */
    ...(messages && !trigger && { untold: true }),
    /** changes of the assistant for one turn, by the names of the AI Chat Protocol */
    overrides: v.is(Context(), context) ? context.overrides : {},
    transcript: transcriptIn(said.map(withContent)),
    ...((again || edits) && {
      /** present if the new answer replaces earlier ones: the client's hints about their place */
      rewrites: {
        /** the message to regenerate, or the question that was edited */
        ...(messageId != null && { messageId }),
        /** ids of the assistant messages before the question, the last one first */
        answers: said.flatMap(({ role, id }) => (role === 'assistant' && id ? [id] : [])).reverse(),
        /** whether certainly nothing came before the question */
        first: messages !== undefined && edits && said.every(({ role }) => role === 'system'),
      },
    }),
  }
}

/** A part of a message that is a call of a tool, once its user or its page has replied. */
const DecidedPart = once(() =>
  v.variant('state', [
    v.looseObject({
      state: v.literal('approval-responded'),
      toolCallId: v.string(),
      approval: v.looseObject({ approved: v.boolean() }),
    }),
    v.looseObject({ state: v.literal('output-available'), toolCallId: v.string(), output: v.unknown() }),
    v.looseObject({ state: v.literal('output-error'), toolCallId: v.string(), errorText: v.string() }),
  ]),
)

/** What a message says of calls that waited, and of earlier ones. */
function decisionsIn({ parts = [] }: Message): Record<string, Decision> {
  return Object.fromEntries(
    parts.flatMap((part): [string, Decision][] => {
      if (!v.is(DecidedPart(), part)) return []
      const { toolCallId: id } = part
      if (part.state === 'approval-responded') return [[id, { allow: part.approval.approved }]]
      if (part.state === 'output-error') return [[id, { result: part.errorText, failed: true }]]
      const { output } = part
      return [[id, { result: typeof output === 'string' ? output : JSON.stringify(output ?? null) }]]
    }),
  )
}

/** Whether the client sends its whole chat, not the last message alone. @param body that `readUiRequest` took */
export function sendsWholeChat(body: unknown): boolean {
  const { messages, message, prompt } = body as Record<string, unknown>
  return messages !== undefined && message === undefined && prompt === undefined
}

/** Ignores a library's default name, which every unnamed chat gets. */
export const chatName = (id: string | undefined): string | undefined =>
  id === undefined || id === '' || /^_*default(_?thread)?(_?id)?_*$/i.test(id) ? undefined : id

const withContent = ({ role, parts, content }: Message) => ({ role, content: parts ?? content })

/**
 * The last turn to keep when a question is answered again, by the client's ids; 0: none.
 * @returns undefined if the ids do not say
 */
export function lastKeptTurn(
  { messageId, answers, first }: NonNullable<ReturnType<typeof readUiRequest>['rewrites']>,
  conversationId: string,
): number | undefined {
  const again = messageId === undefined ? undefined : turnOf(messageId, conversationId)
  if (again !== undefined) return again - 1
  for (const id of answers) {
    const turn = turnOf(id, conversationId)
    if (turn !== undefined) return turn
  }
  return first ? 0 : undefined
}

// =============================================================================
// Ids of assistant messages. Each names its turn, so that a client's transcript says where in the conversation the client
// is.

/** `<conversation id>.<turn>` */
export const messageId = (place: { conversation_id: string; turn: number }): string =>
  `${place.conversation_id}.${place.turn}`

/** Where the turn of a message is; undefined for a message that Parley did not write. */
export function placeOfMessage(messageId: string): { conversationId: string; turn: number } | undefined {
  const conversationId = messageId.slice(0, messageId.lastIndexOf('.'))
  const turn = turnOf(messageId, conversationId)
  return conversationId === '' || turn === undefined ? undefined : { conversationId, turn }
}

/** The turn of a message of this conversation; undefined for any other message. */
function turnOf(messageId: string, conversationId: string): number | undefined {
  const prefix = `${conversationId}.`
  if (!messageId.startsWith(prefix)) return undefined
  const turn = messageId.slice(prefix.length)
  return /^\d{1,9}$/.test(turn) ? Number(turn) : undefined
}
