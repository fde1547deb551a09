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
  let rest = ''
  const read = async (): Promise<TurnEvent[] | undefined> => {
    for (;;) {
      const chunk = await reader.read()
      if (chunk.done) return undefined
      rest += decoder.decode(chunk.value, { stream: true })
      const end = rest.lastIndexOf('\n')
      if (end < 0) continue
      const lines = rest.slice(0, end).split('\n')
      rest = rest.slice(end + 1)
      return lines.map((line) => JSON.parse(line) as TurnEvent)
    }
  }
  return Object.assign(read, { stop: () => reader.cancel().catch(() => {}) })
}

/** A turn always ends in `done` or `error`. One that does not was cut off, and its answer is no answer. */
export function endless(): never {
  throw new Error('The turn was cut off before its last event.')
}
