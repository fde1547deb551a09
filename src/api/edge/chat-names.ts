/**
 * Finds conversations by the ids that clients choose. Chat widgets make up the id of a chat. Here it is a name: the
 * conversation's id is a digest of the name with the key, the user and the assistant, so that nobody else can guess it.
 */
import type { Access } from '../../auth/access'
import { mayContinue } from '../../conversation/ask'
import { namedConversationId } from '../../conversation/conversation-id'
import { storedMessages } from '../../conversation/items'
import { begunOf } from '../../conversation/memories'
import { openRow } from '../../conversation/open-row'
import { isToldApart, isUnguessable } from '../../conversation/ownership'
import { idOfHandle, isSealed, mayBeConversation } from '../../conversation/sealed-id'
import { ApiError } from '../../errors'
import type { Assistant } from '../../registry/assistants'
import type { Asker, Begun } from '../../turn/request'
import { type TranscriptMessage, transcriptOf } from '../../turn/transcript'
import { askerOf } from './asker'
import { findHistory, findOpenModel } from './open-model'

/** Who chats, and with which assistant. */
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
  /** true if a conversation without history begins */
  named: boolean
  /** true if this server gave the id out: its first answer may be running */
  vouched?: boolean
  /** for a conversation that was opened before its first question: how it began, and messages added since */
  begun?: Begun
  transcript?: TranscriptMessage[]
}

/** A conversation's own id, not a name. */
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Whether a name has the form of a conversation's own id. */
export const isConversationId = (name: string): boolean => ID.test(name)

/**
 * The conversation of a name. A conversation that began on another protocol can be continued by its id. A scoped key that
 * fixes a conversation always leads to that one.
 * @throws ApiError 400 for a name that is easy to guess
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
  const ours = await idOfHandle(parties.env, name)
  if (ours !== undefined) return { conversationId: ours, named: false, vouched: true }
  if (ID.test(name)) {
    if (await isKnown(parties, asker, name)) return { conversationId: name, named: false }
    const opened = await openedChat(parties.env, asker, name)
    if (opened) return opened
  }
  return { conversationId: await namedConversationId(asker, assistant.name, name), named: true }
}

/** The ids that a name may stand for, the likeliest first. For reading and stopping. */
export async function chatIds(parties: ChatParties, name: string): Promise<{ asker: Asker; ids: string[] }> {
  const { env, access, assistant } = parties
  const asker = await askerFor(parties)
  const fixed = access.embedded.conversation_id
  if (fixed !== undefined) return { asker, ids: [fixed] }
  if (!mayName(asker, name)) return { asker, ids: [] }
  const ours = await idOfHandle(env, name)
  if (ours !== undefined) return { asker, ids: [ours] }
  const named = await namedConversationId(asker, assistant.name, name)
  const isId = ID.test(name) && (await mayBeConversation(env, name))
  return { asker, ids: isId ? [named, name] : [named] }
}

/** Visitors of a page share its key. If nothing else tells them apart, a chat is only as private as its name. */
const mayName = (asker: Asker, name: string): boolean => isToldApart(asker) || isUnguessable(name)

const askerFor = ({ request, access, user }: ChatParties): Promise<Asker> =>
  askerOf({ request, accesses: [access], userId: user })

async function isKnown({ env, access, assistant }: ChatParties, asker: Asker, id: string): Promise<boolean> {
  const model = await findOpenModel(env, [access], assistant.model)
  return model !== undefined && mayContinue(env, asker, id, await findHistory(env, model))
}

/**
 * A conversation that was opened, and not asked in yet. Messages told to it may be in the history of another assistant:
 * this one gets them as a transcript.
 */
async function openedChat(env: Cloudflare.Env, asker: Asker, id: string): Promise<Chat | undefined> {
  if (!(await isSealed(env, id))) return undefined
  const row = await openRow(env, asker, id)
  if (typeof row === 'string' || row.details === null) return undefined
  const transcript = transcriptOf(await storedMessages(env, row))
  return {
    conversationId: id,
    named: true,
    begun: begunOf(row),
    ...(transcript.length > 0 && { transcript }),
  }
}
