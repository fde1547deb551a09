/** POST /conversations: a question asked directly, answered whole or as a stream. */
import { ask as askConversation } from '../../conversation/ask'
import { findModel } from '../../conversation/models'
import { ApiError } from '../../errors'
import { eventReader } from '../turn-events'
import { findHistory } from '../typesense/conversations'
import { askerOf } from './asker'
import { answerWhole, streamEvents } from './event-stream'
import { operations } from './operations'
import type { Served } from './route'
import { planSearches } from './searches'

export async function ask({
  env,
  request,
  access,
  headers,
  body,
}: Served<typeof operations.ask>): Promise<Response> {
  const searches = await planSearches(env, access, operations.ask.actions, body)
  const { embedded } = access
  const model = await findModel(env, embedded.conversation_model_id ?? body.model)
  if (!model) throw new ApiError(404, 'Model not found')
  const historyId = await findHistory(env, model)
  const asker = askerOf(access, headers['x-typesense-user-id'])
  const idempotencyKey = headers['idempotency-key']
  const conversationId = embedded.conversation_id ?? body.conversation_id
  const stream = body.stream ?? request.headers.get('accept')?.includes('text/event-stream') ?? false

  const answering = await askConversation(env, {
    ...(conversationId !== undefined && { conversationId }),
    question: embedded.q ?? body.question,
    model,
    historyId,
    searches,
    shape: 'multi',
    stream,
    withHistory: false,
    asker,
    protocol: 'parley',
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  })
  const names = { 'x-parley-conversation-id': answering.conversationId }
  const read = eventReader(answering.events)
  return stream ? streamEvents(read, names) : answerWhole(read, names)
}
