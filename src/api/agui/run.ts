/** POST /agui/{assistant}: one run of an assistant as an agent. */
import type { OpenCall } from '../http/route'
import { askChat, openQuestion } from '../shared/chats'
import { chatReader } from '../shared/read'
import { streamTurn } from '../shared/stream'
import { AgUiEncoder } from './encoder'
import { readQuestion, readRun } from './request'

export async function run(call: OpenCall): Promise<Response> {
  const { parties, bodyText, body } = await openQuestion(call, 'agui', (given) => ({
    name: readRun(given).thread,
  }))
  const { question, transcript, ...asked } = readQuestion(body)
  const { events, resume, conversationId } = await askChat(parties, {
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
