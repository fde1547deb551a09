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
 * conversation with a random id and at most a copy of the answer (repeated-requests.ts). Only repeated requests pay a
 * second hop.
 */
import { coded, type Outcome, unwrap } from '../errors'
import { textOf } from '../lib/parts'
import { historyStore } from '../registry/engines'
import { unknownConversation } from '../turn/errors'
import type { Position } from '../turn/events'
import type { TranscriptMessage } from '../turn/look-back'
import { LONGEST_QUESTION, QUESTION_TOO_LONG } from '../turn/question-length'
import type { Asker, AskRequest, Begun, TurnQuestion } from '../turn/request'
import { mayHaveHistory, newConversationId } from './conversation-id'
import {
  type AskReply,
  type ConversationRpc,
  conversationObject,
  type Elsewhere,
} from './conversation-object'
import { Prefetch } from './prefetch'

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
