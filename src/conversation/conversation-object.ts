/** What a Conversation object offers over RPC, as plain promises of plain data. */
import type { Outcome } from '../errors'
import type { AskRequest } from './request'

export interface ConversationRpc {
  /**
   * Takes a turn: its events as lines of JSON (events.ts), from the first to its `done` or `error`. Turns of
   * one conversation run one at a time, in the order they came. A reader who cancels leaves; the turn goes on.
   * Fails with 429 when too many turns are waiting.
   */
  ask(request: AskRequest): Promise<Outcome<ReadableStream<Uint8Array>>>
  /**
   * The events after a place, those to come included, to the end of that turn. Without a place: the latest
   * turn from its beginning. Fails with 404 when there is no such turn, or no log of it any more.
   */
  events(after?: { turn: number; seq: number }): Promise<Outcome<ReadableStream<Uint8Array>>>
  /** Stops the running turn, which then ends in an `error`. False when none is running. */
  stop(): Promise<boolean>
}

/** A handle on a conversation. Makes no call. */
export function conversationObject(env: Cloudflare.Env, conversationId: string): ConversationRpc {
  const namespace = env.CONVERSATION as DurableObjectNamespace
  return namespace.get(namespace.idFromName(conversationId)) as unknown as ConversationRpc
}
