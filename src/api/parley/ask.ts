/** POST /conversations: a question asked directly, answered whole or as a stream. */
import { pinnedModel } from '../../auth/pins'
import { ask as askConversation } from '../../conversation/ask'
import { ApiError } from '../../errors'
import { admitTurn } from '../edge/admit-turn'
import { findHistory, findOpenModel } from '../edge/open-model'
import { eventReader } from '../turn/read'
import type { operations } from './operations'
import type { Served } from './route'
import { planSearches } from './searches'
import { answerStreaming, answerWhole } from './turn-stream'

export async function ask(served: Served<typeof operations.ask>): Promise<Response> {
  const { env, request, access, user, parameters, record, body, text } = served
  const { embedded } = access
  const question = embedded.q ?? body.question
  record.question = question
  const searches = await planSearches(env, access, record, body)
  const modelId = embedded.conversation_model_id ?? body.model ?? pinnedModel([access])
  if (modelId === undefined) throw new ApiError(400, '`model` is needed.')
  const model = await findOpenModel(env, [access], modelId)
  if (!model) throw new ApiError(404, 'Model not found')
  const historyId = await findHistory(env, model)
  const conversationId = embedded.conversation_id ?? body.conversation_id
  const stream = body.stream ?? request.headers.get('accept')?.includes('text/event-stream') ?? false

  const answering = await askConversation(
    env,
    {
      ...(conversationId !== undefined && { conversationId }),
      question,
      model,
      historyId,
      searches,
      shape: 'multi',
      stream,
      withHistory: false,
      ...(body.replaces !== undefined && { replaces: { after: body.replaces - 1 } }),
      ...(body.followups !== undefined && { followups: body.followups }),
      protocol: 'parley',
      ...(await admitTurn(
        { env, request, accesses: [access], body: text, userId: user, query: parameters },
        model,
      )),
    },
    request.signal,
  )
  const names = { 'x-parley-conversation-id': answering.conversationId }
  const read = eventReader(answering.events, answering.resume)
  return stream ? answerStreaming(read, names) : answerWhole(read, names, answering.delivery)
}
