/**
 * The way into a conversation: decides which object a question goes to.
 *
 * A retry must find the turn that it began, but a new conversation has no id yet that could lead there. So a
 * new id is made from the request: a digest of the asker and the idempotency key, or else the request's
 * fingerprint. A server secret goes into the digest. Otherwise anyone who shares a key could compute other
 * people's ids. So the first request and its retries reach the same object, in one hop and without a
 * coordinator.
 *
 * An idempotency key joins the turn that it named. A fingerprint does not prove that the same person asks: two
 * visitors behind one address may click the same question. The second request with a fingerprint gets a
 * conversation with a random id and at most a copy of the answer (turn-queue.ts). Only repeated requests pay a
 * second hop.
 */

import { waitUntil } from 'cloudflare:workers'
import { ttlsOf } from '../db/registry'
import { dayOf, recordCost } from '../db/turns'
import { coded, logFailure, type Outcome, type Trail, unwrap } from '../errors'
import { textOf } from '../lib/parts'
import type { ConversationModelConfig, GenerationRequest } from '../models/language-model'
import { ProviderError } from '../models/provider-error'
import { namespaceOf } from '../models/providers'
import { historyStore } from '../registry/engines'
import type { RecentMessages } from '../search/types'
import { unknownConversation } from '../turn/errors'
import type { CallTrace, LogEventBody, Position } from '../turn/events'
import { emptyTurn, foldBody } from '../turn/fold'
import { type Given, readHistory, type TranscriptMessage, toChat } from '../turn/look-back'
import { familyOf, fitHistory, standalonePrompt } from '../turn/prompt'
import { LONGEST_QUESTION, QUESTION_TOO_LONG } from '../turn/question-length'
import type { Asker, AskRequest, Begun, Single, TurnQuestion } from '../turn/request'
import { errorEvent, runTurn } from '../turn/run'
import { isNothing, Tracer } from '../turn/trace'
import { logTurn, TurnClock } from '../turn/turn-line'
import { mayHaveHistory, newConversationId } from './conversation-id'
import {
  type AskReply,
  type ConversationRpc,
  conversationObject,
  type Elsewhere,
} from './conversation-object'
import { lastOf, Prefetch } from './prefetch'
import { QueuedTurn, searchPorts, withModels } from './turn-queue'
import { Reservation } from './turn-run'
import { type Reads, TurnStream } from './turn-stream'

/** The conversation that a question goes to, as far as it is known before its object is asked. */
export interface Chat {
  conversationId: string
  /** true: the id stands for a name that the caller chose. Without history, the conversation then begins */
  named?: boolean
  /** true if it begins now, as its object said (prefetch.ts) */
  isNew?: true
  /** see AskRequest */
  seen?: true
  /** the name that the id stands for, where it may itself be the id of a conversation that was imported, which then comes first */
  possibleId?: string
  /** true if this server gave the id out (conversation-id.ts): its first answer may be running */
  vouched?: true
  /** the turn that the question continues from; absent: the last one */
  after?: number | undefined
  /** for a conversation that was opened before its first question: how it began, and messages added since */
  begun?: Begun
  transcript?: TranscriptMessage[]
}

/** The chat of an id that a caller sent. */
export const chatOf = (conversationId: string | undefined): Chat | undefined =>
  conversationId === undefined ? undefined : { conversationId }

/** What is known of a request to ask, but for its conversation. */
export interface Question extends TurnQuestion {
  /** absent: a conversation begins */
  chat?: Chat | undefined
}

export interface Answering {
  conversationId: string
  /** lines of JSON (events.ts) */
  events: ReadableStream<Uint8Array>
  /** pieces of the answer in the request's `words`; they are not among the events then */
  words?: ReadableStream<Uint8Array>
  /**
   * Returns the events after a position, for a reader whose stream broke off. Without a position, nothing was read
   * yet: the reader joins the turn, or the turn runs again if it had cost nothing. @throws ApiError
   */
  resume(after?: Position): Promise<ReadableStream<Uint8Array> | null>
  /** Returns what is needed to deliver a whole answer of this turn. */
  delivery(turn: number): Delivery
}

