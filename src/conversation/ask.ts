/**
 * The way into a conversation: which object a question goes to.
 *
 * A retry must find the turn that it began, and a new conversation has no id yet that could lead there. So the
 * id of a new conversation is made from the request: a digest of who asks and of the idempotency key, else of
 * the request's fingerprint, under a secret of the server, or whoever shares a key could work out the ids of
 * others. The first request and its retries thus meet in one object, in a single hop and without a
 * coordinator on the way.
 *
 * Somebody who asks the same thing again later, with the first answer in hand, meets there too. The object then
 * hands out a random id, and remembers the last one that it gave, for the retries of that request: only
 * repeated requests pay a second hop.
 */
import { waitUntil } from 'cloudflare:workers'
import { ApiError, unwrap } from '../errors'
import { collectionObject } from '../search/catalog'
import { newConversationId } from './conversation-id'
import { conversationObject, type Position } from './conversation-object'
import { LONGEST_QUESTION, QUESTION_TOO_LONG } from './question-length'
import type { Asker, AskRequest } from './request'

/** A request whose conversation may be new. */
export interface Question extends Omit<AskRequest, 'conversationId' | 'continues'> {
  /** absent: a new conversation */
  conversationId?: string
}

export interface Answering {
  conversationId: string
  /** lines of JSON (events.ts) */
  events: ReadableStream<Uint8Array>
  /** The events after one of them, for a reader whose stream broke off. @throws ApiError */
  resume(after: Position): Promise<ReadableStream<Uint8Array> | null>
  /** What the delivery of a whole answer needs, by the answer's turn. */
  delivery(turn: number): Delivery
}

/** How a whole answer is seen to arrive. */
export interface Delivery {
  /** To be called when its caller had gone before it was delivered: a retry is then told this answer again. */
  lost(): Promise<void>
  /** when it was asked for, in milliseconds since 1970 */
  asked: number
  /** aborts when the caller leaves, where the runtime notices */
  signal?: AbortSignal
  /** Keeps the request alive until a promise has settled: workerd ends those whose callers have gone. */
  waitUntil(settled: Promise<unknown>): void
}

/** Objects that a question is sent on to. One or two is usual; more are requests that overtook each other. */
const MOST_HOPS = 5

/**
 * Asks, or joins the turn that the same request began before: one with its idempotency key, running or
 * finished; without a key one with its fingerprint that is running, or that ended within the last minute after
 * its caller had gone.
 * @param signal of the request that asks
 * @throws ApiError 429 and 503 with `retryAfter`, 422; 400 for a question that is too long, and for another asker's
 *   conversation, as for an unknown one
 */
export async function ask(env: Cloudflare.Env, question: Question, signal?: AbortSignal): Promise<Answering> {
  const began = Date.now()
  if (question.question.length > LONGEST_QUESTION) throw new ApiError(400, QUESTION_TOO_LONG)
  const continues = question.conversationId !== undefined
  let conversationId = question.conversationId ?? (await newConversationId(env, question))
  const attempt = crypto.randomUUID()
  for (let hop = 0; hop < MOST_HOPS; hop++) {
    const request: AskRequest = { ...question, conversationId, continues, attempt }
    const object = conversationObject(env, conversationId)
    const asked = unwrap(await object.ask(request))
    if ('events' in asked)
      return {
        conversationId,
        events: asked.events,
        // With a handle of its own: the stub of a stream that broke off is broken too.
        resume: async (after) =>
          unwrap(await conversationObject(env, request.conversationId).events(question.asker, after)),
        delivery: (turn) => ({
          lost: () => object.lost(turn),
          asked: began,
          ...(signal && { signal }),
          waitUntil,
        }),
      }
    conversationId = asked.elsewhere
  }
  throw new Error('No conversation took the question.')
}

/**
 * Whether an asker may go on with a conversation. A turn finds out by itself; this is for requests with another
 * fault, where an unknown conversation is reported first.
 */
export async function mayContinue(
  env: Cloudflare.Env,
  asker: Asker,
  conversationId: string,
  historyId: string,
): Promise<boolean> {
  const [open, { messages }] = await Promise.all([
    conversationObject(env, conversationId).isOpenTo(asker),
    collectionObject(env, historyId).recentMessages(conversationId, 0),
  ])
  return open && messages.length > 0
}
