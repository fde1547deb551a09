/**
 * What becomes of a request that comes again: a client that was cut off repeats its question, and is to read the answer
 * that is being written, or was, and not to pay for another one.
 *
 * Whoever names the turn joins it: by an idempotency key, or by the id of the conversation that it is in. A request that
 * merely looks the same may be somebody else's. Its answer is copied into a conversation of its own (copy.ts).
 */
import { coded } from '../errors'
import type { Position, Reading } from '../turn/events'
import type { AskRequest } from '../turn/request'
import type { Asked } from './event-log'
import type { Memory } from './memory'
import { Reader } from './reader'
import { ABANDONED_MS, type RequestNames, type TurnLog } from './turn-log'
import type { QueuedTurn, TurnQueue } from './turn-queue'

/** What tells requests apart: who asks, the key that the caller gave it, and what it asks for. */
export type RequestIdentity = Pick<AskRequest, 'asker' | 'idempotencyKey' | 'fingerprint'>

/** What a copy is made of: its own readers may ask for the engine's replies. */
export const COPIED: Reading = { results: true }

export const identityOf = ({ asker, idempotencyKey, fingerprint }: AskRequest): RequestIdentity => ({
  asker,
  ...(idempotencyKey !== undefined && { idempotencyKey }),
  ...(fingerprint !== undefined && { fingerprint }),
})

/** What a request is known by: its own names, with who asks. */
export function namesOf({ asker, idempotencyKey, fingerprint }: RequestIdentity): RequestNames {
  const { owner, userId, proofs: [proof] = [] } = asker
  const name = (given: string) =>
    JSON.stringify([owner, userId, given, ...(proof === undefined ? [] : [proof])])
  return {
    ...(idempotencyKey !== undefined && { idempotencyKey: name(idempotencyKey) }),
    ...(fingerprint !== undefined && { fingerprint: name(fingerprint) }),
  }
}

/** @throws ApiError 422 when an idempotency key has named another request before */
export function requireSame(names: RequestNames, fingerprint: string | undefined): void {
  if (names.idempotencyKey === undefined || names.fingerprint === undefined || fingerprint === undefined)
    return
  if (names.fingerprint === fingerprint) return
  throw coded('key_reused', 422, 'The idempotency key was used for another request.')
}

/**
 * The events of the turn of this request that is waiting or running, from its first one.
 * @returns undefined where there is none
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
 * The events of a turn that has ended, for a request that asked for it.
 * @returns undefined where they are not kept any more, and the request may ask anew
 * @throws ApiError 409 where its idempotency key forbids that
 */
export function replay(
  memory: Memory,
  turn: number,
  names: RequestNames,
  asked: Asked,
): ReadableStream<Uint8Array> | undefined {
  const source = memory.log.reading(turn, -1, asked)
  if (!source) {
    if (names.idempotencyKey === undefined) return undefined
    throw coded('conflict', 409, 'The turn of this idempotency key has ended too long ago to be replayed.')
  }
  // Who has read it all has it: the same question from now on is a new one.
  memory.log.abandon(turn, false)
  const reader = new Reader(() => {
    if (!memory.closed) memory.log.abandon(turn, true)
  })
  reader.follow(source)
  reader.end()
  return reader.stream
}

/**
 * The events after a position, those to come included; without one the running turn, or else the latest.
 * @param asked what the log is to be read with
 * @returns null where nothing comes after the position
 */
export function follow(
  log: TurnLog,
  current: QueuedTurn | undefined,
  after: Position | undefined,
  reading: Reading | undefined,
  asked: Asked,
): ReadableStream<Uint8Array> | null {
  const from = after?.turn ?? (current ? Number.POSITIVE_INFINITY : (log.latest() ?? 0))
  const running = current?.stream?.turn
  const missed = log.readingAfter(from, after?.seq ?? -1, running, asked)
  // A message that was added while a turn runs has a later number. Whoever has read it is not sent back.
  const isPast = after !== undefined && running !== undefined && after.turn > running
  const next = isPast ? undefined : current
  if (missed.length === 0 && !next) return null
  const reader = new Reader()
  for (const source of missed) reader.follow(source)
  if (next) next.addReader(reader, running === after?.turn ? after?.seq : -1, reading)
  else reader.end()
  return reader.stream
}

/**
 * The events of the latest turn, if it was interrupted within the last minute: whoever comes back for an answer that
 * broke off is told so, and not that none is running.
 */
export function replayInterrupted(log: TurnLog, now: number): ReadableStream<Uint8Array> | null {
  const turn = log.interruptedSince(now - ABANDONED_MS)
  const source = turn === undefined ? undefined : log.reading(turn)
  if (!source) return null
  const reader = new Reader()
  reader.follow(source)
  reader.end()
  return reader.stream
}
