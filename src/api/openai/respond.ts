/** POST /v1/responses */
import { deliver } from '../edge/deliver'
import type { OpenCall } from '../edge/route'
import { streamTurn, wholeTurn } from '../streamed-turn'
import { chatReader } from '../turn-events'
import { askModel } from './ask-model'
import { ResponseEncoder, responseOf } from './response-encoder'
import { previousNotFound, readResponse } from './response-request'

export async function respond(call: OpenCall): Promise<Response> {
  const { asked, assistant, conversationId, events, resume, delivery } = await askModel(
    call,
    readResponse,
    ({ previous }, chat) => {
      // A name would begin a conversation; an earlier response is in one that is there.
      if (previous !== undefined && chat?.named) throw previousNotFound(previous)
    },
  )
  const shape = {
    model: asked.model,
    created: Math.floor(call.record.started / 1000),
    fields: assistant,
    previous: asked.previous ?? null,
  }
  const headers = { 'x-parley-conversation-id': conversationId }
  const read = chatReader(events, resume)
  if (asked.stream) return streamTurn(read, new ResponseEncoder(shape), { headers, opensAt: 'text' })
  const turn = await wholeTurn(read)
  return deliver(responseOf(turn, shape), headers, delivery(turn.turn))
}