/** Tracks whether a whole answer arrived. */
export interface Delivery {
  /** Call this if the caller left before delivery. A retry then gets this answer again. */
  lost(): Promise<void>
  /** when the answer was asked for, in milliseconds since 1970 */
  asked: number
  /** aborts when the caller leaves, if the runtime notices */
  signal?: AbortSignal
}

/**
 * Most objects that one question is sent on to. One or two is usual; more means that requests overtook each
 * other.
 */
const MOST_HOPS = 5

/**
 * Asks a question. It joins the turn of the same idempotency key, running or finished. If the same request was
 * answered a moment ago, its answer is copied.
 * @param via the request that asks: what was read ahead for it, and its signal
 * @throws ApiError 429 and 503 with `retryAfter`; 422; 400 for a question that is too long, and for an unknown
 *   conversation or another asker's
 */
export async function ask(
  env: Cloudflare.Env,
  { chat, ...question }: Question,
  { prefetch = new Prefetch(env, question), signal }: { prefetch?: Prefetch; signal?: AbortSignal } = {},
): Promise<Answering> {
  const began = Date.now()
  if (textOf(question.question).length > LONGEST_QUESTION) throw coded('too_long', 400, QUESTION_TOO_LONG)
  const { conversationId: given, vouched, isNew, possibleId, after, ...known }: Partial<Chat> = chat ?? {}
  const mayBeUnknown = given !== undefined && !known.named && !question.replaces && !vouched
  if (mayBeUnknown && !(await mayHaveHistory(env, given, question.historyId))) throw unknownConversation()
  const attempt = crypto.randomUUID()
  const { reading } = prefetch
  const asked = {
    ...question,
    ...known,
    ...(after !== undefined && { after }),
    ...(reading !== undefined && { prefetched: reading }),
    attempt,
  }
  let request: AskRequest =
    given === undefined
      ? { ...asked, ...(await newConversationId(env, question)), continues: false }
      : { ...asked, conversationId: given, continues: true }
  const named = request
  prefetch.embed(request, isNew === true)
  for (let hop = 0; hop < MOST_HOPS; hop++) {
    const { conversationId } = request
    const object = conversationObject(env, conversationId)
    const mayBeElsewhere = hop === 0 && possibleId !== undefined
    const outcome = await (mayBeElsewhere ? askNamed(env, object, request, possibleId) : object.ask(request))
    if (conversationId === possibleId && !outcome.ok && outcome.error.code === 'unknown_conversation') {
      // It is another asker's.
      request = named
      continue
    }
    const reply = unwrap(outcome)
    if ('events' in reply)
      return {
        conversationId,
        events: reply.events,
        ...(reply.words && { words: reply.words }),
        // Get a new stub: once a stream has broken off, the stub that made it is broken too.
        resume: async (after) => {
          const anew = conversationObject(env, conversationId)
          if (after) return unwrap(await anew.events(question.asker, after, question.read))
          const { words: _, ...plain } = request
          const again = unwrap(await anew.ask({ ...plain, again: true }))
          return 'events' in again ? again.events : null
        },
        delivery: (turn) => ({
          lost: () => object.lost(turn),
          asked: began,
          ...(signal && { signal }),
        }),
      }
    request = { ...asked, ...beginningOf(reply) }
  }
  throw new Error('No conversation took the question.')
}

async function askNamed(
  env: Cloudflare.Env,
  object: ConversationRpc,
  request: AskRequest,
  name: string,
): Promise<Outcome<AskReply>> {
  try {
    return await object.askNamed(request, name)
  } catch (error) {
    // An object of the version before does not have the method.
    if (!(error instanceof TypeError)) throw error
    const isTaken = await mayHaveHistory(env, name, request.historyId)
    return isTaken ? { ok: true, value: { elsewhere: name, continues: true } } : object.ask(request)
  }
}

/** Turns an `Elsewhere` reply into the request for the other conversation. */
const beginningOf = ({ elsewhere, continues, copies, transcript }: Elsewhere) => ({
  conversationId: elsewhere,
  named: false,
  continues: continues === true,
  ...(copies !== undefined && { copies }),
  ...(transcript && { transcript }),
})

