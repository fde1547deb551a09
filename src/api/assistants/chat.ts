/**
 * Conversations by the names that their clients give them. Chat widgets make up the id of a chat themselves; what it
 * stands for here depends on the key, the user and the assistant as well, so that nobody else's guess leads to it.
 */
import type { Access } from '../../auth/access'
import { identify } from '../../auth/pins'
import { mayContinue } from '../../conversation/ask'
import type { Assistant } from '../../conversation/assistants'
import { namedConversationId } from '../../conversation/conversation-id'
import type { Asker } from '../../conversation/request'
import { mayBeConversation } from '../../conversation/sealed-id'
import { ApiError } from '../../errors'
import { findHistory, findOpenModel } from '../edge/open-model'

/** Who has a chat with whom. */
export interface ChatParties {
  env: Cloudflare.Env
  access: Access
  assistant: Assistant
  /** the user that the request names */
  user: string | undefined
}

export interface Chat {
  conversationId: string
  /** whether the conversation begins where it has no history */
  named: boolean
}

/** A conversation's own id, as opposed to a name for it. */
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Visitors of one page share its key: among them a chat is only as private as its name. Characters. */
const SHORTEST_NAME = 7

/**
 * The conversation of a name. A conversation that was begun elsewhere can be gone on with by its id. A scoped key that
 * fixes one is for that one, whatever its client calls it.
 * @throws ApiError 400 for a name that anybody could guess
 */
export async function findChat(parties: ChatParties, name: string): Promise<Chat> {
  const { access, assistant, user } = parties
  const asker = identify([access], user)
  const fixed = access.embedded.conversation_id
  if (fixed !== undefined) return { conversationId: fixed, named: false }
  if (asker.owner !== 'admin' && asker.userId === '' && name.length < SHORTEST_NAME) {
    throw new ApiError(
      400,
      `The id of a chat must have ${SHORTEST_NAME} characters or more: whoever has the same key and guesses it reads along.`,
    )
  }
  if (ID.test(name) && (await isKnown(parties, asker, name))) return { conversationId: name, named: false }
  return { conversationId: await namedConversationId(asker, assistant.name, name), named: true }
}

/** The ids of conversations that a name may stand for, the likeliest first. For what changes nothing. */
export async function chatIds(
  { env, access, assistant, user }: ChatParties,
  name: string,
): Promise<{ asker: Asker; ids: string[] }> {
  const asker = identify([access], user)
  const fixed = access.embedded.conversation_id
  if (fixed !== undefined) return { asker, ids: [fixed] }
  const named = await namedConversationId(asker, assistant.name, name)
  const isId = ID.test(name) && (await mayBeConversation(env, name))
  return { asker, ids: isId ? [named, name] : [named] }
}

async function isKnown({ env, access, assistant }: ChatParties, asker: Asker, id: string): Promise<boolean> {
  const model = await findOpenModel(env, [access], assistant.model)
  return model !== undefined && mayContinue(env, asker, id, await findHistory(env, model))
}
