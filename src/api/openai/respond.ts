/** POST /v1/responses */
import { handleOf, idIn } from '../../conversation/conversation-id'
import { ApiError } from '../../errors'
import { deliver } from '../http/deliver'
import type { OpenCall } from '../http/route'
import { chatReader } from '../shared/read'
import { streamTurn, wholeTurn } from '../shared/stream'
import { askModel } from './ask-model'
import type { InvalidParameter } from './question'
import { DELTA_WORDING, ResponseEncoder, responseOf } from './response-encoder'
import { itemNotFound, previousNotFound, readResponse } from './response-request'

export async function respond(call: OpenCall): Promise<Response> {
  let missing: InvalidParameter | undefined
  const answering = await askModel(
    call,
    readResponse,
    () => DELTA_WORDING,
    ({ previous, referred, conversation }, chat) => {
      if (previous !== undefined) missing = previousNotFound(previous)
      else if (referred !== undefined) missing = itemNotFound(referred)
      // A name could begin a new conversation. An earlier response has to be in an existing one.
      const isThere =
        chat?.named === false && conversation !== undefined && chat.conversationId === idIn(conversation)
      if (missing !== undefined && !isThere) throw missing
    },
  ).catch((error) => {
    const isMissing =
      error instanceof ApiError && (error.code === 'unknown_turn' || error.code === 'unknown_conversation')
    throw (isMissing && missing) || error
  })
  const { asked, assistant, headers, ignored, conversationId, events, words, resume, delivery } = answering
  const shape = {
    model: asked.model,
    created: Math.floor(call.record.started / 1000),
    fields: assistant,
    unstored: asked.unstored,
    ignored,
    previous: asked.previous ?? null,
    // A seal would vouch for a conversation that there is not.
    handle: asked.unstored ? conversationId : await handleOf(call.env, conversationId),
  }
  const read = chatReader(events, resume, words)
  if (asked.stream) return streamTurn(read, new ResponseEncoder(shape), { headers, opensAt: 'text' })
  const turn = await wholeTurn(read)
  return deliver(responseOf(turn, shape), headers, delivery(turn.turn))
}
