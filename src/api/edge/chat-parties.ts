/** Opens what the address of a chat request names: its key, its assistant and its user. */
import type { Access } from '../../auth/access'
import { DEFAULT_ASSISTANT } from '../../registry/assistants'
import { namedUser } from './admit-turn'
import type { ChatParties } from './chat-names'
import { admitAsker, openAssistant } from './open-assistant'
import type { OpenCall } from './route'

/**
 * @param admit checks the key; by default the one in the request's headers
 * @returns the path's assistant, else the one that the key is bound to, else `default`
 * @throws ApiError 401, 403, 404, 429
 */
export async function openParties(
  { env, request, record, path, query }: OpenCall,
  admit: () => Promise<Access> = () => admitAsker(env, request, record),
): Promise<ChatParties> {
  const access = await admit()
  const name = path.assistant ?? access.limits.assistant ?? DEFAULT_ASSISTANT
  const assistant = await openAssistant(env, access, name, record)
  return { env, request, access, assistant, user: namedUser(request, query) }
}
