/** OpenSearch's conversation memory: both generations over one history. */
import { deleteConversation } from '../../conversation/expiry'
import {
  addMessage,
  addTraceTo,
  changeMemory,
  changeMessage,
  createMemory,
  findMessage,
  isJudged,
  listMemories,
  listMessages,
  listTraces,
  type MemoryRow,
  type MemoryView,
  type MessageView,
  memoryOf,
  wasEver,
} from '../../conversation/messages'
import { byteLength } from '../../turn/prompt'
import type { Asker } from '../../turn/request'
import { originOf } from '../http/request-log'
import type { Call } from '../http/router'
import { illegalArgument, incomplete, notANumber, OpenSearchError, parseError } from './errors'
import { searchEntries } from './json-query'
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
import { isObject, type Json, readObject, routesOf } from './route'
import { tooFar, WINDOW } from './search'

// =============================================================================
// Bodies, pages and shapes of memories and messages, in the wording of both generations.

/** Bytes of one message. A row of the database holds 2 MB, including everything beside the message. */
const MOST_BYTES = 1_000_000

/** Reads a body whose values are texts; numbers and booleans become text. @throws ApiError 400 */
async function readTexts(request: Request): Promise<Record<string, string>> {
  return textsIn(await readObject(request, {}))
}

function textsIn(body: Json, except = ''): Record<string, string> {
  return Object.fromEntries(
    Object.entries(body).flatMap(([key, value]) => {
      if (key === except || value === null) return []
      if (typeof value === 'object') throw parseError(`Can't get text on a START_OBJECT at [${key}]`)
      return [[key, String(value)]]
    }),
  )
}

/** `additional_info` of the second generation. @param nested whether its values may be anything */
function infoIn(value: unknown, nested: boolean): Record<string, unknown> | undefined {
  if (value === undefined || value === null) return undefined
  // OpenSearch's own tests send a text. It is stored where the RAG processor stores its own.
  if (typeof value === 'string') return { metadata: value }
  if (!isObject(value)) throw parseError('[additional_info] has to be an object')
  return nested ? value : textsIn(value)
}

interface NewMessage {
  input: string
  response: string
  prompt_template?: string
  origin?: string
  info?: Record<string, unknown>
  parent?: string
  traceNumber?: number
}

