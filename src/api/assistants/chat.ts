/**
 * Conversations by the names that their clients give them. Chat widgets make up the id of a chat themselves; what it
 * stands for here depends on the key, the user and the assistant as well, so that nobody else's guess leads to it.
 */
import type { Access } from '../../auth/access'
import { mayContinue } from '../../conversation/ask'
import { namedConversationId } from '../../conversation/conversation-id'
import { isToldApart, isUnguessable } from '../../conversation/ownership'
import { mayBeConversation } from '../../conversation/sealed-id'
import { ApiError } from '../../errors'
import type { Assistant } from '../../registry/assistants'
import type { Asker } from '../../turn/request'
import { askerOf } from '../edge/asker'
import { findHistory, findOpenModel } from '../edge/open-model'

/** Who has a chat with whom. */
export interface ChatParties {
  env: Cloudflare.Env
  request: Request
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

/**
 * The conversation of a name. A conversation that was begun elsewhere can be gone on with by its id. A scoped key that
 * fixes one is for that one, whatever its client calls it.
 * @throws ApiError 400 for a name that anybody could guess
 */
export async function findChat(parties: ChatParties, name: string): Promise<Chat> {
  const { access, assistant } = parties
  const asker = await askerFor(parties)
  const fixed = access.embedded.conversation_id
  if (fixed !== undefined) return { conversationId: fixed, named: false }
  if (!mayName(asker, name)) {
    throw new ApiError(
      400,
      'The id of a chat must be random, of 16 characters or more, such as `crypto.randomUUID()`: others with the same key must not come upon it. Any id will do with a secret of the visitor in `X-Parley-Visitor`, or with a key that fixes the user.',
    )
  }
  if (ID.test(name) && (await isKnown(parties, asker, name))) return { conversationId: name, named: false }
  return { conversationId: await namedConversationId(asker, assistant.name, name), named: true }
}

/** The ids of conversations that a name may stand for, the likeliest first. For what changes nothing. */
export async function chatIds(parties: ChatParties, name: string): Promise<{ asker: Asker; ids: string[] }> {
  const { env, access, assistant } = parties
  const asker = await askerFor(parties)
  const fixed = access.embedded.conversation_id
  if (fixed !== undefined) return { asker, ids: [fixed] }
  if (!mayName(asker, name)) return { asker, ids: [] }
  const named = await namedConversationId(asker, assistant.name, name)
  const isId = ID.test(name) && (await mayBeConversation(env, name))
  return { asker, ids: isId ? [named, name] : [named] }
}

/** Visitors of one page share its key: where they are not told apart, a chat is only as private as its name. */
const mayName = (asker: Asker, name: string): boolean => isToldApart(asker) || isUnguessable(name)

const askerFor = ({ request, access, user }: ChatParties): Promise<Asker> =>
  askerOf({ request, accesses: [access], userId: user })

async function isKnown({ env, access, assistant }: ChatParties, asker: Asker, id: string): Promise<boolean> {
  const model = await findOpenModel(env, [access], assistant.model)
  return model !== undefined && mayContinue(env, asker, id, await findHistory(env, model))
}
