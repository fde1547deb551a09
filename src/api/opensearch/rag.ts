/**
 * A search with an answer: its hits go into a turn of the core, and the turn's answer into the search's reply. With a
 * memory the turn is the conversation's next one; without one it is forgotten.
 */
import { waitUntil } from 'cloudflare:workers'
import { pinnedModel } from '../../auth/access'
import { ask, askOnce, rewriteOnce } from '../../conversation/ask'
import { begunOf } from '../../conversation/conversations'
import { ApiError, coded, type ErrorCode, type Failure, logFailure } from '../../errors'
import { once } from '../../lib/once'
import { contentOf, filesOf, type Part, textOf } from '../../lib/parts'
import { LONGEST_FILE_NAME, MOST_FILES } from '../../lib/text-file'
import { settlesWithin } from '../../lib/waiting'
import type { ConversationModelConfig } from '../../models/language-model'
import { namespaceOf } from '../../models/providers'
import { siblingOf } from '../../registry/models'
import type { FindResource } from '../../registry/resources'
import { codeOf, codeOfStatus } from '../../turn/errors'
import { type MessageDetails, type Wording, writeDelta } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import type { GivenPassage } from '../../turn/look-back'
import { type Admission, admitTurn } from '../http/admit-turn'
import { findHistory, findOpenModel } from '../http/chat-names'
import { slowly } from '../http/deliver'
import type { Call } from '../http/router'
import { PICTURES, requireRoom } from '../shared/assistant'
import {
  type EventReader,
  eventReader,
  eventWording,
  frame,
  streamTurn,
  type TurnEncoder,
  wholeTurn,
} from '../shared/stream'
import {
  errorEnvelope,
  illegalArgument,
  incomplete,
  notANumber,
  OpenSearchError,
  parsingError,
  statusError,
  unsupported,
} from './errors'
import { askerFor, messageIdOf, openMemory, requireMemory } from './memory-access'
import { type Pipeline, pipelineOf, type RagProcessor, requireRag } from './pipelines'
import type { Ahead } from './prefetch'
import { type Index, isObject, isOn, type Json, listed, onlyEntry, own } from './route'
import { textIn } from './source'

/** A checked search request with an answer. */
type RagRequest = Awaited<ReturnType<typeof admitRag>>

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
  /** the body as it came */
  text: string
}

/** @throws ApiError */
async function askingOf(
  call: Call,
  { inline }: Pipeline,
  rag: RagProcessor,
  { ext, ahead: { find }, text }: Given,
): Promise<Asking> {
  const { env, access, request, record } = call
  await requireRag(env, find)
  const generative = parseGenerative(ext)
  const model = await modelFor(call, rag, generative, inline === true, find)
  requireRoom(generative.files, model)
  const caller = { env, request, record, accesses: [access], userId: undefined, body: text }
  return {
    generative,
    model,
    memoryId: access.embedded.conversation_id ?? generative.memoryId,
    admit: once(() => admitTurn(caller, model)),
  }
}

/** Checks the whole request before anything is searched or called. @throws ApiError */
async function admitRag(
  call: Call,
  pipeline: Pipeline,
  rag: RagProcessor,
  { asking, ...given }: Given & { asking: Promise<Asking | undefined> },
) {
  const { env } = call
  const began = Date.now()
  const { generative, model, memoryId, admit } =
    (await asking) ?? (await askingOf(call, pipeline, rag, given))
  const asker = await askerFor(call, 'conversations:get')
  if (memoryId !== undefined) await requireMemory(env, given.ahead.find)
  const ahead = await given.ahead.memory
  const memory =
    memoryId === undefined ? undefined : await openMemory(call, asker, memoryId, 2, ahead?.opened)
  const historyId =
    memory?.historyId ?? (namespaceOf(model.model_name) === 'connector' ? '' : await findHistory(env, model))
  const admission = await admit()
  /** milliseconds since 1970 */
  const until = began + generative.timeout * 1000
  call.record.question = generative.question
  return { rag, inline: pipeline.inline === true, generative, model, historyId, admission, memory, until }
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
    throw statusError(404, `Failed to find model with the provided model id: ${modelId}`)
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
const isRewriter = ({ rewrites }: Pipeline, generative: Generative): boolean =>
  rewrites || generative.rewrites

/** The question to search: rewritten if it is a follow-up. */
async function rewritten(
  { env, request, record }: Call,
  pipeline: Pipeline,
  { generative, memory, model, until, admission }: RagRequest,
  { said }: Ahead,
): ReturnType<typeof rewriteOnce> {
  if (memory === undefined || !isRewriter(pipeline, generative)) return undefined
  const { question } = generative
  const { owner } = admission.asker
  const { requestId } = record
  const late = AbortSignal.timeout(Math.max(1, until - Date.now()))
  const signal = AbortSignal.any([late, request.signal])
  try {
    return await rewriteOnce(env, { memory, question, model, owner, said, requestId }, signal)
  } catch (error) {
    if (late.aborted) throw timedOut()
    throw error
  }
}

const LATE_REASON = 'java.util.concurrent.TimeoutException: Timeout waiting for task.'

const timedOut = (): OpenSearchError => new OpenSearchError(500, 'timeout_exception', LATE_REASON)

/** A query with the rewritten question in every place where the original one stood. */
function withQuestion(value: unknown, asked: string, standalone: string): unknown {
  if (value === asked) return standalone
  if (Array.isArray(value)) return value.map((each) => withQuestion(each, asked, standalone))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, withQuestion(each, asked, standalone)]),
  )
}

