/** The messages of a conversation one by one, as its history holds them. The caller has opened its row (conversations.ts). */

import * as v from 'valibot'
import {
  addTrace,
  type ConversationRow,
  countTurns,
  findMessageTurn,
  isAny,
  type MessageTurn,
  mergeDetails,
  mergeMessage,
  messagesBeforeTurns,
  pageOfConversations,
  pageOfTurns,
} from '../db/conversations'
import { ttlsOf } from '../db/registry'
import { findResource } from '../db/resources'
import { deleteTurn, findTurn, type StoredTurn, turnsBetween } from '../db/turns'
import { coded, unwrap } from '../errors'
import { once } from '../lib/once'
import { fromStored, textOf } from '../lib/parts'
import { historyStore } from '../registry/engines'
import { findModel } from '../registry/models'
import { memoryHistory, storeNew, TTL } from '../registry/resources'
import type { Origin } from '../search/fault-log'
import type { StoredMessage } from '../search/types'
import { unknownTurn } from '../turn/errors'
import type { HistoryMessage, Reading } from '../turn/events'
import { callsOf } from '../turn/fold'
import { type TranscriptMessage, toHistory, transcriptOf } from '../turn/look-back'
import type { Asker, AskRequest } from '../turn/request'
import { conversationObject, type SaidMessage } from './conversation-object'
import type { ConversationState } from './conversation-state'
import { openConversation, whose } from './conversations'
import { storeFeedback } from './feedback'
import { scopeOf } from './stored'
import type { LogReading } from './turn-log'
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
  const rows = apart.length === 0 ? [] : await turnsBetween(env.DB, row.id, moments)
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
async function rewriteAnswer(
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
  if (turn !== undefined) await deleteTurn(env.DB, row.id, turn)
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
  if ((await findTurn(env.DB, row.id, turn, Date.now())) === undefined) return false
  const items = await itemsOf(env, row)
  for (const item of items) if (item.turn === turn) await deleteItem(env, asker, row, item)
  await deleteTurn(env.DB, row.id, turn)
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
  const ttls = await ttlsOf(env.DB, models).catch(() => new Map<string, number>())
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

// =============================================================================
// Conversations as memories: created before anything is said, and filled with messages that no turn made. The
// façade has checked before (openMemory) whose the conversation is and whether the caller may open it.

/** A memory's record, for the calls that follow. */
export type MemoryRow = ConversationRow

/** The model id of messages that no model wrote. */
const NO_MODEL = 'opensearch'

interface NewMemory {
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
  const rows = await pageOfConversations(env.DB, scope, by, { ...page, now: Date.now() })
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
  const details = await mergeDetails(env.DB, row.id, patch, name, Date.now())
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
  const db = env.DB
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
  return pairs(memoryId, await messagesBeforeTurns(env.DB, memoryId, 2 * most)).slice(0, most)
}

/** The most transcript messages to list. No page reaches further. */
const MOST_BEFORE = 10_000

/** Finds a message by its place; undefined if there is none. */
export async function findMessage(
  env: Cloudflare.Env,
  { memoryId, turn, before, trace }: Pick<MessageView, 'memoryId' | 'turn' | 'before' | 'trace'>,
): Promise<MessageView | undefined> {
  if (before !== undefined) return (await beforeTurns(env, memoryId, before + 1))[before]
  const row = await findMessageTurn(env.DB, memoryId, turn, Date.now())
  if (row === undefined) return undefined
  return trace === undefined ? messageOf(row) : tracesOf(row).find((each) => each.trace === trace)
}

/** The traces of a message, by their numbers. */
export async function listTraces(
  env: Cloudflare.Env,
  memoryId: string,
  turn: number,
): Promise<MessageView[]> {
  const row = await findMessageTurn(env.DB, memoryId, turn, Date.now())
  return row === undefined ? [] : tracesOf(row).sort((a, b) => a.traceNumber! - b.traceNumber!)
}

/** @returns its place among the message's traces; undefined if there is no such message */
export const addTraceTo = (
  env: Cloudflare.Env,
  memoryId: string,
  turn: number,
  trace: NewTrace,
): Promise<number | undefined> => addTrace(env.DB, memoryId, turn, { ...trace, created: Date.now() })

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
  return mergeMessage(env.DB, row.id, message.turn, patch, response)
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
  const db = env.DB
  if ((await findResource(db, 'memory_store', what)) === undefined && !(await isAny(db, what))) return false
  noted.add(what)
  return true
}

// Memories and their messages as OpenSearch shows them, read from rows of D1.

const Info = once(() => v.record(v.string(), v.unknown()))

const Details = once(() =>
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

type NewTrace = Omit<v.InferInput<ReturnType<typeof Trace>>, 'created' | 'version' | 'updated'>

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

/** The place of the first trace that is a call of a tool. Those that clients added have smaller ones. */
const FIRST_CALL = 100_000

/** The calls of tools in a turn, which OpenSearch's agents keep as traces, and the traces that clients added. */
function tracesOf(row: MessageTurn): MessageView[] {
  const { conversationId: memoryId, turn, createdAt: created } = row
  const calls = callsOf(fromStored(row.answer, row.parts)).map(
    ({ name, arguments: input, result: response }, at): MessageView => ({
      memoryId,
      turn,
      trace: FIRST_CALL + at,
      traceNumber: at + 1,
      input,
      response,
      origin: name,
      version: 1,
      created,
    }),
  )
  const list = row.traces === null ? [] : v.parse(v.array(Trace()), JSON.parse(row.traces))
  const added = list.map(
    (
      { input, response, prompt_template, origin, additional_info, trace_number, created },
      trace,
    ): MessageView => ({
      memoryId,
      turn,
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
  return [...calls, ...added]
}
