/** Server-sent events out of a byte stream, whatever the network did to it on the way. */
import { createParser } from 'eventsource-parser'
import { rest, SLICE_BYTES, worked } from '../turn-taking'

/** Bytes of an event, or of a frame. A larger one is no answer; without a bound a broken server could fill the memory. */
export const LARGEST_EVENT = 4 * 1024 * 1024

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
 * @param onRead called with the bytes of each read
 * @param signal ends the reading, whether or not the body's source heeds it
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onRead: (bytes: Uint8Array) => void = () => {},
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
      if (done) {
        parser.feed(`${decoder.decode()}\n\n`)
        yield* pending
        return
      }
      onRead(value)
      for (let at = 0; at < value.length; at += SLICE_BYTES) {
        const slice = value.subarray(at, at + SLICE_BYTES)
        parser.feed(decoder.decode(slice, { stream: true }))
        if (pending.length > 0) {
          const events = pending
          pending = []
          yield* events
        }
        if (worked(slice.length)) await rest()
      }
    }
  } finally {
    signal?.removeEventListener('abort', stop)
    // Also reached when the consumer stops early: the provider then stops too.
    await reader.cancel().catch(() => {})
  }
}
