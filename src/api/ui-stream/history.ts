/** GET /ui/ASSISTANT/CHAT/messages: the chat so far, as the client's own messages. */
import * as v from 'valibot'
import { once } from '../../lib/once'
import { textOf } from '../../lib/parts'
import { eventsOf, type Turn } from '../../turn/fold'
import { type ChatParties, openParties } from '../http/chat-names'
import { json } from '../http/response'
import type { OpenCall } from '../http/route'
import { turnsOf } from '../shared/chats'
import { UiStreamEncoder, type UiStreamShape } from './encoder'
import { messageId } from './message-id'
import { chatName } from './request'
import { type Citations, citationsOf } from './routes'

/**
 * Answers with a list for `messages` of `useChat`, oldest first: the last 100 answered turns. An unknown chat has none. The
 * running answer is not there; resuming sends it.
 */
export async function history(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  const name = chatName(call.path.chat)
  return json(name === undefined ? [] : await messagesOfChat(parties, name, citationsOf(call)))
}

/** @returns none for an unknown chat */
export async function messagesOfChat(parties: ChatParties, name: string, citations: Citations = 'parts') {
  const { turns } = await turnsOf(parties, name)
  return turns.flatMap((turn) => [
    ...questionOf(turn),
    ...(turn.answer.length === 0 ? [] : [answerOf(turn, { fields: parties.assistant, citations })]),
  ])
}

function questionOf({ conversationId: conversation_id, turn, question }: Turn) {
  const place = { conversation_id, turn }
  const text = textOf(question)
  if (text === '') return []
  return [{ id: `${messageId(place)}.q`, role: 'user', metadata: place, parts: [{ type: 'text', text }] }]
}

const StreamPart = once(() =>
  v.looseObject({
    type: v.string(),
    messageId: v.optional(v.string()),
    messageMetadata: v.optional(v.record(v.string(), v.unknown())),
    delta: v.optional(v.string()),
  }),
)

/** The message that a client makes of a turn's stream (AI SDK, "UI message stream"). */
function answerOf(turn: Turn, shape: UiStreamShape) {
  const encoder = new UiStreamEncoder(shape)
  const stream = eventsOf(turn)
    .map((event) => encoder.encode(event))
    .join('')
  const parts: Record<string, unknown>[] = []
  let metadata: Record<string, unknown> = {}
  let id = ''
  const text = (more = '') => {
    const part = parts.at(-1)
    if (part) part.text = String(part.text) + more
  }
  for (const frame of stream.split('\n\n').filter((each) => each.startsWith('data: {'))) {
    const { type, ...content } = v.parse(StreamPart(), JSON.parse(frame.slice('data: '.length)))
    metadata = { ...metadata, ...content.messageMetadata }
    if (type === 'start') id = content.messageId ?? ''
    else if (type === 'start-step') parts.push({ type: 'step-start' })
    else if (type === 'text-start') parts.push({ type: 'text', text: '', state: 'done' })
    else if (type === 'text-delta') text(content.delta)
    else if (/^(?:source|data)-/.test(type)) parts.push({ type, ...content })
  }
  return { id, role: 'assistant', metadata, parts }
}
