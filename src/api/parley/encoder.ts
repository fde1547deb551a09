/**
 * Writes an event of a turn as a server-sent event. Pure.
 *
 *     id: <turn>.<seq>
 *     event: <type>
 *     data: <the event as JSON, without what the other lines say>
 *
 * JSON escapes line breaks, so the data is always one line.
 */
import type { TurnEvent } from '../../turn/events'

/** How long a client waits before it reconnects, in milliseconds. Sent once, at the beginning of a stream. */
export const RETRY = 'retry: 1000\n\n'

export function encodeEvent(event: TurnEvent): string {
  const { type, conversation_id, turn, seq, ...data } = event
  // The first event of a turn tells the client its conversation's id.
  const shown = type === 'question' ? { conversation_id, ...data } : data
  return `id: ${turn}.${seq}\nevent: ${type}\ndata: ${JSON.stringify(shown)}\n\n`
}