/** The texts of the first hits, field by field. A hit without a field is skipped there. */
function passagesOf(reply: Json, fields: string[], hits: number | undefined): GivenPassage[] {
  const found = ((reply.hits as Json).hits as Json[]).slice(0, hits)
  return found.flatMap(({ _index, _id, _source }) =>
    fields.flatMap((field): GivenPassage[] => {
      const text = textAt(_source, field)
      return text === undefined ? [] : [{ collection: String(_index), documentId: String(_id), field, text }]
    }),
  )
}

function textAt(source: unknown, field: string): string | undefined {
  if (!isObject(source)) return undefined
  const inside = (at: unknown, name: string) => (isObject(at) ? own(at, name) : undefined)
  const value = own(source, field) ?? field.split('.').reduce(inside, source as unknown)
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A running turn, and how its end becomes part of the reply. */
interface Turning {
  read: EventReader
  passages: GivenPassage[]
  rewritten?: string
  memory: boolean
  until: number
}

const ORIGIN = 'retrieval_augmented_generation'

/** Asks for the answer. @param words how a stream writes its pieces @throws ApiError */
async function begin(
  { env, request, prefetch }: Call,
  { rag, inline, generative, model, historyId, admission, memory, until }: RagRequest,
  passages: GivenPassage[],
  standalone: Awaited<ReturnType<typeof rewritten>>,
  words: Wording | undefined,
): Promise<Turning> {
  const { question, files, system, instructions, turns } = generative
  // What the request adds to the prompt is the caller's, the texts of its own pipeline included: a guardrail judges it.
  const own = inline ? [system ?? rag.system, instructions ?? rag.instructions] : [system, instructions]
  const added = own.filter((text) => text !== undefined && text !== '') as string[]
  const turn = {
    question: [...contentOf(question), ...files],
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

/** What a message carries besides question and answer. Only the pipeline's prompts are stored: a request's are transient. */
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
    rewritten_question: question,
    citations: turn.citations.map(({ collection, document_id, start, end, quote }) => {
      const said = answer.slice(start, end)
      const numbered = passages.map((passage, at) => ({ ...passage, n: at + 1 }))
      const own = numbered.filter((one) => one.documentId === document_id && one.collection === collection)
      const { n, field } = own.find((passage) => said.includes(`[${passage.n}]`)) ?? own[0]!
      return { n, _index: collection, _id: document_id, field, start, end, quote }
    }),
    usage: turn.usage,
  }
}

/** Errors of a turn that are reported beside the hits, because the search itself succeeded. */
const BESIDE: readonly ErrorCode[] = ['model_refused', 'model_denied', 'model_failed', 'unsafe', 'stopped']
const LATE: readonly ErrorCode[] = ['timed_out', 'over_time', 'search_timed_out']

/** A failed turn as an error inside the reply. @throws errors that replace the reply */
function failureOf(error: unknown): Json {
  if (!(error instanceof ApiError)) throw error
  const code = codeOf(error)
  if (BESIDE.includes(code)) return { error: error.message }
  throw LATE.includes(code) ? timedOut() : error
}

// =============================================================================
// `ext.generative_qa_parameters`: what a search asks of the language model, in the wording of both generations.

type Generative = ReturnType<typeof parseGenerative>

const DEFAULT_TURNS = 10
const DEFAULT_TIMEOUT = 30
const LONGEST_TIMEOUT = 600
const NOT_POSITIVE = 'The number of interactions to retrieve must be positive'

/** @throws ApiError 400 in OpenSearch's words */
function parseGenerative(ext: unknown) {
  const given = isObject(ext) ? ext.generative_qa_parameters : undefined
  if (!isObject(given)) {
    throw illegalArgument(
      'generative_qa_parameters not found. Please provide ext.generative_qa_parameters to proceed. For more info, refer: https://opensearch.org/docs/latest/search-plugins/conversational-search/',
    )
  }
  const content = contentIn(given.llm_messages)
  const said = content.flatMap((part) => (part.type === 'text' ? part.text : [])).join('\n')
  const question = text(given, 'llm_question') || said
  if (question === '') throw illegalArgument('At least one of llm_question or llm_messages must be provided.')
  const contextSize = whole(given, 'context_size')
  const timeout = whole(given, 'timeout') ?? DEFAULT_TIMEOUT
  if (timeout < 1 || timeout > LONGEST_TIMEOUT) {
    throw illegalArgument(`[timeout] has to be from 1 to ${LONGEST_TIMEOUT} seconds`)
  }
  return {
    question,
    files: filesOf(content),
    llmModel: text(given, 'llm_model'),
    memoryId: memoryIn(given),
    /** hits whose texts go into the prompt; undefined: all */
    contextSize: contextSize && Math.max(0, contextSize),
    /** present: these two replace the pipeline's, even if empty */
    system: text(given, 'system_prompt'),
    instructions: text(given, 'user_instructions'),
    responseField: text(given, 'llm_response_field'),
    /** earlier turns that go into the prompt */
    turns: turnsIn(given),
    /** seconds until the answer must be there */
    timeout,
    /** whether a follow-up is rewritten before it is searched */
    rewrites: given.rewrite_question === true,
  }
}

function text(given: Json, name: string): string | undefined {
  const value = given[name] ?? undefined
  if (value === undefined || typeof value === 'string') return value
  throw parsingError(`[generative_qa_parameters] ${name} doesn't support values of type: ${typeof value}`)
}

/** A whole number, which may be given as text; -1 means none. */
function whole(given: Json, name: string): number | undefined {
  const value = given[name] ?? undefined
  const number = typeof value === 'string' && /^[+-]?\d+$/.test(value) ? Number(value) : value
  if (number === undefined) return undefined
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) throw notANumber(value)
  return number === -1 ? undefined : number
}

