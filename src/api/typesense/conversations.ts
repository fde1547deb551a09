/**
 * Searches with `conversation=true` (contract 1.6 and 1.7). Checks the request in the order and the words of the contract,
 * then asks the Conversation object.
 */

import { pinnedModel } from '../../auth/access'
import { ask, chatOf, mayContinue } from '../../conversation/ask'
import type { Prefetch } from '../../conversation/prefetch'
import { type ApiError, badRequest, modelMissing } from '../../errors'
import { contentOf } from '../../lib/parts'
import type { ConversationModelConfig } from '../../models/language-model'
import type { SearchParameters } from '../../search/types'
import type { PlannedSearch } from '../../turn/request'
import { admitTurn, askerOf, namedUser, type TurnCaller } from '../http/admit-turn'
import { isTrue, listed } from '../http/body'
import { findHistory, findOpenModel } from '../http/chat-names'
import { failureOf } from '../http/deliver'
import { planForQuestion } from '../http/plan'
import type { Call } from '../http/router'
import { type AnswerShape, answerStreaming, answerWhole, STREAM_WORDING } from './encoder'
import { type Shape, toldError } from './errors'

/** A request for a conversation, its parameters checked. */
export interface Conversing {
  question: string
  model: ConversationModelConfig
  /** id of the object that holds the model's history collection */
  historyId: string
  /** absent: a new conversation */
  conversationId?: string
  stream: boolean
}

/** The request that asks, and what was read ahead for it. */
type ConversationCaller = TurnCaller & { prefetch: Prefetch }

/** No id is longer than this: longer ones are not looked up. */
const LONGEST_ID = 512

/** GET search with conversation=true. @throws ApiError */
export async function converseOnce(
  { env, request, access, record, prefetch }: Call,
  collection: string,
  query: SearchParameters,
): Promise<Response> {
  const accesses = [access]
  const modelId = query.conversation_model_id || pinnedModel(accesses)
  if (!modelId) {
    throw badRequest('Conversation is enabled but no conversation model ID is provided.')
  }
  // Read before, unless the key names the model or another collection.
  await prefetch.registry(
    { model: modelId, collections: [collection] },
    () => void prefetch.look({ conversationId: query.conversation_id }),
  )
  const model = await findOpenModel(env, accesses, modelId)
  if (!model) throw modelMissing(400)
  if (isOverlong(query.conversation_id)) throw badRequest('Conversation not found')
  const [historyId, search] = await Promise.all([
    findHistory(env, model),
    planForQuestion(env, access, collection, query),
  ])
  const conversing: Conversing = {
    question: query.q ?? '',
    model,
    historyId,
    stream: isTrue(query.conversation_stream),
    ...(query.conversation_id ? { conversationId: query.conversation_id } : {}),
  }
  const caller = { env, request, record, prefetch, accesses, body: '', userId: namedUser(request, query) }
  return converse(caller, conversing, 'single', [search], showsHistory(query))
}

/**
 * Checks the conversation's parameters of a multi_search. This comes before its body is read.
 *
 * @param query the parameters of the query string, overridden by those of scoped keys
 * @param collections that the searches name; they are read with the model
 * @returns undefined when there is no conversation
 * @throws ApiError 400
 */
export async function checkConversation(
  { env, accesses, prefetch }: Pick<ConversationCaller, 'env' | 'accesses' | 'prefetch'>,
  query: SearchParameters,
  isUnion: boolean,
  collections: string[],
): Promise<Conversing | undefined> {
  const conversationId = query.conversation_id
  if (!isTrue(query.conversation) || isUnion) {
    if (conversationId === undefined) return undefined
    throw badRequest('`conversation_id` can only be used if `conversation` is enabled.')
  }
  if (query.q === undefined) {
    throw badRequest(
      '`q` parameter has to be common for all searches if conversation is enabled. Please set `q` as a query parameter in the request, instead of inside the POST body',
    )
  }
  const modelId = query.conversation_model_id ?? pinnedModel(accesses)
  if (modelId === undefined) {
    throw badRequest('`conversation_model_id` is needed if conversation is enabled.')
  }
  await prefetch.registry({ model: modelId, collections }, () => void prefetch.look({ conversationId }))
  const model = await findOpenModel(env, accesses, modelId)
  if (!model) throw badRequest('`conversation_model_id` is invalid.')
  if (conversationId === '' || isOverlong(conversationId)) throw invalidId()
  return {
    question: query.q,
    model,
    historyId: await findHistory(env, model),
    stream: isTrue(query.conversation_stream),
    ...(conversationId === undefined ? {} : { conversationId }),
  }
}

/**
 * Checks that a multi_search's conversation exists and is open to its asker. The turn checks that too. This is for requests
 * with another fault, because an unknown conversation is reported before it.
 *
 * @throws ApiError 400
 */
export async function requireConversation(caller: TurnCaller, conversing: Conversing): Promise<void> {
  const { conversationId, historyId } = conversing
  if (conversationId === undefined) return
  const asker = await askerOf(caller)
  if (!(await mayContinue(caller.env, asker, conversationId, historyId))) throw invalidId()
}

/** Runs the turn and answers it. @throws ApiError in the words of the route */
export async function converse(
  caller: ConversationCaller,
  conversing: Conversing,
  shape: Shape,
  searches: PlannedSearch[],
  withHistory: boolean,
): Promise<Response> {
  try {
    const { question, model, historyId, stream } = conversing
    const { conversationId, events, words, resume, delivery } = await ask(
      caller.env,
      {
        chat: chatOf(conversing.conversationId),
        question: contentOf(question),
        model,
        historyId,
        searches,
        onSearchError: shape === 'single' ? 'fail' : 'go_on',
        read: { results: true, history: withHistory },
        ...(stream && { words: STREAM_WORDING }),
        protocol: 'typesense',
        ...(await admitTurn(caller, model)),
      },
      { prefetch: caller.prefetch, signal: caller.request.signal },
    )
    const answer: AnswerShape = { conversationId, question, shape, ttl: model.ttl, withHistory }
    return await (stream
      ? answerStreaming(events, answer, resume, words)
      : answerWhole(events, answer, delivery, {
          signal: caller.request.signal,
          resume,
          failed: (error) => failureOf(error, caller.record),
        }))
  } catch (error) {
    throw toldError(error, shape)
  }
}

/** Whether the answer includes the conversation's history. @param parameters with `exclude_fields` */
export const showsHistory = (parameters: SearchParameters): boolean =>
  !listed(parameters.exclude_fields).includes('conversation_history')

/** Whether a request's own parameters ask for a conversation. */
export const isConversing = ({ conversation }: SearchParameters): boolean => isTrue(conversation)

const isOverlong = (id: string | undefined): boolean => (id?.length ?? 0) > LONGEST_ID

const invalidId = (): ApiError => badRequest('`conversation_id` is invalid.')
