/** Finds the assistants and conversation models that a key may ask. */

import { type Access, ASK_ACTIONS, mayAsk, mayAskAssistant } from '../../auth/access'
import { admit, requireOrigin } from '../../auth/admit'
import { ApiError } from '../../errors'
import { matchesOrigin } from '../../lib/origins'
import type { ConversationModelConfig } from '../../models/language-model'
import { type Assistant, assistantNotFound, findAssistant, searchesOf } from '../../registry/assistants'
import { findForQuestion } from '../../registry/collections'
import { findModel } from '../../registry/models'
import type { FindResource } from '../../registry/resources'
import { presentedKey } from './cors'
import type { RequestRecord } from './request-log'
import type { OpenCall } from './router'

/** Admits a request whose key may ask any assistant. `openAssistant` checks which. @throws ApiError 401, 429 */
export function admitAsker({
  env,
  request,
  record,
  prefetch,
}: Pick<OpenCall, 'env' | 'request' | 'record' | 'prefetch'>): Promise<Access> {
  record.action = 'conversations:create'
  return admit(env, presentedKey(request), ASK_ACTIONS, undefined, record, prefetch)
}

/**
 * The assistant with the searches that the key allows: a scoped key that names a collection allows only that one.
 * @returns undefined if the key may not ask it
 */
export function openTo(access: Access, assistant: Assistant): Assistant | undefined {
  const { collection: only, conversation_model_id: model } = access.embedded
  const searches = searchesOf(assistant).filter(({ collection }) => collection === (only ?? collection))
  const isOpen =
    searches.length > 0 &&
    mayAsk([access], assistant.model) &&
    (model ?? assistant.model) === assistant.model &&
    mayAskAssistant(
      access,
      assistant.name,
      searches.map(({ collection }) => collection),
    )
  if (!isOpen) return undefined
  const { collections: _, ...rest } = assistant
  return { ...rest, searches }
}

/**
 * Like `openTo`, for lists. Returns undefined for a page whose origin the assistant does not list.
 * @param record of the request
 */
export function openHere(
  access: Access,
  assistant: Assistant,
  { origin }: RequestRecord,
): Assistant | undefined {
  const { allowed_origins: allowed } = assistant
  const isListed = allowed === undefined || origin === undefined || matchesOrigin(allowed, origin)
  return isListed ? openTo(access, assistant) : undefined
}

/** @param assistant one that is open to the key @throws ApiError 403 for a page whose origin it does not list */
export function requireListed({ allowed_origins: allowed }: Assistant, record: RequestRecord): void {
  requireOrigin('This assistant', allowed, record)
}

/**
 * An assistant to be asked.
 * @param call the request
 * @param meanwhile called if the request has to wait for the registry
 * @throws ApiError 404 if it is unknown, and in the same words if the key may not ask it; 403 for a page whose origin it
 *   does not list
 */
export async function openAssistant(
  { env, record, prefetch }: Pick<OpenCall, 'env' | 'record' | 'prefetch'>,
  access: Access,
  name: string,
  meanwhile?: () => void,
): Promise<Assistant> {
  await prefetch.registry({ assistant: name }, meanwhile)
  const assistant = await findAssistant(env, name)
  const open = assistant && openTo(access, assistant)
  if (!open) throw assistantNotFound()
  requireListed(open, record)
  return open
}

/** @returns undefined if the model is unknown or the key may not ask it: callers cannot tell which */
export const findOpenModel = async (
  env: Cloudflare.Env,
  accesses: readonly Access[],
  id: string,
  find?: FindResource,
): Promise<ConversationModelConfig | undefined> =>
  mayAsk(accesses, id) ? findModel(env, id, find) : undefined

export async function findHistory(env: Cloudflare.Env, model: ConversationModelConfig): Promise<string> {
  try {
    return (await findForQuestion(env, model.history_collection)).objectId
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new ApiError(
      400,
      `The history collection \`${model.history_collection}\` of the conversation model does not exist any more.`,
      undefined,
      true,
    )
  }
}
