/**
 * Handles a request that comes again. A client that was cut off repeats its question. It should read the answer
 * that is being written, or was written, and not pay for another.
 *
 * A request joins a turn if it names it: by an idempotency key, or by the id of its conversation. A request
 * that only looks the same may be somebody else's. Its answer is copied into a conversation of its own
 * (`copyTurn`).
 */
import { coded, type ErrorCode, unwrap } from '../errors'
import { verdictOf } from '../models/language-model'
import { errorOf, interrupted } from '../turn/errors'
import { readEvent } from '../turn/event-line'
import {
  type DoneEvent,
  INTERRUPTION_SEQ,
  isForReaders,
  type Position,
  type Reading,
  type TurnEvent,
} from '../turn/events'
import { messagesOf } from '../turn/fold'
import { historyOf } from '../turn/look-back'
import type { AskRequest } from '../turn/request'
import { errorEvent } from '../turn/run'
import type { TurnPorts } from '../turn/trace'
import type { ConversationState } from './conversation-state'
import type { LogReading } from './turn-log'
import { ABANDONED_MS, type RequestNames, type TurnLog } from './turn-log'
import type { QueuedTurn, TurnQueue } from './turn-queue'
import { Reader, type Source } from './turn-stream'

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
 * repeat them.
 */
export function withoutRepeats(emit: TurnPorts['emit']): TurnPorts['emit'] {
  const told = new Set<string>()
  return (event) => {
    if (event.type === 'question' || event.type === 'results' || event.type === 'retrieval') {
      if (told.has(event.type)) return
      told.add(event.type)
    }
    emit(event)
  }
}
