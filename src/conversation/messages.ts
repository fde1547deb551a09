/** The messages of a conversation one by one, as its history holds them. The caller has opened its row (open-row.ts). */
import { database } from '../db/client'
import { ttlsOf } from '../db/conversation-models'
import type { ConversationRow } from '../db/conversations'
import { deleteTurn, findTurn, type StoredTurn, turnsBetween } from '../db/turns'
import { unwrap } from '../errors'
import { textOf } from '../lib/parts'
import { historyStore } from '../registry/engines'
import type { StoredMessage } from '../search/types'
import type { Asker } from '../turn/request'
import { conversationObject } from './conversation-object'
import { whose } from './memories'

/** A message with the turn that it belongs to. */
export interface Item {
  documentId: string
  role: 'user' | 'assistant'
  text: string
  /** absent where the turn has no record, such as messages of a transcript */
  turn?: number
}

/** All messages, oldest first, without expired ones. */
export async function storedMessages(
  env: Cloudflare.Env,
  { id, historyId }: Pick<ConversationRow, 'id' | 'historyId'>,
): Promise<StoredMessage[]> {
  const messages = await historyStore(env, historyId).messages(id, [])
  const ttls = await ttlsOf(database(env), [...new Set(messages.map(({ modelId }) => modelId))])
  const now = Math.floor(Date.now() / 1000)
  return messages.filter(({ modelId, timestamp }) => {
    const ttl = ttls.get(modelId)
    return ttl === undefined || timestamp >= now - ttl
  })
}

const roleOf = ({ role }: StoredMessage): Item['role'] => (role === 'user' ? 'user' : 'assistant')

/**
 * Finds the turns of messages. A turn and its two messages share a second. Two turns of one second may have equal texts, so
 * all messages of that second are matched in order, even if only some are asked for.
 * @param all oldest first @param some of them, in any order
 */
export async function itemsOf(
  env: Cloudflare.Env,
  { id }: Pick<ConversationRow, 'id'>,
  all: readonly StoredMessage[],
  some: readonly StoredMessage[] = all,
): Promise<Item[]> {
  if (some.length === 0) return []
  const first = some.reduce((least, { timestamp }) => Math.min(least, timestamp), Number.POSITIVE_INFINITY)
  const last = some.reduce((most, { timestamp }) => Math.max(most, timestamp), 0)
  const moments = { from: first * 1000, to: last * 1000 + 999, now: Date.now() }
  const rows = await turnsBetween(database(env), id, moments)
  const left = { user: [...rows], assistant: [...rows] }
  const turns = new Map<string, number>()
  for (const message of all) {
    if (message.timestamp < first || message.timestamp > last) continue
    const role = roleOf(message)
    const at = left[role].findIndex((row) => isOf(message, row))
    if (at >= 0) turns.set(message.documentId, left[role].splice(at, 1)[0]!.turn)
  }
  return some.map((message) => {
    const { documentId, content } = message
    const turn = turns.get(documentId)
    return { documentId, role: roleOf(message), text: textOf(content), ...(turn !== undefined && { turn }) }
  })
}

const isOf = (message: StoredMessage, { createdAt, question, answer }: StoredTurn): boolean =>
  Math.floor(createdAt / 1000) === message.timestamp &&
  textOf(message.content) === (roleOf(message) === 'user' ? question : answer)

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
  const items = await itemsOf(env, row, await storedMessages(env, row))
  for (const item of items) if (item.turn === turn) await deleteItem(env, asker, row, item)
  await deleteTurn(database(env), row.id, turn)
  return true
}

const forgetTurn = async (env: Cloudflare.Env, asker: Asker, row: ConversationRow, turn: number) =>
  unwrap(await conversationObject(env, row.id).tell({ what: 'forget', turn, ...whose(row, asker) }))
