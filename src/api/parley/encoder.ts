/**
 * A turn's events as server-sent events: a pure function from an event to its bytes.
 *
 *     id: <turn>.<seq>
 *     event: <type>
 *     data: <the event as JSON, without what the other lines say>
 *
 * JSON escapes every line break, so that the data of an event is one line.
 */
import type { TurnEvent } from '../../turn/events'

/** What a client waits, in milliseconds, before it connects again. Sent once, at the head of a stream. */
export const RETRY = 'retry: 1000\n\n'

export function encodeEvent(event: TurnEvent): string {
  const { type, conversation_id, turn, seq, ...data } = event
  // The first event of a turn is where a client learns which conversation it began.
  const shown = type === 'question' ? { conversation_id, ...data } : data
  return `id: ${turn}.${seq}\nevent: ${type}\ndata: ${JSON.stringify(shown)}\n\n`
}
