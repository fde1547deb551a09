/** What a Conversation object offers over RPC, as plain promises of plain data. */
import type { Outcome } from '../errors'
import { objectCalls, type Repetitions } from '../object-calls'
import type { TracedTurn } from '../turn/fold'
import type { Asker, AskRequest } from '../turn/request'
import type { TranscriptMessage } from '../turn/transcript'
import type { RequestIdentity } from './joins'

/** Another conversation, which a question is to begin. */
export interface Elsewhere {
  /** its id */
  elsewhere: string
  /** the conversation that has the answer to the same request, to be copied */
  copies?: string
  /** what was said before, where the question goes on from an earlier turn than the last one */
  transcript?: TranscriptMessage[]
}

/** Where a turn is to be read: here, or, where its place is taken, in another conversation. */
export type Asked = { events: ReadableStream<Uint8Array> } | Elsewhere

/** A place in a conversation: an event's turn and sequence number. On the wire `turn.seq`. */
export interface Position {
  turn: number
  /** -1: before the turn's first event */
  seq: number
}

export interface ConversationRpc {
  /**
   * Takes a turn, or joins the one that this request began before (see ask.ts, which is the way to call this):
   * its events as lines of JSON (events.ts), from the first to its `done` or `error`. Turns of one
   * conversation run one at a time, in the order they came. A reader who cancels leaves; the turn goes on.
   * Fails with 429 when too many turns are waiting, with 400 when the conversation is another asker's and
   * with 422 when its idempotency key has named another request.
   */
  ask(request: AskRequest): Promise<Outcome<Asked>>
  /**
   * The events after a position: the rest of its turn and whatever turns came after it, to the end of the one
   * that is running. Without a position: the latest turn from its beginning. Null when nothing comes after the
   * position and nothing is running. Fails with 404 for a conversation that is unknown, deleted, or another
   * asker's.
   */
  events(asker: Asker, after?: Position): Promise<Outcome<ReadableStream<Uint8Array> | null>>
  /**
   * The running turn from its beginning; where none is running, the latest one if it was interrupted within the last
   * minute, with the error that it ended in. Null when there is neither. Fails with 404 as `events` does.
   */
  running(asker: Asker): Promise<Outcome<ReadableStream<Uint8Array> | null>>
  /**
   * Stops the running turn, which then ends in an `error`, and aborts its call to the provider. False when
   * none is running, and when its answer is stored already: that turn ends well. Fails with 404 as `events` does.
   */
  stop(asker: Asker): Promise<Outcome<boolean>>
  /**
   * Its caller, who waited for the whole answer, had gone before a turn's answer was delivered: for the next
   * minute the same request is told this answer again. Streams are noticed here; a whole answer is not.
   */
  lost(turn: number): Promise<void>
  /** Whether an asker may go on with this conversation, if there is one: whether there is, its history knows. */
  isOpenTo(asker: Asker): Promise<boolean>
  /**
   * What there is here for a request that was sent elsewhere: a `turn` whose answer may be copied, `nothing` so far, or
   * `other` turns.
   */
  holds(identity: RequestIdentity): Promise<'turn' | 'nothing' | 'other'>
  /**
   * The events of the turn of the same request, from its first one, for another conversation to copy. A request that is
   * on its way here is waited for a little. Null where there is none.
   */
  copy(identity: RequestIdentity): Promise<Outcome<ReadableStream<Uint8Array> | null>>
  /**
   * Sees to it that D1 has all that is to be read of it, where this object holds anything. Fails with 404 for a
   * conversation that is deleted or another asker's, and with 503 while D1 does not take it.
   */
  recorded(asker: Asker): Promise<Outcome<void>>
  /**
   * The turns that ended without an answer, with their traces, oldest first, as long as their log is kept. Fails with 404
   * as `recorded` does.
   * @param turn only this one
   */
  unanswered(asker: Asker, turn?: number): Promise<Outcome<TracedTurn[]>>
  /**
   * Deletes the conversation as `erase` does, for an asker. False where this object holds nothing. Fails with 404 for a
   * conversation that is deleted or another asker's.
   */
  remove(asker: Asker): Promise<Outcome<boolean>>
  /**
   * Deletes the conversation for good: what this object holds, its messages in its history collection and its
   * rows in D1. A running turn is stopped. The conversation is unreadable at once; what cannot be deleted now
   * is deleted by alarm.
   * @param historyId its history collection's object, should this object not know
   * @returns false when something is left to the alarm
   */
  erase(historyId?: string): Promise<boolean>
}

/**
 * Which calls may be made again when it is not known whether they were carried out (object-calls.ts). A stream that has
 * begun is not: its reader asks for the rest of it.
 */
const CONVERSATION_CALLS: Repetitions<ConversationRpc> = {
  // By its `attempt` a question finds the turn that it began.
  ask: 'repeat',
  events: 'repeat',
  running: 'repeat',
  lost: 'repeat',
  isOpenTo: 'repeat',
  holds: 'repeat',
  copy: 'repeat',
  recorded: 'repeat',
  unanswered: 'repeat',
  erase: 'repeat',
  // The second time it would stop the turn that waited behind the first.
  stop: 'once',
  // The second time there is no such conversation.
  remove: 'once',
}

/** A handle on a conversation. Makes no call. */
export function conversationObject(env: Cloudflare.Env, conversationId: string): ConversationRpc {
  const namespace = env.CONVERSATION as DurableObjectNamespace
  const id = namespace.idFromName(conversationId)
  return objectCalls(() => namespace.get(id) as unknown as ConversationRpc, CONVERSATION_CALLS)
}
