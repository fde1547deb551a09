/** POST /agui/{assistant}: one run of an assistant as an agent. */
import { openParties } from '../edge/chat-parties'
import type { OpenCall } from '../edge/route'
import { askChat } from '../turn/chats'
import { readOwn } from '../turn/foreign'
import { chatReader } from '../turn/read'
import { streamTurn } from '../turn/stream'
import { AgUiEncoder } from './encoder'
import { readQuestion } from './request'

export async function run(call: OpenCall): Promise<Response> {
  const parties = await openParties(call)
  const { bodyText, body } = await readOwn(call.request, 'agui', parties.assistant.name)
  const { question, transcript, ...asked } = readQuestion(body)
  const { events, resume, conversationId } = await askChat(call, parties, {
    chat: asked.thread,
    question,
    transcript,
    protocol: 'agui',
    bodyText,
  })
  return streamTurn(chatReader(events, resume), new AgUiEncoder(asked, parties.assistant), {
    headers: { 'x-parley-conversation-id': conversationId },
    opensAt: 'event',
  })
}