/**
 * Whether an asker may continue a conversation. A turn checks this itself. This is for requests with another
 * fault, which must report an unknown conversation first.
 */
export async function mayContinue(
  env: Cloudflare.Env,
  asker: Asker,
  conversationId: string,
  historyId: string,
): Promise<boolean> {
  if (!(await mayHaveHistory(env, conversationId, historyId))) return false
  const [open, { messages }] = await Promise.all([
    conversationObject(env, conversationId).isOpenTo(asker),
    historyStore(env, historyId).recentMessages(conversationId, 0),
  ])
  return open && messages.length > 0
}

// =============================================================================
// A turn outside any conversation: it is answered, charged, and forgotten.

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
    await recordCost(env.DB, cost)
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

// =============================================================================
// Rewrites a follow-up to stand alone, for a caller who searches by itself (turn/look-back.ts).

interface FollowUp {
  /** the conversation that the question follows up on, which its caller may read */
  memory: { id: string; historyId: string }
  question: string
  model: ConversationModelConfig
  /** who pays */
  owner: string
  /** the end of the conversation, where it was read ahead: MOST_BYTES of it */
  said?: Promise<RecentMessages | undefined> | undefined
  /** of the request */
  requestId: string
}

/**
 * Charges the call at once, even if it fails, because a turn may never begin.
 * @returns undefined if nothing was said before, or if the provider failed: the question is then searched as it is
 * @throws ApiError for a question that does not fit into the prompt
 */
export async function rewriteOnce(
  env: Cloudflare.Env,
  { memory, question, model, owner, said, requestId }: FollowUp,
  signal: AbortSignal,
): Promise<Given['rewritten']> {
  const { max_bytes: bytes, model_name: name } = model
  const store = historyStore(env, memory.historyId)
  const early = await said
  const origin = { requestId }
  const trail = { requestId, conversation: memory.id }
  const looking = {
    messages: async (most?: number) =>
      most === undefined
        ? { messages: await store.messages(memory.id, undefined, origin), complete: true }
        : ((early && lastOf(early, most)) ?? store.recentMessages(memory.id, most, undefined, origin)),
    ttls: (ids: string[]) => ttlsOf(env.DB, ids),
    now: () => Date.now(),
  }
  const { messages } = await readHistory(looking, model, bytes)
  if (messages.length === 0) return undefined
  const history = fitHistory(messages.map(toChat), question, bytes, familyOf(name), namespaceOf(name))
  const request: GenerationRequest = {
    purpose: 'standalone',
    messages: standalonePrompt(familyOf(name), history, question),
    question,
    sources: [],
    history,
    stream: false,
  }
  let call: CallTrace | undefined
  const none = () => Promise.reject(new Error('A rewriting searches and stores nothing.'))
  const tracer = new Tracer(
    withModels(env, { model }, trail, {
      ...looking,
      search: none,
      schema: none,
      store: none,
      emit: (event) => {
        if (event.type === 'call') call = event.call
      },
    }),
  )
  try {
    const { text, finish } = await tracer.ports.generate(request, signal)
    const isWhole = finish !== 'length' && finish !== 'content_filter'
    return { question: isWhole ? text.trim() : question, call: { ...call!, charged: true } }
  } catch (error) {
    if (error instanceof ProviderError && !signal.aborted) return undefined
    throw error
  } finally {
    charge(env, owner, tracer.spending(model.id), trail)
  }
}

function charge(
  env: Cloudflare.Env,
  owner: string,
  spent: ReturnType<Tracer['spending']>,
  trail: Trail,
): void {
  const day = dayOf(Date.now())
  const others = spent
    .filter(({ inputTokens, outputTokens }) => inputTokens + outputTokens > 0)
    .map((spending) => ({ day, owner, ...spending }))
  const charged = recordCost(env.DB, { others })
  waitUntil(charged.catch((error) => logFailure('a rewriting could not be charged', error, trail)))
}
