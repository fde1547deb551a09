/** Server-sent events out of a byte stream, whatever the network did to it on the way. */
import { createParser } from 'eventsource-parser'

// A single event larger than this is no answer; without a bound a broken server could fill the memory.
const LARGEST_EVENT = 8 * 1024 * 1024

/**
 * Has a signal end a reading. A cancelled reader has its end at once, while the source of a stream that came out of
 * a binding may know nothing of the signal.
 * @returns the listener, to be removed
 */
export function endingWith(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal?: AbortSignal,
): () => void {
  const stop = () => void reader.cancel().catch(() => {})
  if (signal?.aborted) stop()
  else signal?.addEventListener('abort', stop, { once: true })
  return stop
}

/**
 * The `data` of each event, in order. Events and characters may be split over reads at any byte. A last event
 * that lacks its blank line still counts: whether the stream was complete is for the caller to tell, from its
 * own end marker.
 *
 * A plain reader loop, because web-stream pipelines cost half as much again in workerd.
 * @param onRead called for each read: the sign of life that a timeout waits for
 * @param signal ends the reading, whether or not the body's source heeds it
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onRead: () => void = () => {},
  signal?: AbortSignal,
): AsyncGenerator<string, void> {
  const reader = body.getReader()
  const stop = endingWith(reader, signal)
  const decoder = new TextDecoder()
  let pending: string[] = []
  const parser = createParser({
    maxBufferSize: LARGEST_EVENT,
    onEvent: (event) => {
      pending.push(event.data)
    },
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') throw error
    },
  })
  try {
    while (true) {
      const { done, value } = await reader.read()
      if (signal?.aborted) return
      onRead()
      parser.feed(done ? `${decoder.decode()}\n\n` : decoder.decode(value, { stream: true }))
      const events = pending
      pending = []
      yield* events
      if (done) return
    }
  } finally {
    signal?.removeEventListener('abort', stop)
    // Also reached when the consumer stops early: the provider then stops too.
    await reader.cancel().catch(() => {})
  }
}