/** The value of two names for the same parameter. @throws ApiError 400 if they differ */
function either<T>(read: (given: Json, name: string) => T | undefined, given: Json, names: [string, string]) {
  const [old, later] = names.map((name) => read(given, name))
  if (old !== undefined && later !== undefined && old !== later) {
    throw illegalArgument(`[${names.join('] and [')}] are two names for the same: give one of them`)
  }
  return later ?? old
}

function memoryIn(given: Json): string | undefined {
  const id = either(text, given, ['conversation_id', 'memory_id'])
  if (id?.trim() === '') throw illegalArgument('Empty conversation_id is not allowed.')
  return id
}

function turnsIn(given: Json): number {
  const turns = either(whole, given, ['interaction_size', 'message_size'])
  if (turns !== undefined && turns < 1) throw incomplete(NOT_POSITIVE)
  return turns ?? DEFAULT_TURNS
}

/** The content of `llm_messages`: its texts replace the question. */
function contentIn(messages: unknown): Part[] {
  if (!Array.isArray(messages ?? [])) throw parsingError('[llm_messages] has to be a list')
  const parts = listed(messages ?? []).flatMap((message) => {
    if (!isObject(message) || typeof message.role !== 'string')
      throw illegalArgument('message must have role.')
    const { content } = message
    if (!Array.isArray(content) || content.length === 0) throw illegalArgument('message must have content.')
    return content.map(partOf)
  })
  if (filesOf(parts).length > MOST_FILES)
    throw illegalArgument(`A question takes ${MOST_FILES} files at most.`)
  return parts
}

function partOf(block: unknown): Part {
  const { type, text, image, document } = isObject(block) ? block : {}
  if (type === 'text' && typeof text === 'string') return { type, text }
  const { format, name, data, url } = isObject(image) ? image : isObject(document) ? document : {}
  const kind = String(format ?? '').toLowerCase()
  if (isObject(image)) {
    if (!data && !url) throw illegalArgument('data or url not found in imageBlock.')
    const media_type = `image/${kind === 'jpg' ? 'jpeg' : kind}`
    if (typeof data !== 'string') throw unsupported('The [url] of an image: send its [data]; it')
    if (!PICTURES.includes(media_type) || !/^[A-Za-z0-9+/]+={0,2}$/.test(data))
      throw unsupported(`An image that is not base64 of ${PICTURES.join(', ')}`)
    return { type: 'file', name: 'image', picture: { media_type, data } }
  }
  if (typeof data !== 'string' || !TEXT_FORMATS.includes(kind))
    throw unsupported(`[document] of the format [${kind}], which is none of ${TEXT_FORMATS.join(', ')},`)
  const named = typeof name === 'string' ? name.slice(0, LONGEST_FILE_NAME) : 'document'
  try {
    return { type: 'file', name: named, text: textIn(data) }
  } catch {
    throw illegalArgument(`The [data] of the document [${named}] is no text in base64`)
  }
}

