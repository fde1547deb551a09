/**
 * Finds conversations by the ids that clients choose. Chat widgets make up the id of a chat. Here it is a name: the
 * conversation's id is a digest of the name with the key, the user and the assistant, so that nobody else can guess it.
 */
import type { Access } from '../../auth/access'
import { mayContinue } from '../../conversation/ask'
import { namedConversationId } from '../../conversation/conversation-id'
import type { Seen } from '../../conversation/conversation-object'
import { storedMessages } from '../../conversation/items'
import { lookBackAhead } from '../../conversation/look-back-ahead'
import { begunOf } from '../../conversation/memories'
import { openRow } from '../../conversation/open-row'
import { isToldApart } from '../../conversation/ownership'
import { idOfHandle, isSealed, mayBeConversation } from '../../conversation/sealed-id'
import { isUnguessable, mayBeMadeUp } from '../../conversation/unguessable'
import { ApiError } from '../../errors'
import type { Assistant } from '../../registry/assistants'
import type { Asker, Begun } from '../../turn/request'
import { type TranscriptMessage, transcriptOf } from '../../turn/transcript'
import { mayLookAhead } from './admit-turn'
import { askerOf } from './asker'
import { findHistory, findOpenModel } from './open-model'
import type { RequestRecord } from './request-log'

/** Who chats, and with which assistant. */
export interface ChatParties {
  env: Cloudflare.Env
  request: Request
  /** the request's entry in the log */
  record: RequestRecord
  access: Access
  assistant: Assistant
  /** the user that the request names */
  user: string | undefined
  /** what was found out of the chat while the registry was read */
  ahead?: Promise<ChatAhead | undefined>
  /** true: what the conversation's object knows turned out wrong, so it is not asked again */
  anew?: true
}

/** How a request names a chat. */
export interface ChatName {
  /** absent: a conversation begins */
  name: string | undefined
  /** the turn that the question continues from, if the request names one */
  after?: number | undefined
  /** true: it is the id of a conversation, never a name that begins a chat */
  onlyId?: boolean
}

/** What is known of a chat's name before its assistant is. */
interface ChatAhead {
  name: string
  /** the conversation that the name most likely stands for */
  conversationId: string
  /** what its object says of it */
  seen?: Seen | undefined
}

export interface Chat {
  conversationId: string
  /** true if a conversation without history begins */
  named: boolean
  /** true if it begins now, as its object said */
  isNew?: true
  /** see AskRequest */
  seen?: true
  /** the name, where it may be the id of a conversation that was imported (conversation/ask.ts) */
  possibleId?: string
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
 * The conversation of a name. A conversation that began on another protocol can be continued by its id, unless the caller has
 * begun a chat under that name. A scoped key that fixes a conversation always leads to that one.
 * @param after the turn that the question continues from, if the request names one
 * @param begins whether a conversation begins where there is none, so that its object may judge whether there is (`possibleId`)
 * @throws ApiError 400 for a name that is easy to guess
 */
export async function findChat(
  parties: ChatParties,
  name: string,
  after?: number,
  begins = false,
): Promise<Chat> {
  const { access, assistant } = parties
  const asker = await askerFor(parties)
  const fixed = access.embedded.conversation_id
  if (fixed !== undefined) return { conversationId: fixed, named: false }
  if (!mayName(asker, name)) {
    throw new ApiError(
      400,
      'The id of a chat must be random, of 16 characters or more, such as `crypto.randomUUID()`: others with the same key must not come upon it, as they do upon words and numbers. Any id will do with a secret of the visitor in `X-Parley-Visitor`, or with a key that fixes the user.',
    )
  }
  const ours = await idOfHandle(parties.env, name)
  if (ours !== undefined) return { conversationId: ours, named: false, vouched: true }
  const mayBeId = ID.test(name) && begins && !(await isSealed(parties.env, name))
  if (ID.test(name) && !mayBeId) {
    const known = await isKnown(parties, asker, name, after)
    if (known) return { conversationId: name, named: false, ...known }
    const opened = await openedChat(parties.env, asker, name)
    if (opened) return opened
  }
  const conversationId = await namedConversationId(asker, assistant.name, name)
  const ahead = await aheadOf(parties, name)
  const isNew = ahead?.conversationId === conversationId && ahead.seen?.isNew
  return { conversationId, named: true, ...(isNew && { isNew }), ...(mayBeId && { possibleId: name }) }
}

/**
 * Looks a chat up by its name while the registry is read, so that `findChat` and the turn wait for less.
 * @param given the name, once it is known
 * @param mayCreate whether an object may be asked that may not exist yet
 */
export async function lookAhead(
  parties: Omit<ChatParties, 'assistant' | 'ahead'> & { assistant: Pick<Assistant, 'name'> },
  given: ChatName | Promise<ChatName | undefined>,
  mayCreate: (access: Access) => boolean = mayLookAhead,
): Promise<ChatAhead | undefined> {
  const { env, access, assistant, record } = parties
  const { name, after, onlyId } = (await given) ?? {}
  if (name === undefined) return undefined
  const asker = await askerFor(parties).catch(() => undefined)
  const fixed = access.embedded.conversation_id
  if (asker === undefined || (fixed === undefined && !mayName(asker, name))) return undefined
  const ours = fixed ?? (await idOfHandle(env, name))
  const isSealedId = ours === undefined && (await isSealed(env, name))
  const conversationId = ours ?? (isSealedId ? name : await namedConversationId(asker, assistant.name, name))
  // The object of a name may be one that does not exist yet.
  if (ours === undefined && !isSealedId && (onlyId || !mayCreate(access))) return undefined
  const isOurs = fixed === undefined
  return {
    name,
    conversationId,
    seen: await lookBackAhead(env, record, { conversationId, asker, after, isOurs }),
  }
}

async function aheadOf({ ahead, anew }: ChatParties, name: string): Promise<ChatAhead | undefined> {
  const found = anew ? undefined : await ahead
  return found?.name === name ? found : undefined
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

/**
 * Whether a client that sends its whole chat is to be known by the answers in it instead: its library made the name up, of too few
 * random characters for a chat of a caller whom nothing tells apart.
 */
export const isWeaklyNamed = async (parties: ChatParties, name: string): Promise<boolean> =>
  mayBeMadeUp(name) &&
  parties.access.embedded.conversation_id === undefined &&
  !mayName(await askerFor(parties), name)

const askerFor = ({
  request,
  access,
  user,
}: Pick<ChatParties, 'request' | 'access' | 'user'>): Promise<Asker> =>
  askerOf({ request, accesses: [access], userId: user })

/**
 * Whether a name is the id of a conversation that the asker may continue. The history says whether there is one, because D1
 * learns of messages later (docs/architecture.md). A chat that the asker has begun under the name comes before it.
 * @returns `seen` if its object says so, which does not know whether messages are left; undefined if it is not
 */
async function isKnown(
  parties: ChatParties,
  asker: Asker,
  id: string,
  after: number | undefined,
): Promise<Pick<Chat, 'seen' | 'isNew'> | undefined> {
  const { env, access, assistant, anew } = parties
  const model = await findOpenModel(env, [access], assistant.model)
  if (!model) return undefined
  const historyId = await findHistory(env, model)
  const looked = anew
    ? undefined
    : ((await aheadOf(parties, id)) ?? (await lookAhead(parties, { name: id, after }, () => true)))
  if (looked?.seen?.historyId === historyId) {
    const { isNew } = looked.seen
    return looked.conversationId === id ? { seen: true, ...(isNew && { isNew }) } : undefined
  }
  return (await mayContinue(env, asker, id, historyId)) ? {} : undefined
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
