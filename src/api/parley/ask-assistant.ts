/** POST /a/{assistant}/conversations: a question to an assistant, answered whole or as a stream. */
import { askAssistant as ask } from '../assistants/ask'
import { openAssistant } from '../assistants/open'
import { chatReader } from '../turn/read'
import type { operations } from './operations'
import type { Served } from './route'
import { answerStreaming, answerWhole } from './turn-stream'

export async function askAssistant(served: Served<typeof operations.askAssistant>): Promise<Response> {
  const { env, request, access, user, record, path, body, text } = served
  const assistant = await openAssistant(env, access, path.assistant, record)
  const stream = body.stream ?? request.headers.get('accept')?.includes('text/event-stream') ?? false
  const answering = await ask({
    env,
    request,
    access,
    record,
    assistant,
    question: body.question,
    conversationId: body.conversation_id,
    ...(body.replaces !== undefined && { replaces: { after: body.replaces - 1 } }),
    followups: body.followups,
    labels: true,
    stream,
    protocol: 'parley',
    user,
    bodyText: text,
  })
  const names = { 'x-parley-conversation-id': answering.conversationId }
  const read = chatReader(answering.events)
  return stream ? answerStreaming(read, names) : answerWhole(read, names, answering.delivery)
}
