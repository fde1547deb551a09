/** The messages of a conversation one by one, as its history holds them. The caller has opened its row (open-row.ts). */
import { database } from '../db/client'
import type { ConversationRow } from '../db/conversations'
import { deleteTurn, findTurn, type StoredTurn, turnsBetween } from '../db/turns'
import { unwrap } from '../errors'
import { textOf } from '../lib/parts'
import { historyStore } from '../registry/engines'
import type { StoredMessage } from '../search/types'
import type { Asker } from '../turn/request'
import { conversationObject } from './conversation-object'
import { unexpired } from './kept-messages'
import { whose } from './open-row'

/** A message with the turn that it belongs to. */
export interface Item {
  documentId: string
  role: 'user' | 'assistant'
  text: string
  /** absent for messages of a transcript, and for imported ones whose turn has no record */
  turn?: number
}

/** All messages, oldest first, without expired ones. */
export const storedMessages = async (
  env: Cloudflare.Env,
  { id, historyId }: Pick<ConversationRow, 'id' | 'historyId'>,
): Promise<StoredMessage[]> => unexpired(env, await historyStore(env, historyId).messages(id, []))

/**
 * The same with their turns. A history knows the turns of those that were said here. Those of a backup came as documents, so they
 * are matched to the records of turns, whose second they share.
 */
export async function itemsOf(env: Cloudflare.Env, row: ConversationRow): Promise<Item[]> {
  const messages = await storedMessages(env, row)
  const apart = messages.filter(({ turn }) => turn === undefined).map(({ timestamp }) => timestamp)
  const moments = { from: apart[0]! * 1000, to: apart.at(-1)! * 1000 + 999, now: Date.now() }
  const rows = apart.length === 0 ? [] : await turnsBetween(database(env), row.id, moments)
  const left = { user: [...rows], assistant: [...rows] }
  return messages.map(({ documentId, content, timestamp, turn: known, ...message }) => {
    const role = message.role === 'user' ? 'user' : 'assistant'
    const text = textOf(content)
    const isOf = ({ createdAt, question, answer }: (typeof rows)[number]) =>
      Math.floor(createdAt / 1000) === timestamp && text === (role === 'user' ? question : answer)
    const at = known === undefined ? left[role].findIndex(isOf) : -1
    const turn = at < 0 ? known : left[role].splice(at, 1)[0]!.turn
    return { documentId, role, text, ...(turn !== undefined && { turn }) }
  })
}

/** Writes another answer of a turn into the history. */
export async function rewriteAnswer(
  env: Cloudflare.Env,
  row: ConversationRow,
  { turn, createdAt }: Pick<StoredTurn, 'turn' | 'createdAt'>,
  message: string,
): Promise<void> {
  const items = await itemsOf(env, row)
  const known = items.find((item) => item.turn === turn && item.role === 'assistant')
  const timestamp = Math.floor(createdAt / 1000)
  const { id: conversation_id, modelId: model_id, historyId } = row
  const line = known
    ? { id: known.documentId, message }
    : { conversation_id, role: 'assistant', message, timestamp, model_id }
  const action = known ? 'update' : 'create'
  const options = { action, dirtyValues: 'reject', returnDocument: false, returnId: false } as const
  unwrap(await historyStore(env, historyId).importLines([JSON.stringify(line)], options))
}

/**
 * Deletes a message for good: from the history, and the record of its turn with it, as if its document had been deleted. The
 * other message of the turn stays.
 * @throws ApiError 409 while its turn is running
 */
export async function deleteItem(
  env: Cloudflare.Env,
  asker: Asker,
  row: ConversationRow,
  { documentId, turn }: Item,
): Promise<void> {
  if (turn !== undefined) await forgetTurn(env, asker, row, turn)
  unwrap(await historyStore(env, row.historyId).remove(documentId, true))
  // The copy of the history in D1 follows within seconds. Nobody reads the record until then.
  if (turn !== undefined) await deleteTurn(database(env), row.id, turn)
}

/**
 * Deletes a turn: its question, its answer, and its record.
 * @returns false if there is no such turn with a record
 * @throws ApiError 409 while it is running
 */
export async function deleteTurnOf(
  env: Cloudflare.Env,
  asker: Asker,
  row: ConversationRow,
  turn: number,
): Promise<boolean> {
  await forgetTurn(env, asker, row, turn)
  if ((await findTurn(database(env), row.id, turn, Date.now())) === undefined) return false
  const items = await itemsOf(env, row)
  for (const item of items) if (item.turn === turn) await deleteItem(env, asker, row, item)
  await deleteTurn(database(env), row.id, turn)
  return true
}

const forgetTurn = async (env: Cloudflare.Env, asker: Asker, row: ConversationRow, turn: number) =>
  unwrap(await conversationObject(env, row.id).tell({ what: 'forget', turn, ...whose(row, asker) }))
