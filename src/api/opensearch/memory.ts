/** OpenSearch's conversation memory: both generations over one history. */
import type { SaidMessage } from '../../conversation/conversation-object'
import { deleteConversation } from '../../conversation/expiry'
import * as stored from '../../conversation/messages'
import { byteLength } from '../../turn/prompt'
import { originOf } from '../http/request-log'
import type { Call } from '../http/router'
import { illegalArgument, incomplete, notANumber, OpenSearchError, parseError, statusError } from './errors'
import { LIST_PARAMETERS, searchEntries } from './json-query'
import {
  askerFor,
  denied,
  type Generation,
  messageIdOf,
  notFound,
  openMemory,
  parseMessageId,
  requireMemory,
} from './memory-access'
import { written } from './ml'
import { defined, isObject, type Json, type RouteRow, readObject } from './route'
import { tooFar, WINDOW } from './search'

// =============================================================================
// Bodies, pages and shapes of memories and messages, in the wording of both generations.

/** Bytes of one message. A row of the database holds 2 MB, including everything beside the message. */
const MOST_BYTES = 1_000_000

/** A body whose values are texts; numbers and booleans become text. @throws ApiError 400 */
function textsIn(body: Json, except = ''): Record<string, string> {
  return Object.fromEntries(
    Object.entries(body).flatMap(([key, value]) => {
      if (key === except || value === null) return []
      if (typeof value === 'object') throw parseError(`Can't get text on a START_OBJECT at [${key}]`)
      return [[key, String(value)]]
    }),
  )
}

/** A value as a text; none for null. */
const textOf = (value: unknown): string | undefined =>
  value === undefined || value === null ? undefined : String(value)

/** `additional_info` of the second generation. @param nested whether its values may be anything */
function infoIn(value: unknown, nested: boolean): Record<string, unknown> | undefined {
  if (value === undefined || value === null) return undefined
  // OpenSearch's own tests send a text. It is stored where the RAG processor stores its own.
  if (typeof value === 'string') return { metadata: value }
  if (!isObject(value)) throw parseError('[additional_info] has to be an object')
  return nested ? value : textsIn(value)
}

/** `parent` and `traceNumber` make it a trace: the id of its message, and its number. @throws ApiError 400, 413 */
function messageIn(body: Json, generation: Generation) {
  const { additional_info: given, trace_number: number, ...rest } = body
  const { input = '', response = '', prompt_template, origin, parent_message_id: parent } = textsIn(rest)
  if (generation === 1 && isObject(given))
    throw parseError("Can't get text on a START_OBJECT at [additional_info]")
  const info = infoIn(generation === 1 ? textOf(given) : given, false)
  const texts = [input, response, prompt_template, origin]
  const isEmpty =
    texts.every((text) => text === undefined || text.trim() === '') && Object.keys(info ?? {}).length === 0
  if (generation === 2 && isEmpty) {
    throw illegalArgument(
      'At least one of the following parameters must be non-empty: input, prompt_template, response, origin, additional_info',
    )
  }
  if (byteLength(JSON.stringify([texts, info])) > MOST_BYTES) {
    throw new OpenSearchError(413, 'illegal_argument_exception', `A message may hold ${MOST_BYTES} bytes.`)
  }
  const traceNumber = (number ?? undefined) === undefined ? undefined : Number(number)
  if (traceNumber !== undefined && !Number.isSafeInteger(traceNumber)) throw notANumber(number)
  const more = defined({ prompt_template, origin, additional_info: info })
  return { input, response, more, parent, traceNumber }
}

function whole(query: Record<string, string>, name: string, otherwise: number): number {
  const text = query[name]
  if (text === undefined) return otherwise
  if (!/^[+-]?\d{1,10}$/.test(text)) throw notANumber(text)
  return Number(text)
}

interface Page {
  limit: number
  offset: number
}

