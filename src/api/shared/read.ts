/** Reads the events that a Conversation object streams: lines of JSON. */

import { coded } from '../../errors'
import { errorOf, interrupted, searchFailed } from '../../turn/errors'
import { readEvent } from '../../turn/event-line'
import { isForReaders, isNumbered, isTerminal, type Position, type TurnEvent } from '../../turn/events'
import { allFailed, eventsOf, type Turn } from '../../turn/fold'

export interface EventReader {
  /** The events of the next network read that completes at least one; undefined at the end. */
  (): Promise<TurnEvent[] | undefined>
  stop(): Promise<void>
  /** the pieces of the answer after its first, as the protocol writes them. The events do not have them then */
  readonly words?: ReadableStream<Uint8Array> | undefined
  /** whether the stream broke off, and its rest was asked for */
  wasResumed?(): boolean
  /**
   * Call this if nothing is shown before the turn's end: where the stream breaks off, the turn is then read anew from its first event,
   * because it may run again and say something else. @param forget called when that happens
   */
  anew?(forget: () => void): void
}

/** Reads a turn that has ended as if it were written now. */
export function endedReader(turn: Turn): EventReader {
  const batches = [eventsOf(turn)]
  return Object.assign(async () => batches.shift(), { stop: async () => {} })
}

/** Asks for the events after a position, or for all if none was read; null if there are none. */
export type Resume = (after?: Position) => Promise<ReadableStream<Uint8Array> | null>

/** How often to resume one turn. */
const MOST_RESUMPTIONS = 3

/**
 * @param resume for the events of a single turn. If the stream breaks off, because the object was reset or moved, the
 *   reader asks for the rest. The turn then runs again, and its rest follows unless some of its answer was read: then it is an
 *   error. The reader ends with the turn
 * @param words the pieces that the object writes itself (turn/wording.ts)
 */
export function eventReader(
  events: ReadableStream<Uint8Array>,
  resume?: Resume,
  words?: ReadableStream<Uint8Array>,
): EventReader {
  let reader = events.getReader()
  let decoder = new TextDecoder()
  /** parts of an unfinished line. Joined once it is complete, because a line can come in hundreds of pieces */
  let begun: string[] = []
  /** events that belong to the next numbered event: both are delivered, or neither */
  let held: TurnEvent[] = []
  let last: TurnEvent | undefined
  let stopped = false
  let resumptions = 0
  let forget: (() => void) | undefined

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
  /** @throws ApiError 503 if the rest is unknown */
  const goOn = async (resume: Resume): Promise<void> => {
    if (resumptions++ === MOST_RESUMPTIONS) endless()
    const after = last && { turn: last.turn, seq: forget ? -1 : last.seq }
    forget?.()
    const more = (await resume(after).catch(() => null)) ?? endless()
    reader = more.getReader()
    decoder = new TextDecoder()
    begun = []
    held = []
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
      const events = [...held, ...lines.map(readEvent).filter(isForReaders)]
      const whole = events.findLastIndex(isNumbered) + 1
      held = events.slice(whole)
      if (whole === 0) continue
      const batch = events.slice(0, whole)
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
  const anew = (whenBroken: () => void): void => {
    forget = whenBroken
  }
  return Object.assign(read, { stop, words, wasResumed: () => resumptions > 0, anew })
}

/** A reader that changes what another one reads. */
export const readerOver = (
  { stop, words, wasResumed, anew }: EventReader,
  read: () => Promise<TurnEvent[] | undefined>,
): EventReader =>
  Object.assign(read, { stop, words, ...(wasResumed && { wasResumed }), ...(anew && { anew }) })

/**
 * The events for a protocol that shows no search results. If every search failed, the error comes in place of the
 * retrieval: a retrieval would begin the reply, and the error could no longer have an HTTP status of its own.
 */
export function chatReader(
  events: ReadableStream<Uint8Array>,
  resume?: Resume,
  words?: ReadableStream<Uint8Array>,
): EventReader {
  const read = eventReader(events, resume, words)
  const readChat = async (): Promise<TurnEvent[] | undefined> => {
    const batch = await read()
    const failed = batch?.findIndex((event) => searchError(event) !== undefined) ?? -1
    if (!batch || failed < 0) return batch
    return [...batch.slice(0, failed), searchError(batch[failed]!)!]
  }
  return readerOver(read, readChat)
}

/** The error of the first search, if in this event all searches failed. */
export function searchError(event: TurnEvent): TurnEvent | undefined {
  if (event.type !== 'retrieval') return undefined
  const { searches, conversation_id, turn, seq } = event
  const [{ error } = {}] = searches
  if (!error || !allFailed({ summaries: searches })) return undefined
  return { ...errorOf(searchFailed(error.status, error.message)), conversation_id, turn, seq }
}

/** A turn always ends in `done` or `error`. If its stream ends without either, it was cut off. @throws ApiError 503 */
export function endless(): never {
  throw interrupted()
}

/** @throws ApiError if this event is the turn's error */
export function throwFailure(event: TurnEvent): void {
  if (event.type === 'error') throw coded(event.code, event.status, event.message)
}
