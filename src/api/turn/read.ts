/** The events of a turn as they come from its Conversation object: lines of JSON in a stream of bytes. */
import type { Position } from '../../conversation/conversation-object'
import { parseExact } from '../../exact-json'
import { errorOf, interrupted, searchFailed, withCode } from '../../turn/errors'
import { isTerminal, type TurnEvent } from '../../turn/events'

export interface EventReader {
  /** The events of the next network read that completes at least one; undefined at the end. */
  (): Promise<TurnEvent[] | undefined>
  stop(): Promise<void>
}

/** Asks for the events after one of them; null where there are none. */
export type Resume = (after: Position) => Promise<ReadableStream<Uint8Array> | null>

/** How often the rest of one turn is asked for. */
const MOST_RESUMPTIONS = 3

/**
 * @param resume given for the events of a single turn: where they break off, their object having been reset or moved,
 *   the rest is asked for, which tells at least how the turn ended. The reader ends with the turn
 */
export function eventReader(events: ReadableStream<Uint8Array>, resume?: Resume): EventReader {
  let reader = events.getReader()
  let decoder = new TextDecoder()
  /** the beginning of a line, joined when the line is complete: one may come in hundreds of pieces */
  let begun: string[] = []
  let last: TurnEvent | undefined
  let stopped = false
  let resumptions = 0

  const nextChunk = async (): Promise<Uint8Array | undefined> => {
    try {
      const { value } = await reader.read()
      if (value || !resume || stopped) return value
    } catch (error) {
      if (!resume || stopped) throw error
    }
    await goOn(resume)
    return nextChunk()
  }
  /** @throws ApiError 503 where nothing is known of the rest */
  const goOn = async (resume: Resume): Promise<void> => {
    if (!last || resumptions++ === MOST_RESUMPTIONS) endless()
    const { turn, seq } = last
    const more = (await resume({ turn, seq }).catch(() => null)) ?? endless()
    reader = more.getReader()
    decoder = new TextDecoder()
    begun = []
  }

  const read = async (): Promise<TurnEvent[] | undefined> => {
    for (;;) {
      if (resume && last && isTerminal(last)) return undefined
      const chunk = await nextChunk()
      if (!chunk) return undefined
      const piece = decoder.decode(chunk, { stream: true })
      const end = piece.lastIndexOf('\n')
      if (end < 0) {
        begun.push(piece)
        continue
      }
      const lines = (begun.join('') + piece.slice(0, end)).split('\n')
      begun = [piece.slice(end + 1)]
      const batch = lines.map((line) => withCode(parseExact(line)))
      const terminal = resume ? batch.findIndex(isTerminal) : -1
      if (terminal >= 0) batch.length = terminal + 1
      last = batch.at(-1)
      return batch
    }
  }
  const stop = async (): Promise<void> => {
    stopped = true
    await reader.cancel().catch(() => {})
  }
  return Object.assign(read, { stop })
}

/**
 * The events for a protocol that shows no results. Of a turn none of whose searches succeeded it is given the error
 * alone: with what was found its answer would begin, and the error had no status of its own.
 */
export function chatReader(events: ReadableStream<Uint8Array>, resume?: Resume): EventReader {
  const read = eventReader(events, resume)
  const readChat = async (): Promise<TurnEvent[] | undefined> => {
    const batch = await read()
    const failed = batch?.findIndex((event) => searchError(event) !== undefined) ?? -1
    if (!batch || failed < 0) return batch
    return [...batch.slice(0, failed), searchError(batch[failed]!)!]
  }
  return Object.assign(readChat, { stop: read.stop })
}

/**
 * The events for Typesense's searches, which has results to show where none succeeded, each with its error: the turn
 * ends well in its eyes (contract typesense 1.7).
 */
export function resultsReader(events: ReadableStream<Uint8Array>, resume?: Resume): EventReader {
  const read = eventReader(events, resume)
  let failed = false
  const readResults = async (): Promise<TurnEvent[] | undefined> => {
    const batch = await read()
    return batch?.map((event) => {
      failed ||= searchError(event) !== undefined
      if (!failed || event.type !== 'error') return event
      const { conversation_id, turn, seq } = event
      return { type: 'done', finish_reason: 'no_results', answer: '', conversation_id, turn, seq }
    })
  }
  return Object.assign(readResults, { stop: read.stop })
}

/** The error of the first search, where an event says that none succeeded. */
function searchError(event: TurnEvent): TurnEvent | undefined {
  if (event.type !== 'retrieval') return undefined
  const { replies, conversation_id, turn, seq } = event
  const [first] = replies
  if (!first || !('error' in first) || replies.some((reply) => 'result' in reply)) return undefined
  return { ...errorOf(searchFailed(first.code, first.error)), conversation_id, turn, seq }
}

/** A turn always ends in `done` or `error`. One that does not was cut off, and its answer is no answer. */
export function endless(): never {
  throw interrupted()
}
