/** Questions on Parley's own routes, answered whole or as a stream. */

import { pinnedModel } from '../../auth/access'
import { ask as askTurn, chatOf } from '../../conversation/ask'
import { badRequest, modelMissing } from '../../errors'
import { contentOf } from '../../lib/parts'
import { admitTurn, askerWith } from '../http/admit-turn'
import { findHistory, findOpenModel, openAssistant } from '../http/chat-names'
import { askAssistant, partsOf, requireRoom, resumptionOf } from '../shared/assistant'
import { chatReader, eventReader } from '../shared/stream'
import { answerStreaming, answerWhole, LOG_WORDING } from './encoder'
import type { Handlers, Serving } from './route'
import { planSearches } from './searches'

/** POST /conversations: a question asked directly. */
async function ask(served: Serving<'ask'>): Promise<Response> {
  const { env, request, access, user, record, prefetch, body, text } = served
  const { embedded } = access
  const question = embedded.q ?? body.question
  record.question = question
  const modelId = embedded.conversation_model_id ?? body.model ?? pinnedModel([access])
  const collections = (body.searches ?? []).map(({ collection }) => collection)
  const conversationId = embedded.conversation_id ?? body.conversation_id
  const named = { model: modelId, collections: body.collections ?? collections }
  await prefetch.registry(named, () => void prefetch.look({ conversationId }))
  // Read beside the plan of the searches, and awaited after it, so that an error of a search comes first.
  const reading = modelId === undefined ? undefined : findOpenModel(env, [access], modelId)
  const history = reading?.then((found) => found && findHistory(env, found))
  history?.catch(() => {})
  const searches = await planSearches(env, access, record, body)
  if (modelId === undefined) throw badRequest('`model` is needed.')
  const model = await reading
  if (!model) throw modelMissing()
  const files = partsOf(body.files)
  requireRoom(files, model)
  const historyId = (await history)!
  const stream = wantsStream(request, body)

  const answering = await askTurn(
    env,
    {
      chat: chatOf(conversationId),
      question: [...contentOf(question), ...files],
      model,
      historyId,
      searches,
      onSearchError: 'go_on',
      read: { results: true },
      ...(stream && { words: LOG_WORDING }),
      ...(body.replaces !== undefined && { replaces: { after: body.replaces - 1 } }),
      ...(body.followups !== undefined && { suggests: body.followups }),
      protocol: 'parley',
      ...(await admitTurn({ env, request, record, accesses: [access], body: text, userId: user }, model)),
    },
    { prefetch, signal: request.signal },
  )
  const names = { 'x-parley-conversation-id': answering.conversationId }
  const read = eventReader(answering.events, answering.resume, answering.words)
  return stream ? answerStreaming(read, names) : answerWhole(read, names, answering.delivery)
}

/** POST /a/{assistant}/conversations: a question to an assistant. */
async function askByName(served: Serving<'askAssistant'>): Promise<Response> {
  const { env, request, access, prefetch, path, body, text } = served
  const continues = access.embedded.conversation_id ?? body.conversation_id
  const assistant = await openAssistant(served, access, path.assistant, () => {
    void prefetch.look({ conversationId: continues })
  })
  const stream = wantsStream(request, body)
  const { question = '', replaces, decisions } = body
  const goesOn = decisions && {
    ...(await resumptionOf(
      env,
      await askerWith(served, 'conversations:create'),
      continues!,
      replaces!,
      decided(decisions),
    )),
  }
  const answering = await askAssistant({
    ...served,
    assistant,
    question,
    files: partsOf(body.files),
    chat: chatOf(body.conversation_id),
    ...(replaces !== undefined && { replaces: { after: replaces - 1 } }),
    ...goesOn,
    asks: true,
    suggests: body.followups,
    labels: true,
    read: { results: true },
    words: stream ? LOG_WORDING : undefined,
    protocol: 'parley',
    bodyText: text,
  })
  const names = { 'x-parley-conversation-id': answering.conversationId }
  const read = chatReader(answering.events, answering.resume, answering.words)
  return stream ? answerStreaming(read, names) : answerWhole(read, names, answering.delivery)
}

const decided = (decisions: Record<string, boolean | { result: string; failed?: true | undefined }>) =>
  Object.fromEntries(
    Object.entries(decisions).map(([id, decision]) => [
      id,
      typeof decision === 'boolean'
        ? { allow: decision }
        : { result: decision.result, ...(decision.failed && { failed: decision.failed }) },
    ]),
  )

const wantsStream = (request: Request, { stream }: { stream?: boolean | undefined }): boolean =>
  stream ?? request.headers.get('accept')?.includes('text/event-stream') ?? false

export const questions = { ask, askAssistant: askByName } satisfies Partial<Handlers>
