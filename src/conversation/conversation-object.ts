/**
 * The way to a Conversation object: its commands, its RPC interface, and where a request goes whose conversation id is taken.
 */
import { dayOf, deleteTurn } from '../db/turns'
import { objectCalls, objectStubs, type Repetitions } from '../durable/objects'
import { ApiError, type Outcome, unwrap } from '../errors'
import { contentOf } from '../lib/parts'
import { settlesWithin } from '../lib/waiting'
import type { Origin } from '../search/fault-log'
import { unknownConversation } from '../turn/errors'
import type { LogEvent, LogEventBody, MessageDetails, Position, Reading } from '../turn/events'
import { foldTurn, type TracedTurn, traceOf } from '../turn/fold'
import type { TranscriptMessage } from '../turn/look-back'
import type { Asker, AskRequest, Begun, Single } from '../turn/request'
import { sealedId } from './conversation-id'
import type { ConversationState } from './conversation-state'
import type { Walked, walkTurns } from './gaps'
import { documentsOf, ownerOf, type Scope, turnRow } from './stored'
import { identityOf, type RequestIdentity } from './turn-queue'
import type { Reads } from './turn-stream'

// =============================================================================
// Changes to a conversation that are not turns: its creation before anything is said, its title, and messages from
// elsewhere. Such a message gets a turn's number and record, but calls no model.

interface Whose {
  conversationId: string
  asker: Asker
  protocol: string
  /** id of the Collection object of its history collection, and the model id that its messages carry */
  historyId: string
  modelId: string
  /** seconds */
  ttl: number
  /** JSON, stored with the conversation's row */
  details?: string
  /** what D1 knows of the conversation, whose row outlives what its object holds; absent: it begins now */
  begun?: Begun
}

export type Command = Whose &
  (
    | { what: 'open'; title: string }
    | { what: 'title'; title: string }
    | ({ what: 'message' } & SaidMessage)
    | { what: 'answer'; turn: number; answer: string }
    /** the turn is being deleted */
    | { what: 'forget'; turn: number }
    /** it comes from a backup; D1 has its turns up to this one. `begun` says whose it is */
    | { what: 'restored'; turn: number; expiresAt: number }
  )

export interface SaidMessage {
  /** '' if nothing was said */
  input: string
  response: string
  more: MessageDetails
  /** the person who wrote the response; absent: it came from elsewhere */
  author?: string
}

/** Whether it only changes stored data, and does nothing if the object stores none. */
export const isChange = ({ what }: Command): boolean =>
  what === 'title' || what === 'answer' || what === 'forget'

const RETRY_SECONDS = 5

/**
 * @returns the number of the message's turn; 0 for anything else
 * @throws ApiError 404 for a conversation that is deleted or another asker's; 409 for another answer
 *   to a turn that is running, or its deletion; 503 while D1 is unavailable and a
 *   conversation is opened; the history's own error if it refuses the message
 */
export async function tell(state: ConversationState, env: Cloudflare.Env, command: Command): Promise<number> {
  if (state.closed || !state.mayContinue(command.asker)) throw unknownConversation()
  const now = Date.now()
  if (command.what === 'message') return say(state, env, command, now)
  if (command.what === 'restored') {
    // The object's own data is newer than any backup.
    if (state.owner !== undefined) return 0
    state.introduce({ ...command, title: '' }, now)
    if (command.turn > 0) state.log.continueAfter(command.turn, now, command.expiresAt)
    return 0
  }
  if (command.what === 'title') {
    state.introduce(command, now)
    state.title = command.title
    return 0
  }
  if (command.what === 'forget') {
    if (state.log.standing(command.turn) === 'running')
      throw new ApiError(409, 'The answer is still being written. Try again when it has ended.', 1)
    state.log.forget(command.turn)
    return 0
  }
  if (command.what === 'answer') {
    if (state.log.standing(command.turn) === 'running')
      throw new ApiError(409, 'The answer is still being written. Try again when it has ended.')
    state.log.replaceAnswer(command.turn, command.answer)
    return 0
  }
  state.introduce(command, now)
  state.records.putBeginning(state.entry(command, now))
  await state.records.settle()
  if (!state.records.empty)
    throw new ApiError(503, 'The conversation cannot be stored now. Try again.', RETRY_SECONDS)
  return 0
}