/** The page that a request asks for. @throws ApiError 400 in the words of its list */
function pageOf({ query }: Pick<Call, 'query'>, list: 'memories' | 'messages'): Page {
  const limit = whole(query, 'max_results', 10)
  const offset = whole(query, 'next_token', 0)
  const faults: string[] = []
  if (list === 'memories') {
    if (limit < 1) faults.push("Can't list 0 or negative conversations")
    if (limit > 0 && offset < 0)
      throw illegalArgument(`[from] parameter cannot be negative but was [${offset}]`)
  } else {
    if (limit < 1) faults.push('The number of interactions to retrieve must be positive')
    if (offset < 0) faults.push('The starting position must be nonnegative')
  }
  if (faults.length > 0) throw incomplete(...faults)
  if (limit + offset > WINDOW) throw illegalArgument(tooFar(limit + offset))
  return { limit, offset }
}

/** A full page has a token, whether or not anything follows. */
const listed = (name: string, items: Json[], { limit, offset }: Page): Json => ({
  [name]: items,
  ...(items.length === limit && { next_token: offset + limit }),
})

const time = (milliseconds: number): string => new Date(milliseconds).toISOString()

/** The owner, if it is an API key and not the admin key. */
const userOf = ({ owner }: stored.MemoryView): Json => (owner === 'admin' ? {} : { user: owner })

const conversationShown = (memory: stored.MemoryView): Json => ({
  conversation_id: memory.id,
  create_time: time(memory.created),
  name: memory.name ?? '',
  ...userOf(memory),
})

const memoryShown = (memory: stored.MemoryView): Json => ({
  memory_id: memory.id,
  create_time: time(memory.created),
  updated_time: time(memory.updated),
  name: memory.name,
  additional_info: memory.info,
  ...userOf(memory),
})

const interactionShown = (message: stored.MessageView): Json => {
  const { info } = message
  return {
    conversation_id: message.memoryId,
    interaction_id: messageIdOf(message),
    create_time: time(message.created),
    input: message.input ?? null,
    prompt_template: message.promptTemplate ?? null,
    response: message.response ?? null,
    origin: message.origin ?? null,
    ...(info !== undefined && {
      additional_info:
        Object.keys(info).length === 1 && typeof info.metadata === 'string'
          ? info.metadata
          : JSON.stringify(info),
    }),
  }
}

/** A text that says something. */
const unlessBlank = (text: string | undefined) => (text?.trim() === '' ? undefined : text)

export const messageShown = (message: stored.MessageView): Json => {
  const { memoryId, turn, trace, traceNumber, created, updated, info } = message
  return {
    memory_id: memoryId,
    message_id: messageIdOf(message),
    create_time: time(created),
    updated_time: time(updated ?? created),
    input: unlessBlank(message.input),
    prompt_template: unlessBlank(message.promptTemplate),
    response: unlessBlank(message.response),
    origin: unlessBlank(message.origin),
    additional_info: info,
    ...(trace !== undefined && {
      parent_message_id: messageIdOf({ memoryId, turn }),
      trace_number: traceNumber,
    }),
  }
}

// =============================================================================
// Memories: conversations to create, list, rename, search and delete.

const META = '.plugins-ml-memory-meta'
const MESSAGES = '.plugins-ml-memory-message'
/** Memories that a search covers: the latest. */
const MOST_SEARCHED = 10_000

async function createConversation(call: Call): Promise<Json> {
  const { name } = textsIn(await readObject(call.request, {}))
  const asker = await askerFor(call, 'conversations:create')
  return { conversation_id: await stored.createMemory(call.env, asker, { name: name ?? null }) }
}

async function create(call: Call): Promise<Json> {
  const { name, application_type: type, additional_info } = await readObject(call.request, {})
  const info = infoIn(additional_info, false)
  const asker = await askerFor(call, 'conversations:create')
  const application_type = textOf(type)
  const given = defined({ application_type, additional_info: info })
  return { memory_id: await stored.createMemory(call.env, asker, { name: textOf(name) ?? null, ...given }) }
}

