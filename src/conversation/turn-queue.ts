/** The waiting and running turns of a conversation. They run one after another, in the order they came. */
import { dayOf, isLimited, spentOnModel, usedUp } from '../db/turns'
import {
  type ApiError,
  attempt,
  coded,
  type ErrorCode,
  logFailure,
  type Outcome,
  type Trail,
  unwrap,
} from '../errors'
import { textOf } from '../lib/parts'
import { silenceOf } from '../models/call'
import { type ConversationModelConfig, type LanguageModel, verdictOf } from '../models/language-model'
import { createLanguageModel } from '../models/providers'
import { type Candidate, resilient } from '../models/resilient'
import { withSettings } from '../models/sampling'
import { lookUpAnew } from '../registry/collections'
import { retrieverOf } from '../registry/engines'
import { findModel, siblingOf } from '../registry/models'
import type { RecentMessages } from '../search/types'
import { callTool } from '../tools/call'
import { errorOf, interrupted } from '../turn/errors'
import { readEvent } from '../turn/event-line'
import {
  type DoneEvent,
  type ErrorEvent,
  INTERRUPTION_SEQ,
  isForReaders,
  type Position,
  type Reading,
  type TurnEvent,
  type Wording,
} from '../turn/events'
import { messagesOf } from '../turn/fold'
import { historyOf } from '../turn/look-back'
import type { AskRequest } from '../turn/request'
import { retrieve } from '../turn/retrieve'
import { errorEvent, searchAtOnce } from '../turn/run'
import type { TurnPorts } from '../turn/trace'
import type { ConversationState } from './conversation-state'
import { isSameOwner } from './stored'
import { ABANDONED_MS, type LogReading, type RequestNames, type TurnLog } from './turn-log'
import { type Joining, Reader, type Reads, type Source, type TurnStream } from './turn-stream'

/** turns that may wait behind the running one */
export const QUEUE_LIMIT = 32

/** readers that may follow one turn at once */
const READER_LIMIT = 100

/** `retryAfter` if the queue is full, in seconds: about one turn. */
const RETRY_AFTER = 5

const encoder = new TextEncoder()

/** What a turn needs from its object. */
export interface Surroundings {
  /** what the object stores; undefined: nothing yet */
  state(): ConversationState | undefined
  /** the same, created if missing */
  remember(): ConversationState
  schedule(state: ConversationState): void
  /** Settles when everything that was stored so far is on disk. */
  written(): Promise<void>
  /** what was read ahead for this turn */
  prefetched(): Promise<RecentMessages | undefined>
  /** its searches, if they began before it */
  searching: SearchPorts | undefined
}

/** A turn, from the moment it is asked for. */
export class QueuedTurn {
  readonly abort = new AbortController()
  /** readers who asked: the one who began the turn, and whoever sent the same request again */
  readonly #callers: Reader[] = []
  /** readers who wait for the turn to begin */
  readonly #waiting: { reader: Reader; reading: Joining | undefined }[] = []
  /** readers of words who wait for that */
  readonly #writing: { reader: Reader; words: Wording }[] = []
  /** set when the turn has begun */
  #stream: TurnStream | undefined
  /** whether a caller who may have seen some of the answer has left */
  #seen = false
  #onAbandoned = (): void => {}
  /** called when a caller has left */
  onLeft = (): void => {}
  /** whether its answer is complete and being stored; from then on it cannot be stopped */
  committed = false
  /** how the turn ended, if it never began */
  #refusal: ErrorEvent | undefined

  constructor(
    readonly request: AskRequest,
    readonly names: RequestNames,
  ) {}

  /** Adds a reader who asked for this turn. @param reading what they ask for besides the usual events */
  addCaller(reading: Reading | undefined, without?: 'words'): Reader {
    const reader = new Reader(() => {
      this.#seen ||= this.speaking
      if (this.abandoned) this.#onAbandoned()
      this.onLeft()
    })
    this.addReader(reader, -1, { ...reading, ...(without && { without }) })
    this.#callers.push(reader)
    return reader
  }

