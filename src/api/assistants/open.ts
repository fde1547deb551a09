/** From a name to an assistant that its asker may ask. */
import { type Access, ASK_ACTIONS, mayAskAssistant } from '../../auth/access'
import { admit, requireOrigin } from '../../auth/admit'
import { mayAsk } from '../../auth/pins'
import { type Assistant, assistantNotFound, findAssistant, searchesOf } from '../../registry/assistants'
import { presentedKey } from '../edge/presented-key'
import type { RequestRecord } from '../edge/request-log'

/** Lets a request pass whose key may ask some assistant; which one is `openAssistant`'s to say. @throws ApiError 401, 429 */
export function admitAsker(env: Cloudflare.Env, request: Request, record: RequestRecord): Promise<Access> {
  record.action = 'conversations:create'
  return admit(env, presentedKey(request), ASK_ACTIONS, undefined, record)
}

/**
 * An assistant with the searches that the key leaves of it: a scoped key that names a collection is for that one
 * alone.
 * @returns undefined for one that the key may not ask
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
 * An assistant to be asked.
 * @param record of the request
 * @throws ApiError 404 for an unknown one, and for one that is closed, in the same words; 403 for a page of an origin
 *   that it does not list
 */
export async function openAssistant(
  env: Cloudflare.Env,
  access: Access,
  name: string,
  record: RequestRecord,
): Promise<Assistant> {
  const assistant = await findAssistant(env, name)
  const open = assistant && openTo(access, assistant)
  if (!open) throw assistantNotFound()
  requireOrigin('This assistant', open.allowed_origins, record)
  return open
}