const list =
  (name: string, order: 'createdAt' | 'updatedAt', shown: (memory: stored.MemoryView) => Json) =>
  async (call: Call): Promise<Json> => {
    const page = pageOf(call, 'memories')
    const asker = await askerFor(call, 'conversations:list')
    return listed(name, (await stored.listMemories(call.env, asker, order, page)).map(shown), page)
  }

type Store = 'conversation' | 'turn'

/** Whether nothing was found in a store that was never used. */
const isVirgin = async (env: Cloudflare.Env, error: unknown, what: Store): Promise<boolean> =>
  error instanceof OpenSearchError && error.status === 404 && !(await stored.wasEver(env, what))

/**
 * What a memory or a message was opened for. A store that was never used says so instead of "not found".
 * @param cannot `get message since the messages`, of a sentence of OpenSearch's
 * @throws as `opening` does
 */
async function unlessVirgin<T>(call: Call, what: Store, cannot: string, opening: Promise<T>): Promise<T> {
  try {
    return await opening
  } catch (error) {
    if (!(await isVirgin(call.env, error, what))) throw error
    const index = what === 'conversation' ? META : MESSAGES
    const reason = `no such index [${index}] and cannot ${cannot} index does not exist`
    throw new OpenSearchError(404, 'index_not_found_exception', reason, { index })
  }
}

async function openAt(call: Call, action: string, verb: string) {
  const asker = await askerFor(call, action)
  const opening = openMemory(call, asker, call.path.id!, 2)
  const row = await unlessVirgin(call, 'conversation', `${verb} memory since the memory`, opening)
  return { asker, row }
}

async function getMemory(call: Call): Promise<Json> {
  const { row } = await openAt(call, 'conversations:get', 'get')
  return memoryShown(stored.memoryOf(row))
}

async function updateMemory(call: Call): Promise<Json> {
  const { env, request } = call
  const { name, additional_info } = await readObject(request, {})
  const info = infoIn(additional_info, true)
  if (name === undefined && info === undefined) {
    throw parseError('Failed to update conversation: Request body is empty')
  }
  const { asker, row } = await openAt(call, 'conversations:create', 'update')
  const change = defined({ name: textOf(name), additional_info: info })
  const version = await stored.changeMemory(env, asker, row, change)
  return written(META, row.id, 'updated', version)
}

const remove =
  (generation: Generation) =>
  async (call: Call): Promise<Json> => {
    const id = call.path.id!
    try {
      const asker = await askerFor(call, 'conversations:delete')
      const { id: opened } = await openMemory(call, asker, id, generation)
      await deleteConversation(call.env, asker, opened, originOf(call.record))
      return { success: true }
    } catch (error) {
      if (!(error instanceof OpenSearchError)) throw error
      if (error.type === 'resource_not_found_exception') {
        if (await stored.wasEver(call.env, 'conversation')) throw error
        return { success: true }
      }
      if (generation === 1 && error.type === 'security_exception') return { success: false }
      if (error.status !== 401) throw error
      const reason = `Resources not found. Failed to delete the memory for ${id}`
      throw statusError(404, reason)
    }
  }

async function searchMemories(call: Call): Promise<Json> {
  const body = await readObject(call.request, {})
  const asker = await askerFor(call, 'conversations:list')
  const memories = await stored.listMemories(call.env, asker, 'updatedAt', {
    limit: MOST_SEARCHED,
    offset: 0,
  })
  const entries = memories.map((memory) => {
    const { memory_id: _, name, ...shown } = memoryShown(memory)
    const source = { ...shown, name: name ?? undefined, application_type: memory.applicationType }
    return { _index: META, _id: memory.id, _version: memory.version, _source: source }
  })
  return searchEntries(entries, body, call.query)
}

// =============================================================================
// Messages: what turns of any protocol said in a memory, and what was added without a turn.

/** Messages of a memory that a search covers: the latest. */
const MOST_MESSAGES_SEARCHED = 1_000