  /** What a caller reads who asked for this turn. */
  readsOf({ read, words }: AskRequest): Reads {
    if (words === undefined || this.#stream?.isRepeated) return { events: this.addCaller(read).stream }
    const caller = this.addCaller(read, 'words')
    // While words are written, nothing is written to the caller's own stream, so only the words' stream notices that
    // the caller has left.
    const written = new Reader(() => caller.leave())
    if (this.#stream) this.#stream.joinWords(written, words)
    else if (this.#refusal) written.end()
    else this.#writing.push({ reader: written, words })
    return { events: caller.stream, words: written.stream }
  }

  /**
   * Lets a reader have the events after `seq`, including those to come. @throws ApiError 429 if there are too
   * many readers
   */
  addReader(reader: Reader, seq = -1, reading?: Joining): void {
    if ((this.#stream?.readers ?? this.#waiting.length) >= READER_LIMIT) {
      throw tooMany(`Too many readers follow this conversation (${READER_LIMIT}).`)
    }
    if (this.#stream) this.#stream.join(reader, seq, reading)
    else this.#waiting.push({ reader, reading })
    if (this.#refusal) this.refuse(this.#refusal)
  }

  get stream(): TurnStream | undefined {
    return this.#stream
  }

  /** Whether any of the answer can be read yet. */
  get speaking(): boolean {
    return this.#stream?.speaking === true
  }

  /**
   * Whether all callers have left, so that their request gets this answer if it comes again. A caller who asked
   * to regenerate an answer, saw some of it and left wants another one when they ask again.
   */
  get abandoned(): boolean {
    if (this.request.replaces && this.#seen) return false
    return this.#callers.every((reader) => reader.gone)
  }

  /** Whether nobody reads it: all callers have left, and nobody else follows it. */
  get unread(): boolean {
    const others = this.#stream?.readers ?? this.#waiting.filter(({ reader }) => reader.open).length
    return others === 0 && this.#callers.every((reader) => reader.gone)
  }

  /** @param onAbandoned called when the last caller has left */
  begin(stream: TurnStream, onAbandoned: () => void): void {
    this.#stream = stream
    this.#onAbandoned = onAbandoned
    for (const { reader, reading } of this.#waiting.splice(0)) stream.join(reader, -1, reading)
    for (const { reader, words } of this.#writing.splice(0)) stream.joinWords(reader, words)
  }

  /** Ends a turn that has not begun, and of which no trace is kept: its number is 0. */
  refuse(error: ErrorEvent): void {
    this.#refusal = error
    const event: TurnEvent = { ...error, conversation_id: this.request.conversationId, turn: 0, seq: 0 }
    for (const { reader } of this.#writing.splice(0)) reader.end()
    for (const { reader } of this.#waiting.splice(0)) {
      reader.write(encoder.encode(`${JSON.stringify(event)}\n`))
      reader.end()
    }
  }
}

const tooMany = (what: string): ApiError =>
  coded('too_many_waiting', 429, `${what} Try again later.`, RETRY_AFTER)

export class TurnQueue {
  readonly #turns: QueuedTurn[] = []
  /** messages that are waiting or being stored */
  #messages = 0
  /** called when the next turn arrives */
  #awaiting: (() => void)[] = []
  /** settles when the last turn in the queue has ended; never rejects */
  #end: Promise<void> = Promise.resolve()

  /** The turn that is running or about to run. */
  get current(): QueuedTurn | undefined {
    return this.#turns.find((turn) => !turn.stream?.ended)
  }

  get idle(): boolean {
    return this.#turns.length + this.#messages === 0
  }

  /**
   * The turn that this request joins, if it is in the queue already. A request to regenerate an answer that can
   * already be read in part wants a new turn; it does not wait until the first one's readers are seen to leave.
   */
  find({ idempotencyKey, fingerprint }: RequestNames): QueuedTurn | undefined {
    if (idempotencyKey !== undefined) {
      return this.#turns.find(({ names }) => names.idempotencyKey === idempotencyKey)
    }
    if (fingerprint === undefined) return undefined
    return this.#turns.find(
      ({ names, request, speaking }) => names.fingerprint === fingerprint && !(request.replaces && speaking),
    )
  }

  /**
   * @param run runs the turn when its time comes; it must handle its own errors
   * @returns when the turn and all before it have ended
   * @throws ApiError 429 if too many are waiting
   */
  add(turn: QueuedTurn, run: () => Promise<void>): Promise<void> {
    this.#requireRoom()
    this.#turns.push(turn)
    turn.onLeft = () => this.#stopLeft()
    this.#stopLeft()
    for (const tell of this.#awaiting.splice(0)) tell()
    this.#end = this.#end.then(run).finally(() => {
      this.#turns.shift()
    })
    return this.#end
  }

  /**
   * Stores a message in its place among the turns: after those before it, so that its number is higher than theirs.
   * @throws ApiError 429 if too many are waiting; whatever `store` throws
   */
  addMessage<T>(store: () => Promise<T>): Promise<T> {
    this.#requireRoom()
    this.#messages += 1
    const stored = this.#end.then(store)
    this.#end = stored
      .then(
        () => {},
        () => {},
      )
      .finally(() => {
        this.#messages -= 1
      })
    return stored
  }

  /**
   * Stops each turn whose asker has left and sent a later question: nobody reads the turn, and the question would
   * wait for it. Without a later question it goes on, because its reader may come back. Runtimes report a hang-up
   * late, so this is checked when a turn comes and when a caller leaves.
   */
  #stopLeft(): void {
    for (const [index, turn] of this.#turns.entries()) {
      if (turn.committed || !turn.unread) continue
      const later = this.#turns.slice(index + 1)
      if (later.some(({ request }) => isSameOwner(request.asker, turn.request.asker))) turn.abort.abort()
    }
  }

  #requireRoom(): void {
    if (this.#turns.length + this.#messages <= QUEUE_LIMIT) return
    throw tooMany(`Too many turns are waiting in this conversation (${QUEUE_LIMIT}).`)
  }

  /** Whether another turn is running or waiting. */
  hasOther(number: number): boolean {
    return this.#turns.some(({ stream }) => stream?.turn !== number)
  }

  /** Settles when a turn comes. */
  arrival(): Promise<void> {
    return new Promise((resolve) => this.#awaiting.push(resolve))
  }

  /** Stops the running turn and all that wait. */
  stopAll(): void {
    for (const turn of this.#turns) turn.abort.abort()
  }
}

/** How long after a lost reply an `ask` call may be repeated, in milliseconds. */
const ATTEMPT_MS = 10_000

/**
 * Turns begun recently, by the `ask` call that began them. A call whose reply was lost is repeated, and must
 * not ask twice.
 */
export class Attempts {
  readonly #turns = new Map<string, { turn: QueuedTurn; until: number }>()

  find({ attempt }: AskRequest): QueuedTurn | undefined {
    return attempt === undefined ? undefined : this.#turns.get(attempt)?.turn
  }

  add(turn: QueuedTurn): void {
    const { attempt } = turn.request
    const now = Date.now()
    // Oldest first.
    for (const [old, { until }] of this.#turns) {
      if (until > now) break
      this.#turns.delete(old)
    }
    if (attempt !== undefined) this.#turns.set(attempt, { turn, until: now + ATTEMPT_MS })
  }
}

// =============================================================================
// What a turn reaches: the collections that it searches, and its language models.

export type SearchPorts = Required<Pick<TurnPorts, 'search' | 'schema' | 'placeOf'>>

export const searchPorts = (env: Cloudflare.Env, { requestId }: AskRequest): SearchPorts => ({
  search: (place, params, scope) =>
    told(() => retrieverOf(env, place).search(params, { ...scope, requestId })),
  schema: (place) => told(() => retrieverOf(env, place).schema()),
  placeOf: (collection) => lookUpAnew(env, collection).catch(() => undefined),
})

/** Returns a collection's reply. An unavailable collection fails only its own search, not the others. */
async function told<T>(ask: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
  const outcome = await attempt(ask)
  return outcome.ok ? outcome.value : outcome
}

/**
 * Begins the searches of a question in its own wording before its turn begins, or is sure to.
 * @param known what was said before, if it was read
 * @returns ports for that turn: where it asks the same, it gets what began
 */
export function searchAhead(
  env: Cloudflare.Env,
  request: AskRequest,
  known: RecentMessages | undefined,
): SearchPorts {
  const { search, schema, placeOf } = searchPorts(env, request)
  const [searches, schemas] = [keeping(search), keeping(schema)]
  const begin = { search: searches.begin, schema: schemas.begin, placeOf }
  const { transcript = [], continues } = request
  const isFirst = transcript.length === 0 && (known ? known.messages.length === 0 : !continues)
  const searching = isFirst
    ? retrieve(request.searches, textOf(request.question), begin)
    : searchAtOnce(request, { ...begin, known }, Date.now())
  searching?.catch(() => {})
  return { search: searches.take, schema: schemas.take, placeOf }
}

/** Keeps the replies of calls that begin, and gives each out once, for the same arguments. */
function keeping<Given extends unknown[], T>(call: (...given: Given) => Promise<T>) {
  const begun = new Map<string, Promise<T>[]>()
  return {
    begin: (...given: Given): Promise<T> => {
      const key = JSON.stringify(given)
      const reply = call(...given)
      begun.set(key, [...(begun.get(key) ?? []), reply])
      return reply
    },
    take: (...given: Given): Promise<T> => begun.get(JSON.stringify(given))?.shift() ?? call(...given),
  }
}

// The language models of a turn: the one asked, with its `fallbacks` behind it, and the one that writes
// standalone questions and suggestions. registry/models.ts describes how one model names others.

type ModelPorts = Pick<TurnPorts, 'model' | 'answerer' | 'rewriter' | 'callTool' | 'now'>

/**
 * A turn's ports with its models, its tools and its clock. Models are made when they are first used, so that an unknown namespace becomes the
 * turn's error.
 * @param settings of the request, for its answer @param trail of the turn, for the log
 */
export const withModels = (
  env: Cloudflare.Env,
  { model: config, settings, tools }: Pick<AskRequest, 'model' | 'settings' | 'tools'>,
  trail: Trail,
  ports: Omit<TurnPorts, keyof ModelPorts>,
): TurnPorts => ({
  ...ports,
  get model() {
    return languageModelOf(config, env, trail)
  },
  get answerer() {
    return settings && languageModelOf(withSettings(config, settings), env, trail)
  },
  rewriter: () => rewriterOf(config, env, trail),
  callTool:
    tools &&
    (async (call, signal) => {
      const tool = tools.find(({ name }) => name === call.name)!
      return { type: 'tool_result', id: call.id, ...(await callTool(env, tool, call, signal)) }
    }),
  now: () => Date.now(),
})

/**
 * A model ready to be called, with its fallbacks behind it.
 * @param trail of the turn, for the log
 * @throws ApiError 400 for an unknown namespace
 */
const languageModelOf = (config: ConversationModelConfig, env: Cloudflare.Env, trail: Trail): LanguageModel =>
  resilient(candidate(config, env), { others: () => fallbacksOf(config, env, trail) })

/**
 * The model that writes standalone questions and suggestions, if one is named. If it fails for any reason, the
 * answering model and then its fallbacks are called.
 */
export async function rewriterOf(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  trail: Trail,
): Promise<LanguageModel | undefined> {
  const { rewrite_model: name } = config
  if (typeof name !== 'string') return undefined
  const stored = await read(env, name, trail)
  const named = stored ? await affordable(env, stored, trail) : siblingOf(config, name)
  if (!named) return undefined
  return resilient(candidate(config, env), {
    ahead: candidate(named, env),
    others: () => fallbacksOf(config, env, trail),
  })
}

async function fallbacksOf(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  trail: Trail,
): Promise<Candidate[]> {
  const ids = Array.isArray(config.fallbacks) ? (config.fallbacks as string[]) : []
  const models = await Promise.all(
    ids.map(async (id) => {
      const model = await read(env, id, trail)
      return model && (await affordable(env, model, trail))
    }),
  )
  return models.flatMap((model) => (model ? [candidate(model, env)] : []))
}

/** Reads a model. If it is gone or cannot be read now, the turn goes on without it. */
const read = (env: Cloudflare.Env, id: string, trail: Trail): Promise<ConversationModelConfig | undefined> =>
  findModel(env, id).catch((error) => {
    logFailure('a model that another one names could not be read', error, trail)
    return undefined
  })

/**
 * A model to call in place of another, unless its own budget is spent. If the spend cannot be read, the turn
 * goes on without it, because a budget must hold.
 */
async function affordable(
  env: Cloudflare.Env,
  model: ConversationModelConfig,
  trail: Trail,
): Promise<ConversationModelConfig | undefined> {
  if (!isLimited(model)) return model
  try {
    const spent = await spentOnModel(env, dayOf(Date.now()), model.id)
    return usedUp(model, spent) ? undefined : model
  } catch (error) {
    logFailure('what was spent on a model could not be read', error, trail)
    return undefined
  }
}

const candidate = (config: ConversationModelConfig, env: Cloudflare.Env): Candidate => ({
  id: config.id,
  model: createLanguageModel(config, env),
  patience: silenceOf(config) * 1000,
})

// =============================================================================
// Handles a request that comes again. A client that was cut off repeats its question. It should read the answer
// that is being written, or was written, and not pay for another.
//
// A request joins a turn if it names it: by an idempotency key, or by the id of its conversation. A request
// that only looks the same may be somebody else's. Its answer is copied into a conversation of its own
// (`copyTurn`).

/** What identifies a request: who asks, the caller's idempotency key, and what it asks for. */
export type RequestIdentity = Pick<AskRequest, 'asker' | 'idempotencyKey' | 'fingerprint'>

/** What a copy reads. Its own readers may ask for the engine's replies. */
export const COPIED: Reading = { results: true }

export const identityOf = ({ asker, idempotencyKey, fingerprint }: AskRequest): RequestIdentity => ({
  asker,
  ...(idempotencyKey !== undefined && { idempotencyKey }),
  ...(fingerprint !== undefined && { fingerprint }),
})

/** The names of a request: its idempotency key and fingerprint, each with who asks. */
export function namesOf({ asker, idempotencyKey, fingerprint }: RequestIdentity): RequestNames {
  const { owner, userId, proofs: [proof] = [] } = asker
  const name = (given: string) =>
    JSON.stringify([owner, userId, given, ...(proof === undefined ? [] : [proof])])
  return {
    ...(idempotencyKey !== undefined && { idempotencyKey: name(idempotencyKey) }),
    ...(fingerprint !== undefined && { fingerprint: name(fingerprint) }),
  }
}

/** @throws ApiError 422 if the idempotency key has named another request before */
export function requireSame(names: RequestNames, fingerprint: string | undefined): void {
  if (names.idempotencyKey === undefined || names.fingerprint === undefined || fingerprint === undefined)
    return
  if (names.fingerprint === fingerprint) return
  throw coded('key_reused', 422, 'The idempotency key was used for another request.')
}

/**
 * Joins the waiting or running turn of this request and returns its events, from the first.
 * @returns undefined if there is none
 * @throws ApiError 422
 */
export function joinQueued(
  queue: TurnQueue,
  names: RequestNames,
  reading: Reading | undefined,
): ReadableStream<Uint8Array> | undefined {
  const queued = queue.find(names)
  if (!queued) return undefined
  requireSame(names, queued.names.fingerprint)
  return queued.addCaller(reading).stream
}

/**
 * Joins the turn of a request whose reader has received nothing yet (`AskRequest.again`). If it was interrupted and cannot run
 * again, its error is what the reader gets.
 * @returns undefined if nothing is known of it
 */
export function joinAgain(
  queue: TurnQueue,
  state: ConversationState | undefined,
  names: RequestNames,
  reading: Reading | undefined,
): ReadableStream<Uint8Array> | undefined {
  const joined = joinQueued(queue, names, reading)
  if (joined || !state || names.fingerprint === undefined) return joined
  return replayInterrupted(state.log, Date.now(), names.fingerprint) ?? undefined
}

/**
 * Returns the events of a finished turn to a request that asked for it.
 * @returns undefined if they are no longer kept and the request may ask again
 * @throws ApiError 409 if its idempotency key forbids that
 */
export function replay(
  state: ConversationState,
  turn: number,
  names: RequestNames,
  asked: LogReading,
): ReadableStream<Uint8Array> | undefined {
  const source = state.log.reading(turn, -1, asked)
  if (!source) {
    if (names.idempotencyKey === undefined) return undefined
    throw coded('conflict', 409, 'The turn of this idempotency key has ended too long ago to be replayed.')
  }
  // Once a caller has read everything, the same question is a new one.
  state.log.abandon(turn, false)
  return readOf(source, () => {
    if (!state.closed) state.log.abandon(turn, true)
  })
}

/**
 * Returns the events after a position, including those still to come. Without a position: the running turn, or
 * else the latest.
 * @param asked what to read from the log besides its events
 * @returns null if nothing comes after the position, or if the latest turn has ended too long ago
 */
export function follow(
  log: TurnLog,
  current: QueuedTurn | undefined,
  after: Position | undefined,
  reading: Reading | undefined,
  asked: LogReading,
): ReadableStream<Uint8Array> | null {
  if (after === undefined && current === undefined && !log.hasLatest) return null
  const from = after?.turn ?? (current ? Number.POSITIVE_INFINITY : (log.latest() ?? 0))
  const running = current?.stream?.turn
  const missed = log.readingAfter(from, after?.seq ?? -1, running, asked)
  // Who was told that the answer was interrupted asks again, and reads what is written now from its beginning.
  const isTold = running === after?.turn && (after?.seq ?? -1) >= INTERRUPTION_SEQ
  if (missed.length === 0 && (!current || isTold)) return null
  const reader = new Reader()
  for (const source of missed) reader.follow(source)
  if (current) current.addReader(reader, running === after?.turn ? after?.seq : -1, reading)
  else reader.end()
  return reader.stream
}

/**
 * Returns the events of the latest turn if it was interrupted within the last minute. A client that comes back
 * for a broken-off answer then learns that, instead of hearing that no turn is running.
 * @param fingerprint only if the turn's request had this one
 */
export function replayInterrupted(
  log: TurnLog,
  now: number,
  fingerprint?: string,
): ReadableStream<Uint8Array> | null {
  const turn = log.interruptedSince(now - ABANDONED_MS, fingerprint)
  const source = turn === undefined ? undefined : log.reading(turn)
  return source ? readOf(source) : null
}

/** A stream of one source alone. @param left called if its reader leaves before the end */
function readOf(source: Source, left?: () => void): ReadableStream<Uint8Array> {
  const reader = new Reader(left)
  reader.follow(source)
  reader.end()
  return reader.stream
}

// A turn that copies the answer of another conversation to the same request. It streams while the other is
// being written, is stored as a turn of its own, and costs nothing.

type CopyPorts = Pick<TurnPorts, 'emit' | 'store' | 'now'>

/**
 * The outcome of a copy. `broken`: the source failed before any of its answer came, so the turn must be run.
 */
export type Copied = 'ended' | 'broken'

/** Endings of a source that say nothing about the answer to this request. */
const UNFINISHED: readonly ErrorCode[] = ['stopped', 'interrupted']

/**
 * Copies a turn to its end, including an error. Never throws. If the source was stopped or died, nothing is
 * known about the answer to this request.
 * @param source the turn's events, as lines of JSON
 */
export async function copyTurn(
  request: AskRequest,
  source: ReadableStream<Uint8Array>,
  ports: CopyPorts,
  signal: AbortSignal,
): Promise<Copied> {
  const events = linesOf(source, signal)
  const copy = new Copy(request, ports)
  try {
    for await (const line of events) {
      const event = readEvent(line)
      if (!isForReaders(event)) continue
      if (event.type === 'error' && UNFINISHED.includes(event.code)) break
      if (await copy.take(event)) return 'ended'
    }
  } catch (error) {
    if (signal.aborted || copy.storing) {
      ports.emit(errorEvent(error, signal, request))
      return 'ended'
    }
  }
  if (!copy.speaking) return 'broken'
  ports.emit(errorOf(interrupted()))
  return 'ended'
}

class Copy {
  readonly #request: AskRequest
  readonly #ports: CopyPorts
  /** whether any of the answer has been sent */
  speaking = false
  storing = false

  constructor(request: AskRequest, ports: CopyPorts) {
    this.#request = request
    this.#ports = ports
  }

  /** @returns whether the turn has ended */
  async take({ conversation_id: _c, turn: _t, seq: _s, ...event }: TurnEvent): Promise<boolean> {
    if (event.type === 'done') {
      await this.#finish(event)
      return true
    }
    this.speaking ||= event.type === 'delta' || event.type === 'part'
    this.#ports.emit(event)
    return event.type === 'error'
  }

  async #finish({ finish_reason, answer, ...event }: DoneEvent): Promise<void> {
    const { question, transcript = [], read, copies } = this.#request
    const now = this.#ports.now()
    const before = historyOf(transcript, now).messages
    const done: DoneEvent = { type: 'done', finish_reason, ...verdictOf(event), answer }
    if (copies !== undefined) this.#ports.emit({ type: 'copy', source: copies })
    if (before.length > 0) this.#ports.emit({ type: 'transcript', messages: before })
    this.storing = true
    unwrap(await this.#ports.store(done, now))
    const messages = messagesOf({ transcript: before, question, answer }, Math.floor(now / 1000))
    if (read?.history) this.#ports.emit({ type: 'history', messages })
    this.#ports.emit(done)
  }
}

/** Yields each line once it is complete. Ends with the stream, or throws the signal's reason. */
async function* linesOf(
  source: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  let rest = ''
  for await (const text of source.pipeThrough(new TextDecoderStream(), { signal })) {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    yield* lines
  }
}

/**
 * Sends each event that comes before an answer only once. If a copy breaks off, its turn is run, which would
 * repeat them. Once the answer has begun nothing is repeated, and its tools may search as often as they like.
 */
export function withoutRepeats(emit: TurnPorts['emit']): TurnPorts['emit'] {
  const told = new Set<string>()
  let isSpeaking = false
  return (event) => {
    isSpeaking ||= event.type === 'delta' || event.type === 'part'
    if (isSpeaking) return emit(event)
    if (event.type === 'question' || event.type === 'results' || event.type === 'retrieval') {
      if (told.has(event.type)) return
      told.add(event.type)
    }
    emit(event)
  }
}
