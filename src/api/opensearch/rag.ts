/**
 * A search with an answer: its hits go into a turn of the core, and the turn's answer into the search's reply. With a
 * memory the turn is the conversation's next one; without one it is forgotten.
 */

import { pinnedModel } from '../../auth/identity'
import { ask } from '../../conversation/ask'
import type { MemoryRow } from '../../conversation/memories'
import { begunOf } from '../../conversation/open-row'
import { rewriteOnce } from '../../conversation/rewrite-once'
import { askOnce } from '../../conversation/stateless-turn'
import { ApiError, type ErrorCode } from '../../errors'
import { once } from '../../lib/once'
import { contentOf, textOf } from '../../lib/parts'
import type { ConversationModelConfig } from '../../models/language-model'
import { namespaceOf } from '../../models/providers'
import { siblingOf } from '../../registry/models'
import type { FindResource } from '../../registry/resources'
import type { GivenPassage } from '../../turn/caller-passages'
import { codeOf } from '../../turn/errors'
import type { MessageDetails } from '../../turn/events'
import type { Turn } from '../../turn/fold'
import type { Asker } from '../../turn/request'
import type { Wording } from '../../turn/wording'
import { type Admission, admitTurn } from '../http/admit-turn'
import { findHistory, findOpenModel } from '../http/open-assistant'
import type { Call } from '../http/route'
import { type EventReader, eventReader } from '../shared/read'
import { illegalArgument, OpenSearchError, unsupported } from './errors'
import { type Generative, parseGenerative } from './generative'
import { askerFor, openMemory, requireMemory } from './memory/access'
import { messageIdOf } from './memory/ids'
import { type Pipeline, type RagProcessor, requireRag } from './pipelines'
import type { Ahead } from './prefetch'
import { isObject, type Json } from './route'

/** A checked search request with an answer. */
export interface RagRequest {
  rag: RagProcessor
  /** whether the request brought the pipeline itself */
  inline: boolean
  generative: Generative
  model: ConversationModelConfig
  historyId: string
  admission: Admission
  memory: MemoryRow | undefined
  /** milliseconds since 1970 */
  until: number
}

/** What a request asks its model. */
export interface Asking {
  generative: Generative
  model: ConversationModelConfig
  /** the memory's id, if it has one */
  memoryId: string | undefined
  /** checks the key's budget and rate; once, however often it is called. @throws ApiError */
  admit(): Promise<Admission>
}

/** A request's body, and what was read for it. */
interface Given {
  ext: unknown
  ahead: Ahead
  text: string
}

/** @throws ApiError */
export async function askingOf(
  call: Call,
  { inline }: Pipeline,
  rag: RagProcessor,
  { ext, ahead: { find }, text }: Given,
): Promise<Asking> {
  const { env, access, request, record } = call
  await requireRag(env, find)
  const generative = parseGenerative(ext)
  const model = await modelFor(call, rag, generative, inline === true, find)
  const caller = { env, request, record, accesses: [access], userId: undefined, body: text }
  return {
    generative,
    model,
    memoryId: access.embedded.conversation_id ?? generative.memoryId,
    admit: once(() => admitTurn(caller, model)),
  }
}

/** Checks the whole request before anything is searched or called. @throws ApiError */
export async function admitRag(
  call: Call,
  pipeline: Pipeline,
  rag: RagProcessor,
  { asking, ...given }: Given & { asking: Promise<Asking | undefined> },
): Promise<RagRequest> {
  const { env } = call
  const began = Date.now()
  const { generative, model, memoryId, admit } =
    (await asking) ?? (await askingOf(call, pipeline, rag, given))
  const asker = await askerFor(call, 'conversations:get')
  const memory = await memoryFor(call, asker, memoryId, given.ahead)
  const historyId =
    memory?.historyId ?? (namespaceOf(model.model_name) === 'connector' ? '' : await findHistory(env, model))
  const admission = await admit()
  const until = began + generative.timeout * 1000
  call.record.question = generative.question
  return { rag, inline: pipeline.inline === true, generative, model, historyId, admission, memory, until }
}

async function memoryFor(
  call: Call,
  asker: Asker,
  id: string | undefined,
  { find, memory }: Ahead,
): Promise<MemoryRow | undefined> {
  if (id === undefined) return undefined
  await requireMemory(call.env, find)
  return openMemory(call, asker, id, 2, memory && (await memory)?.opened)
}

