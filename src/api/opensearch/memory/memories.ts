/** Memories: conversations to create, list, rename, search and delete. */

import { deleteConversation } from '../../../conversation/erasure'
import { changeMemory, createMemory, listMemories, memoryOf, wasEver } from '../../../conversation/memories'
import type { Asker } from '../../../turn/request'
import { originOf } from '../../http/request-log'
import type { Call } from '../../http/route'
import { OpenSearchError } from '../errors'
import { searchEntries } from '../json-query'
import { written } from '../ml/shapes'
import { type Json, readObject } from '../route'
import { askerFor, type Generation, openMemory, requireMemory } from './access'
import { conversationShown, infoIn, listed, memoryShown, pageOf, readTexts } from './wire'

const META = '.plugins-ml-memory-meta'
/** Memories that a search covers: the latest. */
const MOST_SEARCHED = 10_000

export async function createConversation(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const { name } = await readTexts(call.request)
  const asker = await askerFor(call, 'conversations:create')
  return { conversation_id: await createMemory(call.env, asker, { name: name ?? null }) }
}

export async function create(call: Call): Promise<Json> {
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

export async function listConversations(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const page = pageOf(call, 'memories')
  const memories = await listMemories(call.env, await askerFor(call, 'conversations:list'), 'createdAt', page)
  return listed('conversations', memories.map(conversationShown), page)
}

export async function list(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const page = pageOf(call, 'memories')
  const memories = await listMemories(call.env, await askerFor(call, 'conversations:list'), 'updatedAt', page)
  return listed('memories', memories.map(memoryShown), page)
}

/** A store that was never used says so instead of "not found". @throws the given error, or that one */
export async function virgin(
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

export async function get(call: Call): Promise<Json> {
  await requireMemory(call.env)
  const asker = await askerFor(call, 'conversations:get')
  const row = await openMemory(call, asker, call.path.id!, 2).catch((error) =>
    virgin(call, error, 'conversation', 'cannot get memory since the memory index does not exist'),
  )
  return memoryShown(memoryOf(row))
}

export async function update(call: Call): Promise<Json> {
  const { env, path, request } = call
  await requireMemory(env)
  const { name, additional_info } = await readObject(request, {})
  const info = infoIn(additional_info, true)
  if (name === undefined && info === undefined) {
    throw new OpenSearchError(400, 'parse_exception', 'Failed to update conversation: Request body is empty')
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

export const remove =
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

export async function search(call: Call): Promise<Json> {
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
