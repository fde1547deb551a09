/** Reads server-sent events from a byte stream, however the network has split it. */
import { createParser } from 'eventsource-parser'
import { rest, SLICE_BYTES, worked } from '../lib/turn-taking'

/** The most bytes of an event or a frame. Without a limit, a broken server could fill the memory. */
export const LARGEST_EVENT = 4 * 1024 * 1024

/**
 * Cancels a reader when a signal aborts. Passing the signal to the stream is not enough: a stream from a binding may
 * ignore it, but a cancelled reader ends at once.
 * @returns the listener, which the caller must remove
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

/** An `event: error` as the error object that adapters look for, whatever its data is. */
function errorData(data: string): string {
  let said: unknown
  try {
    said = JSON.parse(data)
  } catch {}
  if (said === null || typeof said !== 'object') return JSON.stringify({ error: { message: data } })
  return 'error' in said && said.error ? data : JSON.stringify({ error: said })
}

/**
 * The `data` of each event, in order. Events and characters may be split at any byte. A last event without its blank
 * line still counts: the caller decides by its own end marker whether the stream was complete.
 *
 * A plain reader loop, because web-stream pipelines cost half as much again in workerd.
 * @param onRead called with the bytes of each read
 * @param signal ends the reading, even if the body's source ignores it
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
      pending.push(event.event === 'error' ? errorData(event.data) : event.data)
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
    // Also runs when the consumer stops early: then the provider stops too.
    await reader.cancel().catch(() => {})
  }
}