/** Documents whose bytes are a text. */
const TEXT_FORMATS = ['txt', 'md', 'csv', 'html']

// =============================================================================
// A search that a language model answers. It searches, asks the model, and replies in one piece or as a stream.

interface Asked extends Given {
  /** what it asks its model, if that was found out ahead. Never rejects */
  asking: Promise<Asking | undefined>
  /** the part of the body that is the search */
  body: Json
  stream: boolean
  find(caller: Call & { gone?: AbortSignal }, body: Json): Promise<Json>
}

/**
 * How long an error of a whole answer can still have its own status. Then the answer begins with blanks: OpenSearch's clients
 * for Python wait 10 s for each read, those for JavaScript 30 s.
 */
const PATIENCE_MS = 8_000

/** @throws ApiError */
export async function answerSearch(
  call: Call,
  rag: RagProcessor,
  pipeline: Pipeline,
  given: Asked,
): Promise<unknown> {
  const started = Date.now()
  const { ahead, body, stream, find } = given
  const asked = await admitRag(call, pipeline, rag, given)
  const { generative, until } = asked
  const standalone = await rewritten(call, pipeline, asked, ahead)
  const wanted =
    standalone === undefined ? body : (withQuestion(body, generative.question, standalone.question) as Json)
  const found = await find({ ...call, gone: call.request.signal }, wanted)
  const reply = (extra: Json): Json => ({
    ...found,
    took: Date.now() - started,
    ext: { retrieval_augmented_generation: extra },
  })
  const words = stream ? answerWording(asked.memory !== undefined) : undefined
  const passages = passagesOf(found, rag.fields, generative.contextSize)
  try {
    if (Date.now() >= until) throw timedOut()
    const turning = await begin(call, asked, passages, standalone, words)
    if (stream) return await streamed(turning, found, reply, rag.ignoresFailure)
    const answer = within(until, wholeTurn(turning.read), turning).then((turn) => reply(extOf(turn, turning)))
    // A reply with line breaks is for people.
    const left = Math.max(0, started + PATIENCE_MS - Date.now())
    if (isOn(call.query.pretty) || (await settlesWithin(left, answer))) return await answer
    const body = answer.catch((error) => (rag.ignoresFailure ? found : failureBody(error, reply)))
    return slowly(
      body.then((json) => JSON.stringify(json)),
      () => void turning.read.stop(),
    )
  } catch (error) {
    if (rag.ignoresFailure) return found
    return reply(failureOf(error))
  }
}

