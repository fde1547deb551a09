/**
 * The way into a conversation: which object a question goes to.
 *
 * A retry must find the turn that it began, and a new conversation has no id yet that could lead there. So the
 * id of a new conversation is made from the request: a digest of who asks and of the idempotency key, else of
 * the request's fingerprint, under a secret of the server, or whoever shares a key could work out the ids of
 * others. The first request and its retries thus meet in one object, in a single hop and without a
 * coordinator on the way.
 *
 * An idempotency key joins the turn that it named. A fingerprint does not show that the same person asks: two visitors
 * behind one address may click on the same question. Whoever comes second with it gets a conversation of a random id, at
 * most with a copy of the answer in it (joins.ts). Only repeated requests pay a second hop.
 */
import { waitUntil } from 'cloudflare:workers'
import { coded, unwrap } from '../errors'
import { collectionObject } from '../search/collection/handle'
import { unknownConversation } from '../turn/errors'
import { LONGEST_QUESTION, QUESTION_TOO_LONG } from '../turn/question-length'
import type { Asker, AskRequest } from '../turn/request'
import { newConversationId } from './conversation-id'
import { conversationObject, type Elsewhere, type Position } from './conversation-object'
import { mayHaveHistory } from './sealed-id'

/** A request whose conversation may be new. */
export interface Question extends Omit<AskRequest, 'conversationId' | 'continues' | 'copies' | 'foundUntil'> {
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
 * Asks, joins the turn of the same idempotency key, running or finished, or has the answer copied that the same request
 * was given a moment ago.
 * @param signal of the request that asks
 * @throws ApiError 429 and 503 with `retryAfter`, 422; 400 for a question that is too long, and for another asker's
 *   conversation, as for an unknown one
 */
export async function ask(env: Cloudflare.Env, question: Question, signal?: AbortSignal): Promise<Answering> {
  const began = Date.now()
  if (question.question.length > LONGEST_QUESTION) throw coded('too_long', 400, QUESTION_TOO_LONG)
  const { conversationId: given } = question
  const mayBeUnknown = given !== undefined && !question.named && !question.replaces
  if (mayBeUnknown && !(await mayHaveHistory(env, given, question.historyId))) throw unknownConversation()
  const attempt = crypto.randomUUID()
  let request: AskRequest =
    given === undefined
      ? { ...question, ...(await newConversationId(env, question)), continues: false, attempt }
      : { ...question, conversationId: given, continues: true, attempt }
  for (let hop = 0; hop < MOST_HOPS; hop++) {
    const { conversationId } = request
    const object = conversationObject(env, conversationId)
    const asked = unwrap(await object.ask(request))
    if ('events' in asked)
      return {
        conversationId,
        events: asked.events,
        // With a handle of its own: the stub of a stream that broke off is broken too.
        resume: async (after) =>
          unwrap(await conversationObject(env, conversationId).events(question.asker, after)),
        delivery: (turn) => ({
          lost: () => object.lost(turn),
          asked: began,
          ...(signal && { signal }),
          waitUntil,
        }),
      }
    request = { ...question, ...beginningOf(asked), continues: false, attempt }
  }
  throw new Error('No conversation took the question.')
}

/** What becomes of a question that begins another conversation than the one it came to. */
const beginningOf = ({ elsewhere, copies, transcript }: Elsewhere) => ({
  conversationId: elsewhere,
  named: false,
  ...(copies !== undefined && { copies }),
  ...(transcript && { transcript }),
})

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
  if (!(await mayHaveHistory(env, conversationId, historyId))) return false
  const [open, { messages }] = await Promise.all([
    conversationObject(env, conversationId).isOpenTo(asker),
    collectionObject(env, historyId).recentMessages(conversationId, 0),
  ])
  return open && messages.length > 0
}
