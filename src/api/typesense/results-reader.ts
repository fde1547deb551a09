/** Reads a turn for Typesense's searches. */
import type { TurnEvent } from '../../turn/events'
import { type EventReader, eventReader, type Resume, readerOver, searchError } from '../shared/read'

/**
 * The events for Typesense's searches. If every search failed, Typesense replies with the searches' errors as results, so
 * for this reader the turn ends in `done` (contract typesense 1.7).
 */
export function resultsReader(
  events: ReadableStream<Uint8Array>,
  resume?: Resume,
  words?: ReadableStream<Uint8Array>,
): EventReader {
  const read = eventReader(events, resume, words)
  let failed = false
  const readResults = async (): Promise<TurnEvent[] | undefined> => {
    const batch = await read()
    return batch?.map((event) => {
      failed ||= searchError(event) !== undefined
      if (!failed || event.type !== 'error') return event
      const { conversation_id, turn, seq } = event
      return { type: 'done', finish_reason: 'error', answer: [], conversation_id, turn, seq }
    })
  }
  return readerOver(read, readResults)
}