/** How long a message waits for D1, in milliseconds. After that its object's alarm delivers it. */
const PATIENCE_MS = 1_500

async function say(
  state: ConversationState,
  env: Cloudflare.Env,
  command: Whose & SaidMessage,
  now: number,
): Promise<number> {
  const { conversationId, historyId, modelId, input, response, more, author, asker } = command
  state.introduce({ ...command, title: input }, now)
  const conversation = state.entry(command, now)
  const turn = state.log.begin(input, now, conversation.expiresAt)
  const bodies: LogEventBody[] = [
    { type: 'question', question: contentOf(input) },
    ...(response === '' ? [] : [{ type: 'delta' as const, text: response }]),
    { type: 'message', details: more },
    {
      type: 'done',
      finish_reason: 'stop',
      ...(author !== undefined && { author }),
      answer: contentOf(response),
    },
  ]
  const events = bodies.map(
    (body, seq): LogEvent => ({ ...body, conversation_id: conversationId, turn, seq }),
  )
  state.log.append(turn, events.map((event) => `${JSON.stringify(event)}\n`).join(''))
  state.log.finish(turn, 'done', now, conversation.expiresAt, false)
  const whole = foldTurn(events)
  const timestamp = Math.floor(now / 1000)
  const documents = documentsOf(whole, conversation, timestamp).filter(({ message }) => message.length > 0)
  if (documents.length > 0) state.outbox.put(turn, historyId, documents, [])
  // Half of a turn can be deleted only if it has a question and an answer.
  if (documents.length > 1) state.log.markSaid(turn, timestamp, 'stop')
  state.records.put(turn, {
    conversation,
    turn: turnRow(whole, traceOf(whole), now, conversation, modelId),
    usage: { day: dayOf(now), owner: ownerOf(asker).owner, modelId, inputTokens: 0, outputTokens: 0 },
    // This message cost nothing.
    copied: true,
  })
  const recorded = state.records.deliver().then(() => state.records.deliverRest())
  const [outcome] = await Promise.all([state.outbox.settle(turn), settlesWithin(PATIENCE_MS, recorded)])
  if (!outcome.ok && !state.closed) {
    state.log.forget(turn)
    state.records.drop(turn)
    await deleteTurn(env.DB, conversationId, turn)
    unwrap(outcome)
  }
  return turn
}

// =============================================================================
// The Conversation object's RPC interface: plain promises of plain data.

/** Redirects a question: it begins another conversation. */
export interface Elsewhere {
  /** the id of that conversation */
  elsewhere: string
  /** the conversation that has the answer to the same request; that answer is copied */
  copies?: string
  /** what was said before, if the question continues from an earlier turn */
  transcript?: TranscriptMessage[]
  /** true: that conversation exists, and the question continues it */
  continues?: true
}

/** What the object of a conversation knows without its history. */
export interface Seen {
  /** true: nothing was ever said here */
  isNew?: true
  /** the history of a conversation that was opened or has begun, and that the asker may continue. Its messages may be gone by now */
  historyId?: string
}

/** Where to read a turn: here, or in another conversation if this one is taken. */
export type AskReply = Reads | Elsewhere

