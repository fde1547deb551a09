/** Opens what the address of a chat request names: its key, its assistant and its user. */
import type { Access } from '../../auth/access'
import { DEFAULT_ASSISTANT } from '../../registry/assistants'
import { namedUser } from './admit-turn'
import { type ChatName, type ChatParties, prefetchChat } from './chat-names'
import { admitAsker, openAssistant } from './open-assistant'
import type { OpenCall } from './route'

/**
 * @param admit checks the key; by default the one in the request's headers
 * @param chat reads the chat's name from the body, for a question; called if the request has to wait for the registry
 * @returns the path's assistant, else the one that the key is bound to, else `default`
 * @throws ApiError 401, 403, 404, 429
 */
export async function openParties(
  call: OpenCall,
  {
    admit = () => admitAsker(call),
    chat,
  }: { admit?: () => Promise<Access>; chat?: () => Promise<ChatName | undefined> } = {},
): Promise<ChatParties> {
  const { env, request, record, prefetch, path, query } = call
  const access = await admit()
  const name = path.assistant ?? access.limits.assistant ?? DEFAULT_ASSISTANT
  const parties = { env, request, record, prefetch, access, user: namedUser(request, query) }
  let finding: Promise<unknown> | undefined
  const assistant = await openAssistant(call, access, name, () => {
    // A body that cannot be read is refused where it is needed.
    finding =
      chat &&
      prefetchChat(
        { ...parties, assistant: { name } },
        chat().catch(() => undefined),
      )
  }).catch(async (error) => {
    // A body that is being read must be read to its end before the answer (discardBody).
    await finding
    throw error
  })
  return { ...parties, assistant }
}
