/**
 * Conversations as memories: created before anything is said, and filled with messages that no turn made. The
 * façade has checked before (openMemory) whose the conversation is and whether the caller may open it.
 */
import { parse } from 'valibot'
import { database } from '../db/client'
import type { ConversationRow } from '../db/conversations'
import {
  addTrace,
  countTurns,
  findMessageTurn,
  isAny,
  mergeDetails,
  mergeMessage,
  messagesBeforeTurns,
  pageOfConversations,
  pageOfTurns,
} from '../db/memories'
import { findResource } from '../db/resources'
import { unwrap } from '../errors'
import { findModel } from '../registry/models'
import { memoryHistory, storeNew, TTL } from '../registry/resources'
import type { Asker } from '../turn/request'
import type { SaidMessage } from './commands'
import { conversationObject } from './conversation-object'
import { storeFeedback } from './feedback'
import {
  Details,
  type MemoryView,
  type MessageView,
  memoryOf,
  messageOf,
  type NewTrace,
  pairs,
  tracesOf,
} from './memory-views'
import { rewriteAnswer } from './messages'
import { openConversation, whose } from './open-row'
import { scopeOf } from './ownership'

/** A memory's record, for the calls that follow. */
export type MemoryRow = ConversationRow

/** The model id of messages that no model wrote. */
const NO_MODEL = 'opensearch'

export interface NewMemory {
  name: string | null
  application_type?: string
  additional_info?: Record<string, unknown>
}

/** @returns its id @throws ApiError 503 while D1 is unavailable */
export async function createMemory(env: Cloudflare.Env, asker: Asker, given: NewMemory): Promise<string> {
  const { objectId } = await memoryHistory(env)
  const id = await openConversation(env, asker, {
    protocol: 'opensearch',
    historyId: objectId,
    modelId: NO_MODEL,
    ttl: TTL,
    title: given.name ?? '',
    details: given,
  })
  await noteFirst(env, 'conversation')
  return id
}

/** A page of the memories that an asker may list, latest first. */
export async function listMemories(
  env: Cloudflare.Env,
  asker: Asker,
  by: 'createdAt' | 'updatedAt',
  page: { limit: number; offset: number },
): Promise<MemoryView[]> {
  const scope = scopeOf(asker, undefined)
  if (scope === undefined || scope === 'unproven') return []
  const rows = await pageOfConversations(database(env), scope, by, { ...page, now: Date.now() })
  return rows.map(memoryOf)
}

/** @returns its version */
export async function changeMemory(
  env: Cloudflare.Env,
  asker: Asker,
  row: ConversationRow,
  { name, additional_info }: { name?: string; additional_info?: Record<string, unknown> },
): Promise<number> {
  const begun = row.details === null ? { name: row.name ?? row.title } : {}
  const patch = { ...begun, ...(name !== undefined && { name }), ...(additional_info && { additional_info }) }
  const details = await mergeDetails(database(env), row.id, patch, name, Date.now())
  if (name !== undefined) {
    unwrap(await conversationObject(env, row.id).tell({ what: 'title', title: name, ...whose(row, asker) }))
  }
  return parse(Details(), JSON.parse(details)).version ?? 1
}

/** Adds a message that no turn made. @returns its turn's number */
export async function addMessage(
  env: Cloudflare.Env,
  asker: Asker,
  row: ConversationRow,
  said: SaidMessage,
): Promise<number> {
  const turn = unwrap(
    await conversationObject(env, row.id).tell({ what: 'message', ...said, ...whose(row, asker) }),
  )
  await noteFirst(env, 'turn')
  return turn
}

/**
 * A page of a memory's messages, sorted by `order`. Messages from a transcript are the oldest. They have no numbers, so
 * their places are counted from the first one. A page that lies among the turns does not read them.
 */
export async function listMessages(
  env: Cloudflare.Env,
  memoryId: string,
  order: 'asc' | 'desc',
  { limit, offset }: { limit: number; offset: number },
): Promise<MessageView[]> {
  const db = database(env)
  const now = Date.now()
  const page = async (from: number, most: number) =>
    most <= 0
      ? []
      : (await pageOfTurns(db, memoryId, order, { limit: most, offset: from, now })).map(messageOf)
  if (order === 'asc') {
    const before = await beforeTurns(env, memoryId, offset + limit)
    const first = before.slice(offset, offset + limit)
    return [...first, ...(await page(Math.max(0, offset - before.length), limit - first.length))]
  }
  const turns = await page(offset, limit)
  if (turns.length === limit) return turns
  const before = await beforeTurns(env, memoryId)
  if (before.length === 0) return turns
  const all = await countTurns(db, memoryId, now)
  const start = Math.max(0, offset - all)
  return [...turns, ...before.toReversed().slice(start, start + limit - turns.length)]
}