export interface ConversationRpc {
  /**
   * Takes a turn, or joins the one that this request began before. Call it through ask.ts. Returns the turn's
   * events as lines of JSON (events.ts), from the first to its `done` or `error`. Turns of one conversation run
   * one at a time, in the order they came. If a reader cancels, the turn goes on. Fails with 429 if too many
   * turns wait, 400 if the conversation is another asker's, and 422 if the idempotency key has named another
   * request.
   */
  ask(request: AskRequest): Promise<Outcome<AskReply>>
  /**
   * The same for a chat whose name may be the id of a conversation, which may have been imported. If nothing was said here yet and
   * the history has messages of that id, the question goes there.
   * @param name the client's name for this conversation
   */
  askNamed(request: AskRequest, name: string): Promise<Outcome<AskReply>>
  /**
   * Reads the end of the history for a question that is on its way here (prefetch.ts). Does nothing if turns run or
   * wait here.
   * @param reading random; the question names it
   * @param after the turn that the question continues from
   * @returns at once what the object knows for this asker
   */
  lookBack(reading: string, asker?: Asker, after?: number, origin?: Origin): Promise<Seen>
  /**
   * Answers a question outside any conversation, and stores nothing. Call it through ask.ts, at an object of a random id. If its
   * reader leaves, the turn ends.
   * @param conversationId what its events name as their conversation
   */
  once(single: Single, conversationId?: string): Promise<Outcome<Reads>>
  /**
   * Returns the events after a position: the rest of its turn and all later turns, to the end of the running one.
   * Without a position it begins at the start of the latest turn. Null if nothing follows the position and nothing is
   * running. `reading` names additional data that the reader wants. Fails with 404 if the conversation is unknown,
   * deleted, or another asker's.
   */
  events(
    asker: Asker,
    after?: Position,
    reading?: Reading,
  ): Promise<Outcome<ReadableStream<Uint8Array> | null>>
  /**
   * Returns the running turn from its beginning. If none runs but the latest was interrupted within the last
   * minute, returns that turn with its error. Otherwise null. Fails with 404 as `events` does.
   */
  running(asker: Asker): Promise<Outcome<ReadableStream<Uint8Array> | null>>
  /**
   * Stops the running turn: it ends in an `error`, and its call to the provider is aborted. False if none is
   * running, or if its answer is already stored; that turn ends well. Fails with 404 as `events` does.
   */
  stop(asker: Asker): Promise<Outcome<boolean>>
  /**
   * Reports that a caller who waited for the whole answer left before it was delivered. For the next minute the
   * same request gets this answer again. The object itself notices a broken stream, but not an undelivered
   * whole answer.
   */
  lost(turn: number): Promise<void>
  /**
   * Whether an asker may continue this conversation, if it exists. Only its history knows whether it exists.
   */
  isOpenTo(asker: Asker): Promise<boolean>
  /**
   * What this conversation holds for a request that was sent here from another object: a `turn` whose answer
   * may be copied, `nothing` yet, or `other` turns.
   */
  holds(identity: RequestIdentity): Promise<'turn' | 'nothing' | 'other'>
  /**
   * Returns the events of the turn of the same request, from its first, for another conversation to copy. Waits
   * a little for a request that is on its way here. Null if there is none.
   */
  copy(identity: RequestIdentity): Promise<Outcome<ReadableStream<Uint8Array> | null>>
  /**
   * Takes what is not a turn. Fails with 404 for a conversation that is deleted or another asker's.
   */
  tell(command: Command): Promise<Outcome<number>>
  /**
   * Makes sure that D1 holds everything readable of this conversation, if this object holds anything. Fails
   * with 404 for a conversation that is deleted or another asker's, and with 503 while D1 is unavailable.
   * @returns true: something had to be delivered. An object of the version before never says so
   */
  recorded(asker: Asker): Promise<Outcome<true | undefined>>
  /**
   * Returns the turns that ended without an answer, with their traces, oldest first, while their log is kept.
   * Fails with 404 as `recorded` does.
   * @param turn only this one
   */
  unanswered(asker: Asker, turn?: number): Promise<Outcome<TracedTurn[]>>
  /**
   * Goes on with a walk over the turns of all conversations. Call it through gaps.ts, at an object of a random id. Stores nothing.
   * @param whose turns it looks at
   */
  gaps(from: Parameters<typeof walkTurns>[1], whose: Scope): Promise<Outcome<Walked>>
  /**
   * Deletes the conversation as `erase` does, on behalf of an asker. False if this object holds nothing. Fails
   * with 404 for a conversation that is deleted or another asker's.
   */
  remove(asker: Asker, origin?: Origin): Promise<Outcome<boolean>>
  /**
   * Deletes the conversation for good: this object's storage, its messages in the history collection, and its
   * rows in D1. A running turn is stopped. The conversation is unreadable at once. What cannot be deleted now
   * is deleted by alarm.
   * @param historyId object of its history collection, in case this object does not know it
   * @returns false if something is left for the alarm
   */
  erase(historyId?: string, origin?: Origin): Promise<boolean>
}

