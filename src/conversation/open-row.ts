/** Opens conversations: a new one before anything is said in it, and the record of one for an asker. */
import { database } from '../db/client'
import { type ConversationRow, findConversationRow } from '../db/conversations'
import { unwrap } from '../errors'
import { unknownConversation } from '../turn/errors'
import type { Asker, Begun } from '../turn/request'
import { idOfHandle, isSealed, sealedId } from './conversation-id'
import { conversationObject } from './conversation-object'
import { mayOpen } from './ownership'

/**
 * Returns D1's row of a conversation, once its object has delivered what D1 lacks: the beginning, or turns that ended
 * while D1 was unavailable. Both refusals take the same queries and calls, so that their time does not tell one from
 * the other.
 * @param handle the id, or a handle of it (conversation-id.ts)
 * @returns `unknown` if there is none, `foreign` if the asker may not open it
 * @throws ApiError 503 while D1 is unavailable
 */
export async function openRow(
  env: Cloudflare.Env,
  asker: Asker,
  handle: string,
): Promise<ConversationRow | 'unknown' | 'foreign'> {
  const ours = await idOfHandle(env, handle)
  const id = ours ?? handle
  const refusal = ours === undefined ? await refusalOf(env, asker, id) : undefined
  if (refusal !== undefined) return refusal
  const recorded = await conversationObject(env, id).recorded(asker)
  const row = await findConversationRow(database(env), id, Date.now())
  if (!recorded.ok && recorded.error.status !== 404) unwrap(recorded)
  if (row === undefined) return 'unknown'
  return recorded.ok && mayOpen(asker, row) ? row : 'foreign'
}

/** A row that was read before it is known who asks. Nobody may learn of it but through `openAhead`. */
export interface EarlyRow {
  handle: string
  id: string
  row: Promise<ConversationRow | undefined>
}

/** @returns undefined for an id that this server did not give out */
export async function readRowAhead(env: Cloudflare.Env, handle: string): Promise<EarlyRow | undefined> {
  const id = (await idOfHandle(env, handle)) ?? ((await isSealed(env, handle)) ? handle : undefined)
  if (id === undefined) return undefined
  const row = findConversationRow(database(env), id, Date.now())
  row.catch(() => {})
  return { handle, id, row }
}

/** A conversation as far as it was opened ahead. undefined: openRow has to say what it is. */
export interface OpenedAhead {
  /** the row, before the object has been heard. It may lack what the object delivers just now, such as the latest turns */
  row: Promise<ConversationRow | undefined>
  /** the same, once the object knows the conversation too */
  opened: Promise<ConversationRow | undefined>
  /** whether the object had to deliver something. What was read meanwhile may lack that */
  delivered: Promise<boolean>
}

/** Does what openRow does in one wait. Another's conversation and an unknown one take the same calls here too. */
export function openAhead(env: Cloudflare.Env, asker: Asker, early: EarlyRow): OpenedAhead {
  const recorded = conversationObject(env, early.id).recorded(asker)
  const row = early.row.then((row) => (row && mayOpen(asker, row) ? row : undefined))
  const opened = Promise.all([recorded, row]).then(([{ ok }, row]) => (ok ? row : undefined))
  const delivered = recorded.then((outcome) => outcome.ok && outcome.value === true)
  for (const each of [row, opened, delivered]) each.catch(() => {})
  return { row, opened, delivered }
}

/** Refuses an id that this server did not make by D1 alone. Its object is asked only if the asker may open it. */
async function refusalOf(
  env: Cloudflare.Env,
  asker: Asker,
  id: string,
): Promise<'unknown' | 'foreign' | undefined> {
  if (await isSealed(env, id)) return undefined
  const row = await findConversationRow(database(env), id, Date.now())
  if (row === undefined) return 'unknown'
  return mayOpen(asker, row) ? undefined : 'foreign'
}

/**
 * Checks an id that came from outside, before its object is asked.
 * @throws ApiError 404 for an id that belongs to no conversation that the asker may open
 */
export async function requireConversationId(env: Cloudflare.Env, asker: Asker, id: string): Promise<void> {
  if ((await refusalOf(env, asker, id)) !== undefined) throw unknownConversation()
}

export interface NewConversation {
  protocol: string
  /** id of the Collection object of its history collection, and the model id that its messages carry */
  historyId: string
  modelId: string
  /** seconds */
  ttl: number
  /** '': it is named after its first question */
  title: string
  /** kept with its row in D1, as JSON */
  details: object
}

/** @returns its id @throws ApiError 503 while D1 is unavailable */
export async function openConversation(
  env: Cloudflare.Env,
  asker: Asker,
  { details, ...given }: NewConversation,
): Promise<string> {
  const id = await sealedId(env)
  unwrap(
    await conversationObject(env, id).tell({
      what: 'open',
      conversationId: id,
      asker,
      ...given,
      details: JSON.stringify(details),
    }),
  )
  return id
}

/** Identifies a conversation to its object, together with what D1 knows of it: the object may have forgotten that. */
export const whose = (row: ConversationRow, asker: Asker) => ({
  conversationId: row.id,
  asker,
  protocol: row.protocol,
  historyId: row.historyId,
  modelId: row.modelId,
  // Messages expire together with their conversation.
  ttl: Math.max(1, Math.round((row.expiresAt - Date.now()) / 1000)),
  begun: begunOf(row),
})

/** Whose a conversation is and how it began. */
export const begunOf = ({ owner, userId, proof, title, createdAt }: ConversationRow): Begun => ({
  owner: { owner, userId, proof },
  title,
  createdAt,
})