/**
 * The model that the pipeline names, under the name that the request has for it. The request may not choose that name
 * with a key that fixes the model or is made for pages: `llm_model` then comes from a stored pipeline only.
 * @throws ApiError 400; 404 for a model that is unknown, and in the same words if the key may not ask it
 */
async function modelFor(
  { env, access }: Call,
  { modelId, llmModel: usual }: RagProcessor,
  { llmModel: asked, responseField, timeout }: Generative,
  inline: boolean,
  find: FindResource,
): Promise<ConversationModelConfig> {
  const { conversation_model_id: only = modelId } = access.embedded
  const isFixed = access.forPages || pinnedModel([access]) !== undefined
  const name = asked ?? usual
  const isChosen = name !== undefined && (inline || name !== usual)
  const model = only === modelId ? await findOpenModel(env, [access], modelId, find) : undefined
  const isOwn =
    model?.model_name === name || model?.model_name === `${namespaceOf(model?.model_name ?? '')}/${name}`
  if (model === undefined || (isFixed && isChosen && !isOwn)) {
    throw new OpenSearchError(
      404,
      'status_exception',
      `Failed to find model with the provided model id: ${modelId}`,
    )
  }
  const namespace = namespaceOf(model.model_name)
  if (namespace === 'connector') {
    if (name === undefined) throw illegalArgument('llm_model cannot be null.')
    return {
      ...model,
      model_name: `connector/${name}`,
      timeout,
      ...(responseField !== undefined && { llm_response_field: responseField }),
    }
  }
  if (responseField !== undefined) throw unsupported('[llm_response_field] of a model that has no connector')
  if (name === undefined || name === model.model_name) return model
  const sibling = siblingOf(model, namespaceOf(name) === namespace ? name : `${namespace}/${name}`)
  if (sibling === undefined) throw unsupported(`[llm_model: ${name}] of the model [${modelId}]`)
  return sibling
}

/** Whether the question is rewritten where it is a follow-up. */
export const isRewriter = ({ rewrites }: Pipeline, generative: Generative): boolean =>
  rewrites || generative.rewrites

/** The question to search: rewritten if it is a follow-up. */
export async function rewritten(
  { env, request, record }: Call,
  pipeline: Pipeline,
  { generative, memory, model, until, admission }: RagRequest,
  { said }: Ahead,
): ReturnType<typeof rewriteOnce> {
  if (memory === undefined || !isRewriter(pipeline, generative)) return undefined
  const late = AbortSignal.timeout(Math.max(1, until - Date.now()))
  const signal = AbortSignal.any([late, request.signal])
  try {
    return await rewriteOnce(
      env,
      {
        memory,
        question: generative.question,
        model,
        owner: admission.asker.owner,
        said,
        requestId: record.requestId,
      },
      signal,
    )
  } catch (error) {
    if (late.aborted) throw timedOut()
    throw error
  }
}

export const timedOut = (): OpenSearchError =>
  new OpenSearchError(
    500,
    'timeout_exception',
    'java.util.concurrent.TimeoutException: Timeout waiting for task.',
  )

/** A query with the rewritten question in every place where the original one stood. */
export function withQuestion(value: unknown, asked: string, standalone: string): unknown {
  if (value === asked) return standalone
  if (Array.isArray(value)) return value.map((each) => withQuestion(each, asked, standalone))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, withQuestion(each, asked, standalone)]),
  )
}

/** The texts of the first hits, field by field. A hit without a field is skipped there. */
export function passagesOf(
  reply: Json,
  fields: string[],
  hits: number | undefined,
  index: string,
): GivenPassage[] {
  const found = ((reply.hits as Json).hits as Json[]).slice(0, hits)
  return found.flatMap(({ _id, _source }) =>
    fields.flatMap((field): GivenPassage[] => {
      const text = textAt(_source, field)
      return text === undefined ? [] : [{ collection: index, documentId: String(_id), field, text }]
    }),
  )
}

