/** POST /v1/chat/completions */
import { deliver } from '../http/deliver'
import type { OpenCall } from '../http/route'
import { chatReader } from '../shared/read'
import { streamTurn, wholeTurn } from '../shared/stream'
import { askModel } from './ask-model'
import { CompletionEncoder, chunkWording, completion } from './encoder'
import { readChatCompletion } from './request'

export async function complete(call: OpenCall): Promise<Response> {
  const created = Math.floor(call.record.started / 1000)
  const { asked, assistant, headers, ignored, events, words, resume, delivery } = await askModel(
    call,
    readChatCompletion,
    ({ model, includeUsage }) => chunkWording({ model, created }, includeUsage),
  )
  const shape = { model: asked.model, created, fields: assistant, unstored: asked.unstored, ignored }
  const read = chatReader(events, resume, words)
  if (asked.stream) {
    const encoder = new CompletionEncoder(shape, asked.includeUsage)
    return streamTurn(read, encoder, { headers, opensAt: 'text' })
  }
  const turn = await wholeTurn(read)
  return deliver(completion(turn, shape), headers, delivery(turn.turn))
}