/**
 * Which calls may be repeated if it is unknown whether they ran (durable/objects.ts). A stream that has begun is
 * not repeated: its reader asks for the rest.
 */
const CONVERSATION_CALLS: Repetitions<ConversationRpc> = {
  // A repeated question finds its turn by its `attempt`.
  ask: 'repeat',
  askNamed: 'repeat',
  // The question comes anyway, and reads for itself.
  lookBack: 'once',
  // At worst the model is asked twice, and nothing is stored.
  once: 'repeat',
  events: 'repeat',
  running: 'repeat',
  lost: 'repeat',
  isOpenTo: 'repeat',
  holds: 'repeat',
  copy: 'repeat',
  recorded: 'repeat',
  unanswered: 'repeat',
  erase: 'repeat',
  gaps: 'repeat',
  // A second stop would hit the turn that waited behind the first.
  stop: 'once',
  // A second call would add the message twice.
  tell: 'once',
  // A second call would find no conversation.
  remove: 'once',
}

/** Returns a handle on a conversation. Makes no call. */
export function conversationObject(env: Cloudflare.Env, conversationId: string): ConversationRpc {
  const namespace = env.CONVERSATION as DurableObjectNamespace
  return objectCalls(objectStubs<ConversationRpc>(namespace, env, conversationId), CONVERSATION_CALLS)
}

/** A handle on an object of its own for a step of a walk. It stores nothing. */
export const gapWalker = (env: Cloudflare.Env): Pick<ConversationRpc, 'gaps'> =>
  conversationObject(env, `gaps-${crypto.randomUUID()}`)

// =============================================================================
// Finds a place for a request whose own conversation id is taken: another conversation with a random id. If the
// answer to the same request is at hand, here or in the conversation where the last such request went, it is
// copied there.

/** How long a redirected request may take to arrive, in milliseconds. */
export const UNDERWAY_MS = 1_000

/** What a succession needs from its object. */
interface Predecessor {
  id: string
  state(): ConversationState | undefined
  /** whether this object has a turn of this request to copy */
  isCopyable(identity: RequestIdentity): boolean
}

export class Succession {
  readonly #env: Cloudflare.Env
  readonly #here: Predecessor
  /** settles when the last search has ended; never rejects */
  #searched: Promise<unknown> = Promise.resolve()
  #latest: string | undefined
  /** when `#latest` was given out, in milliseconds since 1970 */
  #givenAt = 0

  constructor(env: Cloudflare.Env, here: Predecessor) {
    this.#env = env
    this.#here = here
  }

  /** Runs one at a time. Otherwise, of two retries at once, neither would find the other's turn. */
  place(request: AskRequest): Promise<Elsewhere> {
    const placed = this.#searched.then(() => this.#place(identityOf(request)))
    this.#searched = placed.catch(() => {})
    return placed
  }

  async #place(identity: RequestIdentity): Promise<Elsewhere> {
    const copies = await this.#source(identity)
    const elsewhere = await sealedId(this.#env)
    // Do not copy from a copy: the time in which an answer may be copied counts from the end of the turn that a model
    // answered.
    if (copies === undefined) this.#answers(elsewhere)
    return { elsewhere, ...(copies !== undefined && { copies }) }
  }

  /** The next such request may copy the answer given in this conversation. */
  #answers(elsewhere: string): void {
    const state = this.#here.state()
    if (state && !state.closed) state.successor = elsewhere
    this.#latest = elsewhere
    this.#givenAt = Date.now()
  }

  /** The conversation whose answer may be copied, if there is one. */
  async #source(identity: RequestIdentity): Promise<string | undefined> {
    if (this.#here.isCopyable(identity)) return this.#here.id
    const latest = this.#latest ?? this.#here.state()?.successor
    if (latest === undefined) return undefined
    const state = await conversationObject(this.#env, latest).holds(identity)
    const underWay = state === 'nothing' && Date.now() - this.#givenAt < UNDERWAY_MS
    return state === 'turn' || underWay ? latest : undefined
  }
}
