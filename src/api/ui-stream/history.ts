/** GET /ui/ASSISTANT/CHAT/messages: the chat so far, as the client's own messages. */
import { getConversation } from '../../conversation/conversations'
import { ApiError } from '../../errors'
import type { RecordedTurn } from '../../turn/fold'
import { chatIds } from '../edge/chat-names'
import { json } from '../edge/response'
import type { OpenCall } from '../edge/route'
import { citationOf } from './encoder'
import { messageId } from './message-id'
import { chatName } from './request'
import { partiesOf } from './routes'

/**
 * Answers with a list for `messages` of `useChat`, oldest first: the last 100 answered turns. An unknown chat has none. The
 * running answer is not there; resuming sends it.
 */
export async function history(call: OpenCall): Promise<Response> {
  const parties = await partiesOf(call)
  const name = chatName(call.path.chat)
  const { asker, ids } = name === undefined ? { asker: undefined, ids: [] } : await chatIds(parties, name)
  for (const id of ids) {
    const found = await getConversation(call.env, asker!, id).catch(unlessUnknown)
    if (found) return json(found.turns.flatMap((turn) => messagesOf(id, turn)))
  }
  return json([])
}

function unlessUnknown(error: unknown): undefined {
  if (!(error instanceof ApiError) || error.status !== 404) throw error
}

/** A question and its answer. What the answer's parts were is in its stream alone: here it is text. */
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
