/**
 * Reads ahead what a search with an answer needs: while its key is looked up, all its rows in the registry and the row of its
 * memory; then the end of that. The checks come later, in OpenSearch's order. They find what was read, and read again what could
 * not be.
 */

import { type EarlyRow, type OpenedAhead, openAhead, readRowAhead } from '../../conversation/conversations'
import type { MemoryRow } from '../../conversation/messages'
import { MOST_BYTES, readRegistryRows } from '../../conversation/prefetch'
import { historyStore } from '../../registry/engines'
import { findAll, finder, modelIn, type ResourceRow } from '../../registry/resources'
import { parseQuery, readSmallAhead } from '../http/body'
import { originOf } from '../http/request-log'
import type { Call } from '../http/router'
import { askerFor } from './memory-access'
import { isObject, type Json, openIndex, parseObject } from './route'

/** Reads that need no key. Nobody learns of them until it was checked. */
interface Reads {
  rows: Promise<ResourceRow[] | undefined>
  memory: Promise<EarlyRow | undefined> | undefined
}

/** An isolate's first request begins before it has a route (app.ts). */
const begun = new WeakMap<Request, { index: Promise<void>; reads: Promise<Reads | undefined> }>()

/**
 * Begins a search while its key is looked up: finds the index, so that its schema takes no wait of its own, and reads the rows of
 * one that asks a language model.
 * @returns settles when the index's name is in its cache; never rejects
 */
export function beginSearch(env: Cloudflare.Env, request: Request): Promise<void> {
  const { pathname, search } = new URL(request.url)
  const [, name] = /^\/([^/_][^/]*)\/_search$/.exec(pathname) ?? []
  if (name === undefined) return Promise.resolve()
  const reads = begun.get(request)?.reads ?? readBefore(env, request, search).catch(() => undefined)
  // One that cannot be found is refused where it is needed.
  const find = async () => void (await openIndex(env, decodeURIComponent(name)))
  const index = begun.get(request)?.index ?? find().catch(() => {})
  begun.set(request, { index, reads })
  return index
}

async function readBefore(env: Cloudflare.Env, request: Request, search: string): Promise<Reads | undefined> {
  const text = await readSmallAhead(request)
  if (!text?.includes('"generative_qa_parameters"')) return undefined
  const asked = parseObject(text)
  return readsOf(env, parseQuery(search).search_pipeline, asked, parametersOf(asked)?.id)
}

const parametersOf = ({ ext }: Json): { rewrites: boolean; id: unknown } | undefined => {
  const given = isObject(ext) ? ext.generative_qa_parameters : undefined
  if (!isObject(given)) return undefined
  return { rewrites: given.rewrite_question === true, id: given.memory_id ?? given.conversation_id }
}

function readsOf(
  env: Cloudflare.Env,
  named: string | undefined,
  { search_pipeline: given }: Json,
  memoryId: unknown,
): Reads {
  const id = named ?? (typeof given === 'string' ? given : undefined)
  const memory = typeof memoryId === 'string' ? readRowAhead(env, memoryId) : undefined
  memory?.catch(() => {})
  return { rows: readRegistryRows(env, { pipeline: { id, inline: inlineOf(given) } }), memory }
}

const inlineOf = (given: unknown): string | undefined => (isObject(given) ? JSON.stringify(given) : undefined)

export type Ahead = Awaited<ReturnType<typeof readSearchAhead>>

/** @param asked body of the search. One that asks no language model is not read ahead for */
export async function readSearchAhead(call: Call, asked: Json) {
  const { env, access, query, request } = call
  const { search_pipeline: given, ext: _, stream: __, ...plain } = asked
  const body = withOwnModels(env, plain)
  body.catch(() => {})
  const parameters = parametersOf(asked)
  if (parameters === undefined) return { body, find: finder(env), isRead: false }
  const id = access.embedded.conversation_id ?? parameters.id
  const reads = (await begun.get(request)?.reads) ?? readsOf(env, query.search_pipeline, asked, id)
  const early = await reads.memory?.catch(() => undefined)
  // A key may fix another memory than the body names.
  const row = early?.handle === id || typeof id !== 'string' ? early : await readRowAhead(env, id)
  const memory = row && openFor(call, row)
  const rows = await reads.rows
  const isRewritten =
    parameters.rewrites ||
    [inlineOf(given), ...(rows ?? []).map(({ body }) => body)].some((text) =>
      text?.includes('"question_rewrite"'),
    )
  const said = isRewritten ? memory?.then((opened) => opened && endOf(call, opened)) : undefined
  return {
    /** the part of the body that is the search */
    body,
    /** finds pipelines, remote models, connectors and the settings */
    find: finder(env, rows),
    /** whether `find` waits for nothing that a pipeline names */
    isRead: rows !== undefined,
    /** the request's memory, if the caller may open it */
    memory,
    /** the end of the memory, if the question may have to be rewritten. Never rejects */
    said: said?.catch(() => undefined),
  }
}

async function openFor(call: Call, early: EarlyRow): Promise<OpenedAhead | undefined> {
  const { env, prefetch } = call
  const asker = await askerFor(call, 'conversations:get').catch(() => undefined)
  if (asker === undefined) return undefined
  void prefetch.look({ conversationId: early.id, isOurs: true })
  return openAhead(env, asker, early)
}

/** The end of a memory that its asker may open. It is read while the object is asked whether it exists. */
async function endOf({ env, record }: Call, { row, delivered }: OpenedAhead) {
  const memory: MemoryRow | undefined = await row
  if (memory === undefined) return undefined
  const end = historyStore(env, memory.historyId).recentMessages(
    memory.id,
    MOST_BYTES,
    undefined,
    originOf(record),
  )
  end.catch(() => {})
  return (await delivered) ? undefined : end
}

// =============================================================================
// Embedding models that were registered under an id of their own. Each stands for the model of the field that it is used on.

/** A search whose `neural` queries no longer name such ids. */
export async function withOwnModels(env: Cloudflare.Env, body: Json): Promise<Json> {
  if (!JSON.stringify(body.query ?? '').includes('"neural":')) return body
  const rows = await findAll(env, 'model')
  const own = new Set(rows.filter((row) => modelIn(row).connector === undefined).map(({ id }) => id))
  return { ...body, query: withoutIds(body.query, own) }
}

function withoutIds(query: unknown, own: ReadonlySet<string>, inNeural = false): unknown {
  if (Array.isArray(query)) return query.map((each) => withoutIds(each, own))
  if (!isObject(query)) return query
  return Object.fromEntries(
    Object.entries(query).flatMap(([key, value]) => {
      const field = inNeural && isObject(value) ? value : undefined
      if (field === undefined) return [[key, withoutIds(value, own, key === 'neural')]]
      const { model_id: id, ...rest } = field
      return [[key, typeof id === 'string' && own.has(id) ? rest : field]]
    }),
  )
}