const adding =
  (generation: Generation, name: string) =>
  async (call: Call): Promise<Json> => {
    const message = messageIn(await readObject(call.request, generation === 1 ? {} : undefined), generation)
    const asker = await askerFor(call, 'conversations:create')
    const row = await openMemory(call, asker, call.path.id!, generation)
    const { parent, traceNumber, ...said } = message
    // Only both together make a trace.
    if (parent !== undefined && traceNumber !== undefined)
      return { [name]: await addTrace(call, row, said, parent, traceNumber) }
    await requireTrusted(call, row)
    const turn = await stored.addMessage(call.env, asker, row, said)
    return { [name]: messageIdOf({ memoryId: row.id, turn }) }
  }

/**
 * Messages that are written into a history become part of later prompts, and no guardrail judges them.
 * @throws OpenSearchError 403 for a key made for pages, 400 where the conversation's model has a guardrail
 */
export async function requireTrusted({ env, access }: Call, row: stored.MemoryRow): Promise<void> {
  if (access.forPages) {
    throw new OpenSearchError(
      403,
      'security_exception',
      'A key made for pages cannot write messages into a history. Use a key without limits, from a server.',
    )
  }
  if (!(await stored.isJudged(env, row))) return
  throw illegalArgument(
    `The model [${row.modelId}] of this memory has an [input_guardrail_prompt], which does not judge messages that are written into the history. Ask the question as a turn instead.`,
  )
}

async function addTrace(
  { env }: Call,
  row: stored.MemoryRow,
  { input, response, more }: SaidMessage,
  parentId: string,
  traceNumber: number,
): Promise<string> {
  const parent = parseMessageId(parentId)
  if (parent?.memoryId !== row.id || parent.before !== undefined) throw notFound('Message', parentId)
  const said = { input, response, ...more, trace_number: traceNumber }
  const trace = await stored.addTraceTo(env, row.id, parent.turn, said)
  if (trace === undefined) throw notFound('Message', parentId)
  return messageIdOf({ memoryId: row.id, turn: parent.turn, trace })
}

/** Lists the messages of a memory. A store that never had one has none, whatever the id. */
const listing =
  (
    generation: Generation,
    name: string,
    order: 'asc' | 'desc',
    shown: (message: stored.MessageView) => Json,
  ) =>
  async (call: Call): Promise<Json> => {
    const page = pageOf(call, 'messages')
    const asker = await askerFor(call, 'conversations:get')
    try {
      const { id } = await openMemory(call, asker, call.path.id!, generation)
      return listed(name, (await stored.listMessages(call.env, id, order, page)).map(shown), page)
    } catch (error) {
      if (await isVirgin(call.env, error, 'turn')) return { [name]: [] }
      throw error
    }
  }

/** @param word with which its errors begin. @throws ApiError */
async function open(call: Call, action: string, word = 'Message') {
  const id = call.path.id!
  const place = parseMessageId(id)
  const asker = await askerFor(call, action)
  const unknown = notFound(word, id)
  if (place === undefined) throw unknown
  const row = await openMemory(call, asker, place.memoryId, 2).catch((error) => {
    if (!(error instanceof OpenSearchError)) throw error
    throw error.status === 401 ? denied(call.access, 'message', id, 2) : unknown
  })
  const message = await stored.findMessage(call.env, place)
  if (message === undefined) throw unknown
  return { asker, message, row }
}

async function getMessage(call: Call): Promise<Json> {
  const opening = open(call, 'conversations:get')
  const { message } = await unlessVirgin(call, 'turn', 'get message since the messages', opening)
  return messageShown(message)
}

