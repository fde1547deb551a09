/** Messages: what turns of any protocol said in a memory, and what was added without a turn. */
import {
  addMessage,
  addTraceTo,
  changeMessage,
  findMessage,
  isJudged,
  listMessages,
  listTraces,
  type MemoryRow,
  type MessageView,
  wasEver,
} from '../../../conversation/memories'
import type { Asker } from '../../../turn/request'
import type { Call } from '../../http/route'
import { illegalArgument, OpenSearchError } from '../errors'
import { searchEntries } from '../json-query'
import { written } from '../ml/shapes'
import { type Json, readObject } from '../route'
import { askerFor, denied, type Generation, notFound, openMemory, requireMemory } from './access'
import { messageIdOf, parseMessageId } from './ids'
import { virgin } from './memories'
import { infoIn, interactionShown, listed, messageIn, messageShown, type NewMessage, pageOf } from './wire'

const MESSAGES = '.plugins-ml-memory-message'
/** Messages of a memory that a search covers: the latest. */
const MOST_SEARCHED = 1_000

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

export const createInteraction = async (call: Call): Promise<Json> => ({
  interaction_id: await adding(1)(call),
})

export const createMessage = async (call: Call): Promise<Json> => ({ message_id: await adding(2)(call) })

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

export const listInteractions = listing(1, 'interactions', 'desc', interactionShown)
export const list = listing(2, 'messages', 'asc', messageShown)

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

export async function get(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const { message } = await open(call, 'conversations:get').catch((error) =>
    virgin(call, error, 'turn', 'cannot get message since the messages index does not exist'),
  )
  return messageShown(message)
}

export async function update(call: Call): Promise<Json> {
  const { env, request, path } = call
  await requireMemory(env)
  const { additional_info, response } = await readObject(request, {})
  const info = infoIn(additional_info, true)
  if (info === undefined && response === undefined) {
    throw new OpenSearchError(400, 'parse_exception', 'Failed to update interaction: Request body is empty')
  }
  const { asker, message, row } = await open(call, 'conversations:create', 'message').catch((error) =>
    virgin(call, error, 'turn', 'cannot update message since the message index does not exist'),
  )
  if (message.before !== undefined || message.trace !== undefined) {
    throw new OpenSearchError(400, 'illegal_argument_exception', 'Only messages of turns can be changed.')
  }
  if (response !== undefined && response !== null) await requireTrusted(call, row)
  const version = await changeMessage(env, asker, row, message, {
    ...(info !== undefined && { info }),
    ...(response !== undefined && response !== null && { response: String(response) }),
  })
  return written(MESSAGES, path.id!, 'updated', version)
}

export async function traces(call: Call): Promise<Json> {
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

export async function search(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const body = await readObject(call.request, {})
  const { id } = await openMemory(call, await askerFor(call, 'conversations:get'), call.path.id!, 2)
  const page = { limit: MOST_SEARCHED, offset: 0 }
  const latest = (await listMessages(call.env, id, 'desc', page)).reverse()
  const entries = latest.map((message) => {
    const { message_id, ...source } = messageShown(message)
    return { _index: MESSAGES, _id: String(message_id), _version: message.version, _source: source }
  })
  return searchEntries(entries, body, call.query)
}
