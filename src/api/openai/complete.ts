/** POST /v1/chat/completions */
import { deliver } from '../edge/deliver'
import type { OpenCall } from '../edge/route'
import { chatReader } from '../turn/read'
import { streamTurn, wholeTurn } from '../turn/stream'
import { askModel } from './ask-model'
import { CompletionEncoder, completion } from './encoder'
import { readChatCompletion } from './request'

export async function complete(call: OpenCall): Promise<Response> {
  const { asked, assistant, conversationId, events, resume, delivery } = await askModel(
    call,
    readChatCompletion,
  )
  const shape = { model: asked.model, created: Math.floor(call.record.started / 1000), fields: assistant }
  const headers = { 'x-parley-conversation-id': conversationId }
  const read = chatReader(events, resume)
  if (asked.stream) {
    const encoder = new CompletionEncoder(shape, asked.includeUsage)
    return streamTurn(read, encoder, { headers, opensAt: 'text' })
  }
  const turn = await wholeTurn(read)
  return deliver(completion(turn, shape), headers, delivery(turn.turn))
}