/** The first messages of a transcript. A question and its answer make one message. */
async function beforeTurns(
  env: Cloudflare.Env,
  memoryId: string,
  most = MOST_BEFORE,
): Promise<MessageView[]> {
  return pairs(memoryId, await messagesBeforeTurns(database(env), memoryId, 2 * most)).slice(0, most)
}

/** The most transcript messages to list. No page reaches further. */
const MOST_BEFORE = 10_000

/** Finds a message by its place; undefined if there is none. */
export async function findMessage(
  env: Cloudflare.Env,
  { memoryId, turn, before, trace }: Pick<MessageView, 'memoryId' | 'turn' | 'before' | 'trace'>,
): Promise<MessageView | undefined> {
  if (before !== undefined) return (await beforeTurns(env, memoryId, before + 1))[before]
  const row = await findMessageTurn(database(env), memoryId, turn, Date.now())
  if (row === undefined) return undefined
  return trace === undefined ? messageOf(row) : tracesOf(row)[trace]
}

/** The traces of a message, by their numbers. */
export async function listTraces(
  env: Cloudflare.Env,
  memoryId: string,
  turn: number,
): Promise<MessageView[]> {
  const row = await findMessageTurn(database(env), memoryId, turn, Date.now())
  return row === undefined ? [] : tracesOf(row).sort((a, b) => a.traceNumber! - b.traceNumber!)
}

/** @returns its place among the message's traces; undefined if there is no such message */
export const addTraceTo = (
  env: Cloudflare.Env,
  memoryId: string,
  turn: number,
  trace: NewTrace,
): Promise<number | undefined> => addTrace(database(env), memoryId, turn, { ...trace, created: Date.now() })

/**
 * Whether a guardrail judges what is said in a conversation. It does not judge messages that are written into the history,
 * but later prompts contain them.
 */
export async function isJudged(
  env: Cloudflare.Env,
  { modelId }: Pick<ConversationRow, 'modelId'>,
): Promise<boolean> {
  const model = await findModel(env, modelId)
  return typeof model?.input_guardrail_prompt === 'string' && model.input_guardrail_prompt !== ''
}

/** OpenSearch's clients keep a rating in a message's info. */
function ratingIn(info: Record<string, unknown> | undefined): 'up' | 'down' | undefined {
  if (info?.feedback === 'positive') return 'up'
  return info?.feedback === 'negative' ? 'down' : undefined
}

/**
 * Changes a message's info, key by key, and its answer as every protocol reads it. `feedback` in the info, `positive` or
 * `negative`, is a rating of the answer as well.
 * @returns its version
 * @throws ApiError 409 for the answer of a turn that is running
 */
export async function changeMessage(
  env: Cloudflare.Env,
  asker: Asker,
  row: ConversationRow,
  message: MessageView,
  { info, response }: { info?: Record<string, unknown>; response?: string },
): Promise<number> {
  const patch = { ...(info !== undefined && { additional_info: info }), updated: Date.now() }
  const rating = ratingIn(info)
  if (rating) await storeFeedback(env, asker, { conversationId: row.id, turn: message.turn }, { rating })
  if (response !== undefined) {
    const { turn } = message
    const change = { what: 'answer', turn, answer: response, ...whose(row, asker) } as const
    unwrap(await conversationObject(env, row.id).tell(change))
    await rewriteAnswer(env, row, { turn, createdAt: message.created }, response)
  }
  return mergeMessage(database(env), row.id, message.turn, patch, response)
}

/**
 * Kinds that this isolate has already recorded. Entries never expire: once something has existed, that stays true.
 */
const noted = new Set<string>()

/**
 * Records for good that a conversation, or a message, has existed. OpenSearch distinguishes an empty store from one that
 * was never used.
 */
async function noteFirst(env: Cloudflare.Env, what: 'conversation' | 'turn'): Promise<void> {
  if (noted.has(what)) return
  await storeNew(env, 'memory_store', what, {})
  noted.add(what)
}

/** Whether there was ever a conversation, or a message, of anybody's. */
export async function wasEver(env: Cloudflare.Env, what: 'conversation' | 'turn'): Promise<boolean> {
  if (noted.has(what)) return true
  const db = database(env)
  if ((await findResource(db, 'memory_store', what)) === undefined && !(await isAny(db, what))) return false
  noted.add(what)
  return true
}
