/** The events of a turn as they come from its Conversation object: lines of JSON in a stream of bytes. */
import type { TurnEvent } from '../conversation/events'

export interface EventReader {
  /** The events of the next network read that completes at least one; undefined at the end. */
  (): Promise<TurnEvent[] | undefined>
  stop(): Promise<void>
}

export function eventReader(events: ReadableStream<Uint8Array>): EventReader {
  const reader = events.getReader()
  const decoder = new TextDecoder()
  /** the beginning of a line, joined when the line is complete: one may come in hundreds of pieces */
  let begun: string[] = []
  const read = async (): Promise<TurnEvent[] | undefined> => {
    for (;;) {
      const chunk = await reader.read()
      if (chunk.done) return undefined
      const piece = decoder.decode(chunk.value, { stream: true })
      const end = piece.lastIndexOf('\n')
      if (end < 0) {
        begun.push(piece)
        continue
      }
      const lines = (begun.join('') + piece.slice(0, end)).split('\n')
      begun = [piece.slice(end + 1)]
      return lines.map((line) => JSON.parse(line) as TurnEvent)
    }
  }
  return Object.assign(read, { stop: () => reader.cancel().catch(() => {}) })
}

/**
 * The events for a protocol that shows no results. A turn none of whose searches succeeded ends well in Typesense's
 * eyes, which has results to show; a chat has nothing, so that there it ends in an error.
 */
export function chatReader(events: ReadableStream<Uint8Array>): EventReader {
  const read = eventReader(events)
  const readChat = async (): Promise<TurnEvent[] | undefined> => {
    const batch = await read()
    const failed = batch?.findIndex((event) => searchError(event) !== undefined) ?? -1
    if (!batch || failed < 0) return batch
    return [...batch.slice(0, failed), searchError(batch[failed]!)!]
  }
  return Object.assign(readChat, { stop: read.stop })
}

/** The error of the first search, where an event says that none succeeded. */
function searchError(event: TurnEvent): TurnEvent | undefined {
  if (event.type !== 'retrieval') return undefined
  const { replies, conversation_id, turn, seq } = event
  const [first] = replies
  if (!first || !('error' in first) || replies.some((reply) => 'result' in reply)) return undefined
  const { code: status, error: message } = first
  return { type: 'error', status, message, retryable: false, conversation_id, turn, seq }
}

/** A turn always ends in `done` or `error`. One that does not was cut off, and its answer is no answer. */
export function endless(): never {
  throw new Error('The turn was cut off before its last event.')
}