/** Waits for a turn's answer until its caller's time is up. The turn itself then ends, or never begins (turn.ts). */
async function within<T>(until: number, work: Promise<T>, { read }: Turning): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(timedOut()), Math.max(0, until - Date.now()) + GRACE_MS)
  })
  try {
    return await Promise.race([work, late])
  } catch (error) {
    await read.stop()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** A turn that reaches its own deadline reports that itself. This extra time is for one that is never reached. */
const GRACE_MS = 500

/** With a memory, the stream's rest is read at `GET /conversations/:id/events` if it breaks off. */
const streamed = (
  turning: Turning,
  found: Json,
  reply: (extra: Json) => Json,
  ignoresFailure: boolean,
): Promise<Response> => {
  const encoder = answerEncoder({
    found,
    hasMemory: turning.memory,
    ignoresFailure,
    whole: (turn) => reply(extOf(turn, turning)),
    failed: ({ status, message, code }) =>
      failureBody(coded(code ?? codeOfStatus(status), status, message), reply),
  })
  return streamTurn(turning.read, encoder, { headers: {}, opensAt: 'once' })
}

function failureBody(error: unknown, reply: (extra: Json) => Json): Json {
  try {
    return reply(failureOf(error))
  } catch (refusal) {
    return errorEnvelope(refusal).body
  }
}

// =============================================================================
// The stream of a search that is answered.

/** How the pieces of an answer are written. @param hasMemory whether events carry ids */
export const answerWording = (hasMemory: boolean): Wording =>
  eventWording([
    ...(hasMemory ? (['id: ', { slot: 'turn' }, '.', { slot: 'seq' }, '\n'] as const) : []),
    'event: answer\ndata: {"text":"',
    { slot: 'text' },
    '"}\n\n',
  ])

interface Searched {
  /** the reply of the search alone */
  found: Json
  hasMemory: boolean
  /** whether the pipeline answers with the search alone if the turn fails */
  ignoresFailure: boolean
  /** The whole reply at the turn's end. */
  whole(turn: Turn): Json
  /** The body of an error. */
  failed(failure: Failure): Json
}

/**
 * Server-sent events: `hits` with the search's reply, `answer` with each piece of text, and `done` with the whole
 * reply; `error` if it fails, or `done` with the hits alone if the pipeline ignores failures. With a memory, events carry
 * the ids of the conversation's log.
 */
export function answerEncoder({ found, hasMemory, ignoresFailure, whole, failed }: Searched): TurnEncoder {
  const wording = answerWording(hasMemory)
  const turn = emptyTurn()
  let hasBegun = false
  const opening = (): string => {
    if (hasBegun) return ''
    hasBegun = true
    return written('hits', found)
  }
  return {
    encode(event) {
      fold(turn, event)
      const head = opening()
      if (event.type === 'delta') return head + writeDelta(wording, event)
      if (event.type !== 'done') return head
      return head + (hasMemory ? `id: ${event.turn}.${event.seq}\n` : '') + written('done', whole(turn))
    },
    fail: (failure) =>
      ignoresFailure ? opening() + written('done', found) : written('error', failed(failure)),
  }
}

const written = (type: string, data: unknown): string => `event: ${type}\n${frame(data)}`

// =============================================================================
// Admits a question while its index's schema is read, and then embeds what it searches for: the search need not wait for an embedder
// that nobody called. Nothing is embedded before the key, the budget and the rate were checked.

interface Early {
  asked: Json
  /** the request's body as it came */
  text: string
  indices: Promise<readonly Index[]>
  /** the same with their schemas. Once they are there, the search begins as soon as the question is admitted */
  opening: Promise<unknown>
}

/**
 * A question that is refused for what it says, its pipeline or its memory is not admitted here, so that it counts against no rate.
 * @returns what is asked; never rejects. undefined: it has to be found out, or refused, where it is needed
 */
export async function askAhead(
  call: Call,
  reading: Promise<Ahead>,
  given: Early,
): Promise<Asking | undefined> {
  const { asked, indices, text, opening } = given
  const ahead = await reading.catch(() => undefined)
  if (!ahead?.isRead) return undefined
  let isOpen = false
  opening
    .catch(() => {})
    .finally(() => {
      isOpen = true
    })
  const { env, query } = call
  const { search_pipeline: named, ext } = asked
  try {
    const pipeline = await pipelineOf(ahead.find, query.search_pipeline, named, async () => undefined)
    if (pipeline?.rag === undefined) return undefined
    const asking = await askingOf(call, pipeline, pipeline.rag, { ext, ahead, text })
    const [index] = await indices
    if (asking.memoryId !== undefined) {
      await requireMemory(env, ahead.find)
      if ((await (await ahead.memory)?.row) === undefined) return asking
    }
    const isRewritten = asking.memoryId !== undefined && isRewriter(pipeline, asking.generative)
    // Whoever needs the permission learns why there is none.
    asking.admit().then(
      () => !isRewritten && !isOpen && index && embed(call, index, asked.query),
      () => {},
    )
    return asking
  } catch {
    return undefined
  }
}

/** Asks the index to embed the first text that a query has for one of its fields, if their model has to be called. */
function embed({ access, query, record }: Call, { object, outline }: Index, asked: unknown): void {
  const { q, query_by, vector_query, preset } = access.embedded
  if ([q, query_by, vector_query, preset, query.q].some((given) => given !== undefined)) return
  const wanted = neural(asked)
  if (!wanted || !outline?.called?.includes(wanted.query_by)) return
  const embedding = object.embedAhead(wanted).catch((error) => {
    // An object of the version before does not have the method, and embeds with the search.
    if (!(error instanceof TypeError))
      logFailure('a question was not embedded ahead', error, { requestId: record.requestId })
  })
  waitUntil(embedding)
}

/** The first `neural` query in a query, as a search by its words. */
function neural(query: unknown): { q: string; query_by: string } | undefined {
  if (typeof query !== 'object' || query === null) return undefined
  for (const [key, value] of Object.entries(query)) {
    const [field, options] = (key === 'neural' && onlyEntry(value)) || []
    if (field !== undefined && isObject(options) && typeof options.query_text === 'string')
      return { q: options.query_text, query_by: field }
    const inner = neural(value)
    if (inner) return inner
  }
  return undefined
}