async function updateMessage(call: Call): Promise<Json> {
  const { env, request, path } = call
  const { additional_info, response } = await readObject(request, {})
  const info = infoIn(additional_info, true)
  if (info === undefined && response === undefined) {
    throw parseError('Failed to update interaction: Request body is empty')
  }
  const opening = open(call, 'conversations:create', 'message')
  const found = await unlessVirgin(call, 'turn', 'update message since the message', opening)
  const { asker, message, row } = found
  if (message.before !== undefined || message.trace !== undefined) {
    throw illegalArgument('Only messages of turns can be changed.')
  }
  const change = defined({ info, response: textOf(response) })
  if (change.response !== undefined) await requireTrusted(call, row)
  const version = await stored.changeMessage(env, asker, row, message, change)
  return written(MESSAGES, path.id!, 'updated', version)
}

async function traces(call: Call): Promise<Json> {
  const page = pageOf(call, 'messages')
  const found = await open(call, 'conversations:get').catch(async (error) => {
    if (!(await isVirgin(call.env, error, 'turn'))) throw error
  })
  if (found === undefined) return { traces: [] }
  const all = await stored.listTraces(call.env, found.row.id, found.message.turn)
  const { limit, offset } = page
  return listed('traces', all.slice(offset, offset + limit).map(messageShown), page)
}

async function searchMessages(call: Call): Promise<Json> {
  const body = await readObject(call.request, {})
  const { id } = await openMemory(call, await askerFor(call, 'conversations:get'), call.path.id!, 2)
  const page = { limit: MOST_MESSAGES_SEARCHED, offset: 0 }
  const latest = (await stored.listMessages(call.env, id, 'desc', page)).reverse()
  const entries = latest.map((message) => {
    const { message_id, ...source } = messageShown(message)
    return { _index: MESSAGES, _id: String(message_id), _version: message.version, _source: source }
  })
  return searchEntries(entries, body, call.query)
}

// =============================================================================
// Routes of conversation memory: both generations over one history. Routes of the first generation come first.
// Otherwise `conversation` would be taken for a memory's id.

const BASE = '/_plugins/_ml/memory'
const PAGE = 'max_results next_token'
const CREATE = ['conversations:create']
const READ = ['conversations:get']
const LIST = ['conversations:list']
const DELETE = ['conversations:delete']

const rows: RouteRow[] = [
  ['POST', `${BASE}/conversation`, CREATE, createConversation],
  ['GET', `${BASE}/conversation`, LIST, list('conversations', 'createdAt', conversationShown), PAGE],
  ['POST', `${BASE}/conversation/:id`, CREATE, adding(1, 'interaction_id')],
  ['GET', `${BASE}/conversation/:id`, READ, listing(1, 'interactions', 'desc', interactionShown), PAGE],
  ['DELETE', `${BASE}/conversation/:id`, DELETE, remove(1)],
  ['GET POST', `${BASE}/_search`, LIST, searchMemories, LIST_PARAMETERS],
  ['GET', `${BASE}/message/:id`, READ, getMessage],
  ['PUT', `${BASE}/message/:id`, CREATE, updateMessage],
  ['GET', `${BASE}/message/:id/traces`, READ, traces, PAGE],
  ['POST', BASE, CREATE, create],
  ['GET', BASE, LIST, list('memories', 'updatedAt', memoryShown), PAGE],
  ['GET', `${BASE}/:id`, READ, getMemory],
  ['PUT', `${BASE}/:id`, CREATE, updateMemory],
  ['DELETE', `${BASE}/:id`, DELETE, remove(2)],
  ['POST', `${BASE}/:id/messages`, CREATE, adding(2, 'message_id')],
  ['GET', `${BASE}/:id/messages`, READ, listing(2, 'messages', 'asc', messageShown), PAGE],
  ['GET POST', `${BASE}/:id/_search`, READ, searchMessages, LIST_PARAMETERS],
]

export const memoryRoutes = rows.map(([methods, path, actions, handle, params]): RouteRow => {
  /** Says first whether the feature is switched off. OpenSearch lists traces in any case. */
  const guarded: typeof handle = async (call) => {
    if (handle !== traces) await requireMemory(call.env)
    return handle(call)
  }
  return [methods, path, actions, guarded, params]
})
