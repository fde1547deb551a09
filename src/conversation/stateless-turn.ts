/** A turn outside any conversation: it is answered, charged, and forgotten. */
import { waitUntil } from 'cloudflare:workers'
import { database } from '../db/client'
import { recordCost } from '../db/turns'
import { dayOf } from '../db/usage'
import { logFailure, unwrap } from '../errors'
import type { LogEventBody } from '../turn/events'
import { emptyTurn, foldBody } from '../turn/fold'
import { isNothing } from '../turn/generate'
import type { AskRequest, Single } from '../turn/request'
import { errorEvent, runTurn } from '../turn/run'
import { logTurn, TurnClock } from '../turn/turn-line'
import type { Answering } from './ask'
import { conversationObject } from './conversation-object'
import type { Reads } from './reader'
import { Reservation } from './reservation'
import { searchPorts, withModels } from './turn-ports'
import { QueuedTurn } from './turn-queue'
import { TurnStream } from './turn-stream'

/**
 * Runs the turn in a Conversation object of its own, which stores nothing. The Free plan allows the Worker's request 10 ms of CPU,
 * and an answer of 300 chunks takes 50 ms.
 * @param conversationId see `answerOnce`. An object of the version before names none
 * @throws ApiError 503 with `retryAfter`
 */
export async function askOnce(env: Cloudflare.Env, single: Single, conversationId = ''): Promise<Reads> {
  try {
    return unwrap(await conversationObject(env, crypto.randomUUID()).once(single, conversationId))
  } catch (error) {
    // During a deployment, an object of the version before does not have the method.
    if (error instanceof TypeError) return answerOnce(env, single, conversationId)
    throw error
  }
}

/**
 * Returns its events as lines of JSON (events.ts), and its pieces in the request's `words`. If the reader leaves, the turn ends.
 * @param conversationId what the events name as their conversation. None is stored
 */
export function answerOnce(env: Cloudflare.Env, single: Single, conversationId = ''): Reads {
  const request: AskRequest = { searches: [], ...single, conversationId, continues: false }
  const trail = { requestId: single.requestId }
  const clock = new TurnClock()
  const turn = { ...emptyTurn(), conversationId, turn: 1 }
  // No log is kept of this turn.
  const stream = new TurnStream(conversationId, 1, () => {})
  const queued = new QueuedTurn(request, {})
  const { signal } = queued.abort
  queued.begin(stream, () => queued.abort.abort())
  const emit = (body: LogEventBody): void => {
    if (stream.ended) return
    if (!signal.aborted) {
      clock.see(body)
      foldBody(turn, body)
    }
    stream.emit(body)
  }
  const ports = withModels(env, request, trail, {
    ...searchPorts(env, request),
    messages: async () => ({ messages: [], complete: true }),
    ttls: async () => new Map<string, number>(),
    store: async () => ({ ok: true, value: undefined }) as const,
    emit,
  })
  const reservation = new Reservation(env, request, trail)
  const run = async () => {
    const spentBudget = await reservation.take()
    if (spentBudget) return emit(errorEvent(spentBudget, signal, request))
    const spent = await runTurn(request, ports, signal)
    logTurn(env, turn, request, clock)
    reservation.used = turn.error === undefined || !isNothing(spent)
    if (!reservation.used) return reservation.end()
    const day = dayOf(Date.now())
    const [usage, ...others] = spent.map((spending) => ({ day, owner: request.asker.owner, ...spending }))
    const cost = { usage: usage!, ...(others.length > 0 && { others }), ...reservation.counted }
    await recordCost(database(env), cost)
  }
  const reads = queued.readsOf(request)
  waitUntil(run().catch((error) => logFailure('a turn could not be charged', error, trail)))
  return reads
}

/** The answer as `ask` returns one. A stream that breaks off cannot be resumed, because no log is kept. */
export function answeringOf(conversationId: string, reads: Reads): Answering {
  const asked = Date.now()
  const delivery = () => ({ lost: async () => {}, asked })
  return { conversationId, ...reads, resume: async () => null, delivery }
}
