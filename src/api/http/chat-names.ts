/** Leads a question to its conversation: by the id that a client chose, by an assistant, or by a key. */
import { type Access, ASK_ACTIONS, mayAsk, mayAskAssistant } from '../../auth/access'
import { admit, requireOrigin } from '../../auth/authenticate'
import { type Chat, mayContinue } from '../../conversation/ask'
import {
  idOfHandle,
  isSealed,
  isUnguessable,
  mayBeConversation,
  mayBeMadeUp,
  namedConversationId,
} from '../../conversation/conversation-id'
import { begunOf, openRow } from '../../conversation/conversations'
import { storedMessages } from '../../conversation/messages'
import { isToldApart } from '../../conversation/stored'
import { ApiError, badRequest } from '../../errors'
import { matchesOrigin } from '../../lib/origins'
import type { ConversationModelConfig } from '../../models/language-model'
import {
  type Assistant,
  assistantNotFound,
  DEFAULT_ASSISTANT,
  findAssistant,
  searchesOf,
} from '../../registry/assistants'
import { findForQuestion } from '../../registry/collections'
import { findModel } from '../../registry/models'
import type { FindResource } from '../../registry/resources'
import { transcriptOf } from '../../turn/look-back'
import type { Asker } from '../../turn/request'
import { askerWith, mayLookAhead, namedUser } from './admit-turn'
import { presentedKey } from './cors'
import type { RequestRecord } from './request-log'
import type { OpenCall } from './router'

// =============================================================================
// Finds conversations by the ids that clients choose. Chat widgets make up the id of a chat. Here it is a name: the
// conversation's id is a digest of the name with the key, the user and the assistant, so that nobody else can guess it.

/** Who chats, and with which assistant. */
export interface ChatParties extends Pick<OpenCall, 'env' | 'request' | 'record' | 'prefetch'> {
  access: Access
  /** open to the key */
  assistant: Assistant
  /** the user that the request names */
  user: string | undefined
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
  const asker = await askerWith(parties)
  const likeliest = await likeliestOf(parties, asker, name)
  const { conversationId, from } = likeliest
  if (from === 'key') return { conversationId, named: false }
  if (!mayName(asker, name)) {
    throw badRequest(
      'The id of a chat must be random, of 16 characters or more, such as `crypto.randomUUID()`: others with the same key must not come upon it, as they do upon words and numbers. Any id will do with a secret of the visitor in `X-Parley-Visitor`, or with a key that fixes the user.',
    )
  }
  if (from === 'handle') return { conversationId, named: false, vouched: true }
  const mayBeId = ID.test(name) && begins && from === 'name'
  if (ID.test(name) && !mayBeId) {
    const known = await isKnown(parties, asker, name, { ...likeliest, after })
    if (known) return { conversationId: name, named: false, ...known }
    const opened = await openedChat(parties.env, asker, name)
    if (opened) return opened
  }
  const named =
    from === 'name' ? conversationId : await namedConversationId(asker, parties.assistant.name, name)
  const isNew = (await parties.prefetch.seen(named))?.isNew
  return { conversationId: named, named: true, ...(isNew && { isNew }), ...(mayBeId && { possibleId: name }) }
}

/** The conversation that a name most likely stands for, and what says so. No call is made for it. */
interface Likeliest {
  conversationId: string
  from: 'key' | 'handle' | 'id' | 'name'
}

async function likeliestOf(
  { env, access, assistant }: Pick<ChatParties, 'env' | 'access'> & { assistant: Pick<Assistant, 'name'> },
  asker: Asker,
  name: string,
): Promise<Likeliest> {
  const fixed = access.embedded.conversation_id
  if (fixed !== undefined) return { conversationId: fixed, from: 'key' }
  const ours = await idOfHandle(env, name)
  if (ours !== undefined) return { conversationId: ours, from: 'handle' }
  if (await isSealed(env, name)) return { conversationId: name, from: 'id' }
  return { conversationId: await namedConversationId(asker, assistant.name, name), from: 'name' }
}

/**
 * Has the conversation of a chat look back while the registry is read, so that `findChat` and the turn wait for less.
 * @param given the name, once it is known
 * @returns settles when it has been asked; never rejects
 */
export function prefetchChat(
  parties: Omit<ChatParties, 'assistant'> & { assistant: Pick<Assistant, 'name'> },
  given: ChatName | Promise<ChatName | undefined>,
): Promise<unknown> {
  const find = async () => {
    const { name, after, onlyId } = (await given) ?? {}
    if (name === undefined) return undefined
    const asker = await askerWith(parties)
    const { conversationId, from } = await likeliestOf(parties, asker, name)
    if (from !== 'key' && !mayName(asker, name)) return undefined
    // The object of a name may be one that does not exist yet.
    if (from === 'name' && (onlyId || !mayLookAhead(parties.access))) return undefined
    return { conversationId, asker, after, isOurs: from !== 'key' }
  }
  return parties.prefetch.find(find())
}

/** The ids that a name may stand for, the likeliest first. For reading and stopping. */
export async function chatIds(parties: ChatParties, name: string): Promise<{ asker: Asker; ids: string[] }> {
  const { env, assistant } = parties
  const asker = await askerWith(parties)
  const { conversationId, from } = await likeliestOf(parties, asker, name)
  if (from !== 'key' && !mayName(asker, name)) return { asker, ids: [] }
  if (from === 'key' || from === 'handle') return { asker, ids: [conversationId] }
  const named = from === 'name' ? conversationId : await namedConversationId(asker, assistant.name, name)
  const isId = ID.test(name) && (from === 'id' || (await mayBeConversation(env, name)))
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
  !mayName(await askerWith(parties), name)

/**
 * Whether a name is the id of a conversation that the asker may continue. The history says whether there is one, because D1
 * learns of messages later (docs/architecture.md). A chat that the asker has begun under the name comes before it.
 * @returns `seen` if its object says so, which does not know whether messages are left; undefined if it is not
 */
async function isKnown(
  { env, access, assistant, prefetch }: ChatParties,
  asker: Asker,
  id: string,
  { conversationId, after }: Likeliest & { after: number | undefined },
): Promise<Pick<Chat, 'seen' | 'isNew'> | undefined> {
  const model = await findOpenModel(env, [access], assistant.model)
  if (!model) return undefined
  const historyId = await findHistory(env, model)
  await prefetch.seen(conversationId)
  const seen = await prefetch.look({ conversationId, asker, after, isOurs: true })
  if (seen?.historyId === historyId) {
    const { isNew } = seen
    return conversationId === id ? { seen: true, ...(isNew && { isNew }) } : undefined
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

// =============================================================================
// Finds the assistants and conversation models that a key may ask.

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
