/**
 * Reads ahead what a search with an answer needs: all its rows in the registry, and beside them its memory and the end of
 * that. The checks come later, in OpenSearch's order. They find what was read, and read again what could not be.
 */

import { lookBackAhead, MOST_BYTES } from '../../conversation/look-back-ahead'
import type { MemoryRow } from '../../conversation/memories'
import { openAhead } from '../../conversation/open-row'
import { readAllAhead } from '../../registry/ahead'
import { historyStore } from '../../registry/engines'
import { type FindResource, finder } from '../../registry/resources'
import type { RecentMessages } from '../../search/types'
import { originOf } from '../edge/request-log'
import type { Call } from '../edge/route'
import { askerFor } from './memory/access'
import { withOwnModels } from './ml/own-models'
import { isObject, type Json } from './route'

export interface Ahead {
  /** the part of the body that is the search */
  body: Promise<Json>
  /** finds pipelines, remote models, connectors and the settings */
  find: FindResource
  /** the request's memory, if the caller may open it */
  memory?: Promise<MemoryRow | undefined> | undefined
  /** the end of the memory, if the question may have to be rewritten. Never rejects */
  said?: Promise<RecentMessages | undefined> | undefined
}

/** @param asked body of the search. One that asks no language model is not read ahead for */
export async function readSearchAhead(call: Call, asked: Json): Promise<Ahead> {
  const { env, access, query, record } = call
  const { search_pipeline: given, ext, stream: _, ...plain } = asked
  const body = withOwnModels(env, plain)
  body.catch(() => {})
  const parameters = isObject(ext) ? ext.generative_qa_parameters : undefined
  if (!isObject(parameters)) return { body, find: finder(env) }
  const memoryId = access.embedded.conversation_id ?? parameters.memory_id ?? parameters.conversation_id
  const memory = typeof memoryId === 'string' ? memoryAhead(call, memoryId) : undefined
  memory?.catch(() => {})
  const id = query.search_pipeline ?? (typeof given === 'string' ? given : undefined)
  const inline = isObject(given) ? JSON.stringify(given) : undefined
  const rows = await readAllAhead(env, { pipeline: { id, inline } })
  const isRewritten =
    parameters.rewrite_question === true ||
    [inline, ...(rows ?? []).map(({ body }) => body)].some((text) => text?.includes('"question_rewrite"'))
  const end = async (row: MemoryRow | undefined) =>
    row && historyStore(env, row.historyId).recentMessages(row.id, MOST_BYTES, undefined, originOf(record))
  const said = isRewritten ? memory?.then(end).catch(() => undefined) : undefined
  return { body, find: finder(env, rows), memory, said }
}

async function memoryAhead(call: Call, memoryId: string): Promise<MemoryRow | undefined> {
  const { env, record } = call
  const asker = await askerFor(call, 'conversations:get').catch(() => undefined)
  return (
    asker &&
    openAhead(env, asker, memoryId, (conversationId) => {
      void lookBackAhead(env, record, { conversationId, isOurs: true })
    })
  )
}
