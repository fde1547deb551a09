/** GET /ui/ASSISTANT/CHAT/messages: the chat so far, as the client's own messages. */
import type { RecordedTurn } from '../../turn/fold'
import type { ChatParties } from '../edge/chat-names'
import { openParties } from '../edge/chat-parties'
import { json } from '../edge/response'
import type { OpenCall } from '../edge/route'
import { turnsOf } from '../turn/chats'
import { citationOf } from './encoder'
import { messageId } from './message-id'
import { chatName } from './request'

/**
 * Answers with a list for `messages` of `useChat`, oldest first: the last 100 answered turns. An unknown chat has none. The
 * running answer is not there; resuming sends it.
 */
export async function history(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  const name = chatName(call.path.chat)
  return json(name === undefined ? [] : await messagesOfChat(parties, name))
}

/** @returns none for an unknown chat */
export async function messagesOfChat(parties: ChatParties, name: string) {
  const { conversationId, turns } = await turnsOf(parties, name)
  return turns.flatMap((turn) => messagesOf(conversationId, turn))
}

/** A question and its answer. Only the stream has the parts of an answer; here it is text. */
function messagesOf(id: string, turn: RecordedTurn) {
  const { question, answer, citations, followups = [], usage, timings, finish_reason, turn: number } = turn
  const place = { conversation_id: id, turn: number }
  const text = (said: string) => ({ type: 'text', text: said })
  const metadata = { ...place, finish_reason, usage, timings, citations: citations.map(citationOf) }
  return [
    ...(question === ''
      ? []
      : [{ id: `${messageId(place)}.q`, role: 'user', metadata: place, parts: [text(question)] }]),
    ...(answer === ''
      ? []
      : [
          {
            id: messageId(place),
            role: 'assistant',
            metadata,
            parts: [
              { type: 'step-start' },
              { ...text(answer), state: 'done' },
              ...(followups.length > 0
                ? [{ type: 'data-suggestions', data: { suggestions: followups } }]
                : []),
            ],
          },
        ]),
  ]
}
