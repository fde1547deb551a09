/**
 * Conversations as memories: created before anything is said, and filled with messages that no turn made. The
 * façade has checked before (openMemory) whose the conversation is and whether the caller may open it.
 */

import * as v from 'valibot'
import { database } from '../db/client'
import type { ConversationRow } from '../db/conversations'
import {
  addTrace,
  countTurns,
  findMessageTurn,
  isAny,
  type MessageTurn,
  mergeDetails,
  mergeMessage,
  messagesBeforeTurns,
  pageOfConversations,
  pageOfTurns,
} from '../db/memories'
import { findResource } from '../db/resources'
import { unwrap } from '../errors'
import { once } from '../lib/once'
import { findModel } from '../registry/models'
import { memoryHistory, storeNew, TTL } from '../registry/resources'
import type { Asker } from '../turn/request'
import type { SaidMessage } from './commands'
import { conversationObject } from './conversation-object'
import { storeFeedback } from './feedback'
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
  return v.parse(Details(), JSON.parse(details)).version ?? 1
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

// Memories and their messages as OpenSearch shows them, read from rows of D1.

const Info = once(() => v.record(v.string(), v.unknown()))

export const Details = once(() =>
  v.object({
    name: v.nullish(v.string()),
    application_type: v.optional(v.string()),
    additional_info: v.optional(Info()),
    version: v.optional(v.number()),
  }),
)

const More = once(() =>
  v.object({
    origin: v.optional(v.string()),
    prompt_template: v.optional(v.string()),
    additional_info: v.optional(Info()),
    version: v.optional(v.number()),
    updated: v.optional(v.number()),
  }),
)

const Trace = once(() =>
  v.object({
    ...More().entries,
    input: v.optional(v.string()),
    response: v.optional(v.string()),
    trace_number: v.number(),
    created: v.number(),
  }),
)

/** A memory as it describes itself. Times are in milliseconds since 1970. */
export interface MemoryView {
  id: string
  /** null: it was created without one */
  name: string | null
  info: Record<string, unknown> | undefined
  applicationType: string | undefined
  version: number
  owner: string
  created: number
  updated: number
}

export interface MessageView {
  memoryId: string
  /** its turn; 0 together with `before` for messages from before the first turn */
  turn: number
  before?: number
  /** for a trace: its place, from 0 */
  trace?: number
  traceNumber?: number
  input?: string | undefined
  response?: string | undefined
  promptTemplate?: string | undefined
  origin?: string | undefined
  info?: Record<string, unknown> | undefined
  version: number
  created: number
  updated?: number | undefined
}

export function memoryOf(row: ConversationRow): MemoryView {
  // A conversation begun by another protocol is named after its first question.
  const details =
    row.details === null ? { name: row.name ?? row.title } : v.parse(Details(), JSON.parse(row.details))
  return {
    id: row.id,
    name: details.name ?? null,
    info: 'additional_info' in details ? details.additional_info : undefined,
    applicationType: 'application_type' in details ? details.application_type : undefined,
    version: ('version' in details ? details.version : undefined) ?? 1,
    owner: row.owner,
    created: row.createdAt,
    updated: row.updatedAt,
  }
}

export type NewTrace = Omit<v.InferInput<ReturnType<typeof Trace>>, 'created' | 'version' | 'updated'>

/** Pairs questions with their answers, as messages. */
export function pairs(
  memoryId: string,
  said: { role: string; message: string; timestamp: number }[],
): MessageView[] {
  const messages: MessageView[] = []
  for (const { role, message, timestamp } of said) {
    const last = messages.at(-1)
    if (role !== 'user' && last !== undefined && last.response === undefined) last.response = message
    else {
      const part = role === 'user' ? { input: message } : { response: message }
      const created = timestamp * 1000
      messages.push({ memoryId, turn: 0, before: messages.length, version: 1, created, ...part })
    }
  }
  return messages
}

export function messageOf(row: MessageTurn): MessageView {
  const more = row.more === null ? {} : v.parse(More(), JSON.parse(row.more))
  return {
    memoryId: row.conversationId,
    turn: row.turn,
    input: row.question,
    response: row.answer,
    promptTemplate: more.prompt_template,
    origin: more.origin,
    info: more.additional_info,
    version: more.version ?? 1,
    created: row.createdAt,
    updated: more.updated,
  }
}

function tracesOf(row: MessageTurn): MessageView[] {
  const list = row.traces === null ? [] : v.parse(v.array(Trace()), JSON.parse(row.traces))
  return list.map(
    ({ input, response, prompt_template, origin, additional_info, trace_number, created }, trace) => ({
      memoryId: row.conversationId,
      turn: row.turn,
      trace,
      traceNumber: trace_number,
      input,
      response,
      promptTemplate: prompt_template,
      origin,
      info: additional_info,
      version: 1,
      created,
    }),
  )
}
