/** The Conversation object's RPC interface: plain promises of plain data. */

import { objectCalls, type Repetitions } from '../durable/object-calls'
import { objectStubs } from '../durable/object-stubs'
import type { Outcome } from '../errors'
import type { Origin } from '../search/fault-log'
import type { Position, Reading } from '../turn/events'
import type { TracedTurn } from '../turn/fold'
import type { TranscriptMessage } from '../turn/look-back'
import type { Asker, AskRequest, Single } from '../turn/request'
import type { Command } from './commands'
import type { Reads } from './reader'
import type { RequestIdentity } from './repeated-requests'

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
   * Answers a question outside any conversation, and stores nothing. Call it through stateless-turn.ts, at an object of a random id. If its
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
   * Takes what is not a turn (commands.ts). Fails with 404 for a conversation that is deleted or another asker's.
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
 * Which calls may be repeated if it is unknown whether they ran (object-calls.ts). A stream that has begun is
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
