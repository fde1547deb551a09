/** The messages of a conversation one by one, as its history holds them. The caller has opened its row (open-row.ts). */
import { database } from '../db/client'
import { ttlsOf } from '../db/conversation-models'
import type { ConversationRow } from '../db/conversations'
import { deleteTurn, findTurn, type StoredTurn, turnsBetween } from '../db/turns'
import { coded, unwrap } from '../errors'
import { textOf } from '../lib/parts'
import { historyStore } from '../registry/engines'
import type { Origin } from '../search/fault-log'
import type { StoredMessage } from '../search/types'
import { unknownTurn } from '../turn/errors'
import type { HistoryMessage, Reading } from '../turn/events'
import { type TranscriptMessage, toHistory, transcriptOf } from '../turn/look-back'
import type { Asker, AskRequest } from '../turn/request'
import { conversationObject } from './conversation-object'
import type { ConversationState } from './conversation-state'
import type { LogReading } from './event-log'
import { whose } from './open-row'
import { QUEUE_LIMIT } from './turn-queue'

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

// What the history collections hold of a conversation, for its object: which turns are left, since anybody may have deleted
// messages through the documents API, and what was said up to a turn, for readers of finished turns and for a question that
// continues from an earlier turn in a conversation of its own.

/**
 * Finds turns, from a number on, whose messages somebody deleted. Turns that are not delivered yet do not
 * count.
 * @returns their numbers
 */
export async function deletedTurns(
  env: Cloudflare.Env,
  state: ConversationState,
  conversationId: string,
  from: number,
  origin?: Origin,
): Promise<number[]> {
  const waiting = state.outbox.turns
  const said = state.log.ended(from).filter(({ turn, saidAt }) => saidAt !== null && !waiting.has(turn))
  if (said.length === 0) return []
  const timestamps = said.map(({ saidAt }) => saidAt!)
  const whole = await Promise.all(
    state.histories.map((history) =>
      historyStore(env, history).wholeTurns(conversationId, timestamps, origin),
    ),
  )
  const left = new Set(whole.flat())
  return said.filter(({ saidAt }) => !left.has(saidAt!)).map(({ turn }) => turn)
}

/** Whether any message of the conversation is left. */
export async function isRemembered(
  env: Cloudflare.Env,
  state: ConversationState,
  conversationId: string,
): Promise<boolean> {
  const left = await Promise.all(
    state.histories.map((history) => historyStore(env, history).recentMessages(conversationId, 0)),
  )
  return left.some(({ messages }) => messages.length > 0)
}

export async function removeMessages(
  env: Cloudflare.Env,
  state: ConversationState,
  conversationId: string,
  origin?: Origin,
): Promise<void> {
  for (const history of state.histories) {
    const store = historyStore(env, history)
    while (!(await store.removeConversation(conversationId, origin)).done);
  }
}

/** Takes back the records of turns that were deleted while D1 was unavailable. Only their cost is still reported. */
export async function dropDeletedRecords(
  env: Cloudflare.Env,
  state: ConversationState,
  conversationId: string,
): Promise<void> {
  const waiting = state.records.turns
  if (waiting.length === 0) return
  const deleted = await deletedTurns(env, state, conversationId, Math.min(...waiting)).catch(() => [])
  if (state.closed) return
  for (const turn of deleted) state.records.reduce(turn)
}

/** What a reader of finished turns gets besides their logs. @param from the first of them */
export async function askedOf(
  env: Cloudflare.Env,
  state: ConversationState,
  conversationId: string,
  from: number,
  { results, history }: Reading = {},
): Promise<LogReading> {
  const histories = history ? await historiesOf(env, state, conversationId, from) : undefined
  return { results, histories }
}

/**
 * @param from the first turn
 * @returns by turn: its messages and all before it, oldest first, without expired ones
 */
async function historiesOf(
  env: Cloudflare.Env,
  state: ConversationState,
  conversationId: string,
  from: number,
): Promise<Map<number, HistoryMessage[]>> {
  const turns = state.log.ended(from).filter(({ status }) => status === 'done')
  if (turns.length === 0) return new Map()
  const all = await Promise.all(
    state.histories.map(async (historyId) => {
      const stored = await historyStore(env, historyId).messages(conversationId, [])
      return unexpired(env, [...stored, ...(state.closed ? [] : state.outbox.pending(historyId, []))])
    }),
  )
  return new Map(
    turns.map(({ turn, saidAt }) => {
      const told = all.find((messages) => messages.some((message) => message.turn === turn)) ?? all.at(-1)
      // What no turn added was there before.
      const isBefore = (message: StoredMessage) =>
        message.turn === undefined ? message.timestamp <= (saidAt ?? 0) : message.turn <= turn
      return [turn, (told ?? []).filter(isBefore).map(toHistory)]
    }),
  )
}

/** Leaves out what has expired, as far as the models' ttls are known. */
async function unexpired(env: Cloudflare.Env, messages: StoredMessage[]): Promise<StoredMessage[]> {
  const models = [...new Set(messages.map(({ modelId }) => modelId))]
  const ttls = await ttlsOf(database(env), models).catch(() => new Map<string, number>())
  const now = Math.floor(Date.now() / 1000)
  return messages.filter(
    ({ modelId, timestamp }) => timestamp >= now - (ttls.get(modelId) ?? Number.POSITIVE_INFINITY),
  )
}

/**
 * Returns what was said up to the turn that a question continues from.
 * @param continued whether another question is running there or waiting
 * @returns undefined if that is the last turn; the question then stays in its conversation
 * @throws ApiError 404 for a turn that is not there; 409 for one that is still being written while another
 *   question waits
 */
export async function transcriptTo(
  env: Cloudflare.Env,
  state: ConversationState | undefined,
  { conversationId, historyId, after = 0 }: AskRequest,
  continued: boolean,
): Promise<TranscriptMessage[] | undefined> {
  const standing = state?.log.standing(after) ?? 'unknown'
  if (!state || state.closed || standing === 'unknown') throw unknownTurn()
  if (standing !== 'earlier' && !continued) return undefined
  if (standing === 'running') {
    throw coded(
      'conflict',
      409,
      'The previous response is still being written. Ask again when it is there.',
      1,
    )
  }
  // Include turns that may end meanwhile.
  const later = Array.from({ length: state.log.latest()! - after + QUEUE_LIMIT + 1 }, (_, n) => after + 1 + n)
  const without = state.outbox.originsOf(later)
  const stored = await historyStore(env, historyId).messages(conversationId, without)
  return transcriptOf([...stored, ...state.outbox.pending(historyId, without)])
}