/** @throws ApiError 400, 413 */
function messageIn(body: Json, generation: 1 | 2): NewMessage {
  const { additional_info: given, trace_number: number, ...rest } = body
  const { input = '', response = '', prompt_template, origin, parent_message_id: parent } = textsIn(rest)
  if (generation === 1 && isObject(given))
    throw parseError("Can't get text on a START_OBJECT at [additional_info]")
  const info = infoIn(
    generation === 1 && given !== undefined && given !== null ? String(given) : given,
    false,
  )
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
  const traceNumber = number === undefined || number === null ? undefined : Number(number)
  if (traceNumber !== undefined && !Number.isSafeInteger(traceNumber)) throw notANumber(number)
  return {
    input,
    response,
    ...(prompt_template !== undefined && { prompt_template }),
    ...(origin !== undefined && { origin }),
    ...(info !== undefined && { info }),
    // Only both together make a trace.
    ...(parent !== undefined && traceNumber !== undefined && { parent, traceNumber }),
  }
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
const userOf = ({ owner }: MemoryView): Json => (owner === 'admin' ? {} : { user: owner })

const conversationShown = (memory: MemoryView): Json => ({
  conversation_id: memory.id,
  create_time: time(memory.created),
  name: memory.name ?? '',
  ...userOf(memory),
})

const memoryShown = (memory: MemoryView): Json => ({
  memory_id: memory.id,
  create_time: time(memory.created),
  updated_time: time(memory.updated),
  name: memory.name,
  ...(memory.info !== undefined && { additional_info: memory.info }),
  ...userOf(memory),
})

const interactionShown = (message: MessageView): Json => {
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

export const messageShown = (message: MessageView): Json => {
  const { memoryId, turn, trace, traceNumber, created, updated, info } = message
  const texts = {
    input: message.input,
    prompt_template: message.promptTemplate,
    response: message.response,
    origin: message.origin,
  }
  return {
    memory_id: memoryId,
    message_id: messageIdOf(message),
    create_time: time(created),
    updated_time: time(updated ?? created),
    ...Object.fromEntries(
      Object.entries(texts).filter(([, text]) => text !== undefined && text.trim() !== ''),
    ),
    ...(info !== undefined && { additional_info: info }),
    ...(trace !== undefined && {
      parent_message_id: messageIdOf({ memoryId, turn }),
      trace_number: traceNumber,
    }),
  }
}

// =============================================================================
// Memories: conversations to create, list, rename, search and delete.

const META = '.plugins-ml-memory-meta'
/** Memories that a search covers: the latest. */
const MOST_SEARCHED = 10_000

async function createConversation(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const { name } = await readTexts(call.request)
  const asker = await askerFor(call, 'conversations:create')
  return { conversation_id: await createMemory(call.env, asker, { name: name ?? null }) }
}

async function create(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const { name, application_type: type, additional_info } = await readObject(call.request, {})
  const info = infoIn(additional_info, false)
  const asker = await askerFor(call, 'conversations:create')
  const memory_id = await createMemory(call.env, asker, {
    name: name === undefined || name === null ? null : String(name),
    ...(type !== undefined && type !== null && { application_type: String(type) }),
    ...(info !== undefined && { additional_info: info }),
  })
  return { memory_id }
}

async function listConversations(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const page = pageOf(call, 'memories')
  const memories = await listMemories(call.env, await askerFor(call, 'conversations:list'), 'createdAt', page)
  return listed('conversations', memories.map(conversationShown), page)
}

async function list(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const page = pageOf(call, 'memories')
  const memories = await listMemories(call.env, await askerFor(call, 'conversations:list'), 'updatedAt', page)
  return listed('memories', memories.map(memoryShown), page)
}

/** A store that was never used says so instead of "not found". @throws the given error, or that one */
async function virgin(
  { env }: Pick<Call, 'env'>,
  error: unknown,
  what: 'conversation' | 'turn',
  message: string,
): Promise<never> {
  if (error instanceof OpenSearchError && error.status === 404 && !(await wasEver(env, what))) {
    const index = what === 'conversation' ? META : '.plugins-ml-memory-message'
    throw new OpenSearchError(404, 'index_not_found_exception', `no such index [${index}] and ${message}`, {
      index,
    })
  }
  throw error
}

async function getMemory(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const asker = await askerFor(call, 'conversations:get')
  const row = await openMemory(call, asker, call.path.id!, 2).catch((error) =>
    virgin(call, error, 'conversation', 'cannot get memory since the memory index does not exist'),
  )
  return memoryShown(memoryOf(row))
}

async function updateMemory(call: Call): Promise<Json> {
  const { env, path, request } = call
  await requireMemory(env)
  const { name, additional_info } = await readObject(request, {})
  const info = infoIn(additional_info, true)
  if (name === undefined && info === undefined) {
    throw parseError('Failed to update conversation: Request body is empty')
  }
  const asker = await askerFor(call, 'conversations:create')
  const row = await openMemory(call, asker, path.id!, 2).catch((error) =>
    virgin(call, error, 'conversation', 'cannot update memory since the memory index does not exist'),
  )
  const version = await changeMemory(env, asker, row, {
    ...(name !== undefined && name !== null && { name: String(name) }),
    ...(info !== undefined && { additional_info: info }),
  })
  return written(META, row.id, 'updated', version)
}

async function deleted(call: Call, asker: Asker, generation: Generation): Promise<void> {
  const { id } = await openMemory(call, asker, call.path.id!, generation)
  await deleteConversation(call.env, asker, id, originOf(call.record))
}

const remove =
  (generation: Generation) =>
  async (call: Call): Promise<Json> => {
    await requireMemory(call.env)
    const id = call.path.id!
    try {
      await deleted(call, await askerFor(call, 'conversations:delete'), generation)
      return { success: true }
    } catch (error) {
      if (!(error instanceof OpenSearchError)) throw error
      if (error.type === 'resource_not_found_exception') {
        if (await wasEver(call.env, 'conversation')) throw error
        return { success: true }
      }
      if (generation === 1 && error.type === 'security_exception') return { success: false }
      if (error.status !== 401) throw error
      const reason = `Resources not found. Failed to delete the memory for ${id}`
      throw new OpenSearchError(404, 'status_exception', reason)
    }
  }

async function searchMemories(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const body = await readObject(call.request, {})
  const asker = await askerFor(call, 'conversations:list')
  const memories = await listMemories(call.env, asker, 'updatedAt', { limit: MOST_SEARCHED, offset: 0 })
  const entries = memories.map((memory) => {
    const { memory_id: _, name, ...shown } = memoryShown(memory)
    const type = memory.applicationType
    const source = {
      ...shown,
      ...(name !== null && { name }),
      ...(type !== undefined && { application_type: type }),
    }
    return { _index: META, _id: memory.id, _version: memory.version, _source: source }
  })
  return searchEntries(entries, body, call.query)
}

// =============================================================================
// Messages: what turns of any protocol said in a memory, and what was added without a turn.

const MESSAGES = '.plugins-ml-memory-message'
/** Messages of a memory that a search covers: the latest. */
const MOST_MESSAGES_SEARCHED = 1_000

const adding =
  (generation: Generation) =>
  async (call: Call): Promise<string> => {
    await requireMemory(call.env)
    const message = messageIn(await readObject(call.request, generation === 1 ? {} : undefined), generation)
    const asker = await askerFor(call, 'conversations:create')
    const row = await openMemory(call, asker, call.path.id!, generation)
    if (message.parent !== undefined) return addTrace(call, row, message, message.parent)
    await requireTrusted(call, row)
    const { input, response, prompt_template, origin, info } = message
    const more = {
      ...(prompt_template !== undefined && { prompt_template }),
      ...(origin !== undefined && { origin }),
      ...(info !== undefined && { additional_info: info }),
    }
    const turn = await addMessage(call.env, asker, row, { input, response, more })
    return messageIdOf({ memoryId: row.id, turn })
  }

/**
 * Messages that are written into a history become part of later prompts, and no guardrail judges them.
 * @throws OpenSearchError 403 for a key made for pages, 400 where the conversation's model has a guardrail
 */
async function requireTrusted({ env, access }: Call, row: MemoryRow): Promise<void> {
  if (access.forPages) {
    throw new OpenSearchError(
      403,
      'security_exception',
      'A key made for pages cannot write messages into a history. Use a key without limits, from a server.',
    )
  }
  if (!(await isJudged(env, row))) return
  throw illegalArgument(
    `The model [${row.modelId}] of this memory has an [input_guardrail_prompt], which does not judge messages that are written into the history. Ask the question as a turn instead.`,
  )
}

async function addTrace(
  { env }: Call,
  row: MemoryRow,
  { input, response, prompt_template, origin, info, traceNumber }: NewMessage,
  parentId: string,
): Promise<string> {
  const parent = parseMessageId(parentId)
  if (parent?.memoryId !== row.id || parent.before !== undefined) throw notFound('Message', parentId)
  const trace = await addTraceTo(env, row.id, parent.turn, {
    input,
    response,
    ...(prompt_template !== undefined && { prompt_template }),
    ...(origin !== undefined && { origin }),
    ...(info !== undefined && { additional_info: info }),
    trace_number: traceNumber!,
  })
  if (trace === undefined) throw notFound('Message', parentId)
  return messageIdOf({ memoryId: row.id, turn: parent.turn, trace })
}

const createInteraction = async (call: Call): Promise<Json> => ({
  interaction_id: await adding(1)(call),
})

const createMessage = async (call: Call): Promise<Json> => ({ message_id: await adding(2)(call) })

/** Lists the messages of a memory. A store that never had one has none, whatever the id. */
const listing =
  (generation: Generation, name: string, order: 'asc' | 'desc', shown: (message: MessageView) => Json) =>
  async (call: Call): Promise<Json> => {
    await requireMemory(call.env)
    const page = pageOf(call, 'messages')
    const asker = await askerFor(call, 'conversations:get')
    try {
      const { id } = await openMemory(call, asker, call.path.id!, generation)
      return listed(name, (await listMessages(call.env, id, order, page)).map(shown), page)
    } catch (error) {
      const isUnknown = error instanceof OpenSearchError && error.status === 404
      if (isUnknown && !(await wasEver(call.env, 'turn'))) return { [name]: [] }
      throw error
    }
  }

const listInteractions = listing(1, 'interactions', 'desc', interactionShown)
const messagesPage = listing(2, 'messages', 'asc', messageShown)

interface Found {
  asker: Asker
  message: MessageView
  row: MemoryRow
}

/** @param word with which its errors begin. @throws ApiError */
async function open(call: Call, action: string, word = 'Message'): Promise<Found> {
  const id = call.path.id!
  const place = parseMessageId(id)
  const asker = await askerFor(call, action)
  const unknown = notFound(word, id)
  if (place === undefined) throw unknown
  const row = await openMemory(call, asker, place.memoryId, 2).catch((error) => {
    if (!(error instanceof OpenSearchError)) throw error
    throw error.status === 401 ? denied(call.access, 'message', id, 2) : unknown
  })
  const message = await findMessage(call.env, place)
  if (message === undefined) throw unknown
  return { asker, message, row }
}

async function getMessage(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const { message } = await open(call, 'conversations:get').catch((error) =>
    virgin(call, error, 'turn', 'cannot get message since the messages index does not exist'),
  )
  return messageShown(message)
}

async function updateMessage(call: Call): Promise<Json> {
  const { env, request, path } = call
  await requireMemory(env)
  const { additional_info, response } = await readObject(request, {})
  const info = infoIn(additional_info, true)
  if (info === undefined && response === undefined) {
    throw parseError('Failed to update interaction: Request body is empty')
  }
  const { asker, message, row } = await open(call, 'conversations:create', 'message').catch((error) =>
    virgin(call, error, 'turn', 'cannot update message since the message index does not exist'),
  )
  if (message.before !== undefined || message.trace !== undefined) {
    throw illegalArgument('Only messages of turns can be changed.')
  }
  if (response !== undefined && response !== null) await requireTrusted(call, row)
  const version = await changeMessage(env, asker, row, message, {
    ...(info !== undefined && { info }),
    ...(response !== undefined && response !== null && { response: String(response) }),
  })
  return written(MESSAGES, path.id!, 'updated', version)
}

async function traces(call: Call): Promise<Json> {
  const page = pageOf(call, 'messages')
  const found = await open(call, 'conversations:get').catch(async (error) => {
    if (error instanceof OpenSearchError && error.status === 404 && !(await wasEver(call.env, 'turn')))
      return undefined
    throw error
  })
  if (found === undefined) return { traces: [] }
  const all = await listTraces(call.env, found.row.id, found.message.turn)
  const { limit, offset } = page
  return listed('traces', all.slice(offset, offset + limit).map(messageShown), page)
}

async function searchMessages(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const body = await readObject(call.request, {})
  const { id } = await openMemory(call, await askerFor(call, 'conversations:get'), call.path.id!, 2)
  const page = { limit: MOST_MESSAGES_SEARCHED, offset: 0 }
  const latest = (await listMessages(call.env, id, 'desc', page)).reverse()
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
const PAGE = ['max_results', 'next_token']
const SEARCH = ['from', 'size', 'sort', '_source', '_source_includes', '_source_excludes']
const CREATE = ['conversations:create']
const READ = ['conversations:get']
const LIST = ['conversations:list']
const DELETE = ['conversations:delete']

export const memoryRoutes = routesOf([
  ['POST', `${BASE}/conversation`, CREATE, createConversation],
  ['GET', `${BASE}/conversation`, LIST, listConversations, PAGE],
  ['POST', `${BASE}/conversation/:id`, CREATE, createInteraction],
  ['GET', `${BASE}/conversation/:id`, READ, listInteractions, PAGE],
  ['DELETE', `${BASE}/conversation/:id`, DELETE, remove(1)],
  ['GET POST', `${BASE}/_search`, LIST, searchMemories, SEARCH],
  ['GET', `${BASE}/message/:id`, READ, getMessage],
  ['PUT', `${BASE}/message/:id`, CREATE, updateMessage],
  ['GET', `${BASE}/message/:id/traces`, READ, traces, PAGE],
  ['POST', BASE, CREATE, create],
  ['GET', BASE, LIST, list, PAGE],
  ['GET', `${BASE}/:id`, READ, getMemory],
  ['PUT', `${BASE}/:id`, CREATE, updateMemory],
  ['DELETE', `${BASE}/:id`, DELETE, remove(2)],
  ['POST', `${BASE}/:id/messages`, CREATE, createMessage],
  ['GET', `${BASE}/:id/messages`, READ, messagesPage, PAGE],
  ['GET POST', `${BASE}/:id/_search`, READ, searchMessages, SEARCH],
])