function textAt(source: unknown, field: string): string | undefined {
  if (!isObject(source)) return undefined
  const value = Object.hasOwn(source, field)
    ? source[field]
    : field
        .split('.')
        .reduce<unknown>(
          (at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined),
          source,
        )
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A running turn, and how its end becomes part of the reply. */
export interface Turning {
  read: EventReader
  passages: GivenPassage[]
  rewritten?: string
  memory: boolean
  until: number
}

const ORIGIN = 'retrieval_augmented_generation'

/** Asks for the answer. @param words how a stream writes its pieces @throws ApiError */
export async function begin(
  { env, request, prefetch }: Call,
  { rag, inline, generative, model, historyId, admission, memory, until }: RagRequest,
  passages: GivenPassage[],
  standalone: Awaited<ReturnType<typeof rewritten>>,
  words: Wording | undefined,
): Promise<Turning> {
  const { question, system, instructions, turns } = generative
  // What the request adds to the prompt is the caller's, the texts of its own pipeline included: a guardrail judges it.
  const own = inline ? [system ?? rag.system, instructions ?? rag.instructions] : [system, instructions]
  const added = own.filter((text) => text !== undefined && text !== '') as string[]
  const turn = {
    question: contentOf(question),
    model,
    historyId,
    given: {
      passages,
      system: system ?? rag.system,
      instructions: instructions ?? rag.instructions,
      turns,
      ...(standalone && { rewritten: standalone }),
      ...(memory && { details: detailsOf(rag, passages) }),
    },
    until,
    ...(added.length > 0 && { instructions: added }),
    onSearchError: 'fail' as const,
    protocol: 'opensearch',
    ...(words && { words }),
    ...admission,
  }
  const shared = { passages, until, ...(standalone && { rewritten: standalone.question }) }
  if (memory === undefined) {
    const once = await askOnce(env, turn)
    return { ...shared, memory: false, read: eventReader(once.events, undefined, once.words) }
  }
  const asked = await ask(
    env,
    // The memory exists, but may have no history: nothing was said yet, or all of it has expired.
    { ...turn, searches: [], chat: { conversationId: memory.id, named: true, begun: begunOf(memory) } },
    { prefetch, signal: request.signal },
  )
  return { ...shared, memory: true, read: eventReader(asked.events, asked.resume, asked.words) }
}

/**
 * What a message carries besides question and answer. Only the pipeline's prompts are stored: a request's are
 * transient.
 */
const detailsOf = ({ system, instructions }: RagProcessor, passages: GivenPassage[]): MessageDetails => ({
  origin: ORIGIN,
  prompt_template: JSON.stringify([
    ...(system === '' ? [] : [{ role: 'system', content: system }]),
    ...(instructions === '' ? [] : [{ role: 'user', content: instructions }]),
  ]),
  additional_info: { metadata: JSON.stringify(passages.map(({ text }) => text)) },
})

/** Citations and message ids, as in `ext.retrieval_augmented_generation`. */
export function extOf(
  turn: Pick<Turn, 'conversationId' | 'turn' | 'answer' | 'citations' | 'usage'>,
  { passages, rewritten: question, memory }: Pick<Turning, 'passages' | 'rewritten' | 'memory'>,
): Json {
  const answer = textOf(turn.answer)
  const id = messageIdOf({ memoryId: turn.conversationId, turn: turn.turn })
  return {
    answer,
    ...(memory && { message_id: id, interaction_id: id, memory_id: turn.conversationId }),
    ...(question !== undefined && { rewritten_question: question }),
    citations: turn.citations.map(({ document_id, start, end, quote }) => {
      const said = answer.slice(start, end)
      const numbered = passages.map((passage, at) => ({ ...passage, n: at + 1 }))
      const own = numbered.filter(({ documentId }) => documentId === document_id)
      const { n, field, collection } = own.find((passage) => said.includes(`[${passage.n}]`)) ?? own[0]!
      return {
        n,
        _index: collection,
        _id: document_id,
        field,
        start,
        end,
        ...(quote !== undefined && { quote }),
      }
    }),
    ...(turn.usage !== undefined && { usage: turn.usage }),
  }
}

/** Errors of a turn that are reported beside the hits, because the search itself succeeded. */
const BESIDE: readonly ErrorCode[] = ['model_refused', 'model_denied', 'model_failed', 'unsafe', 'stopped']
const LATE: readonly ErrorCode[] = ['timed_out', 'over_time', 'search_timed_out']

/** A failed turn as an error inside the reply. @throws errors that replace the reply */
export function failureOf(error: unknown): Json {
  if (!(error instanceof ApiError)) throw error
  const code = codeOf(error)
  if (BESIDE.includes(code)) return { error: error.message }
  throw LATE.includes(code) ? timedOut() : error
}
