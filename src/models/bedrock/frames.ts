/**
 * The framing of AWS event streams (`application/vnd.amazon.eventstream`): a series of messages of headers and a
 * body, each with its length in front and checksums. The network may cut them anywhere.
 */
import type { EventStreamCodec } from '@smithy/core/event-streams'
import { rest, worked } from '../../lib/turn-taking'
import { endingWith, LARGEST_EVENT } from '../sse'

export interface Frame {
  /** the string headers, including `:message-type` and `:event-type` */
  headers: Record<string, string>
  body: string
}

// A prelude with its checksum, and the checksum of the message.
const SMALLEST = 16

const decoder = new TextDecoder()

/** Loads the codec when a stream is read, so that its modules do not run when the Worker starts. */
async function newCodec(): Promise<EventStreamCodec> {
  const { EventStreamCodec } = await import('./codec')
  const encoder = new TextEncoder()
  return new EventStreamCodec(
    (bytes) => decoder.decode(bytes as Uint8Array),
    (text) => encoder.encode(text),
  )
}

/**
 * Yields the messages of a byte stream, in order. Bytes left at its end are ignored: the caller must tell from its
 * own end marker whether the stream was complete.
 * @param onRead called with the bytes of each read
 * @param signal ends the reading
 * @throws Error for a message with a wrong checksum or length
 */
export async function* readFrames(
  body: ReadableStream<Uint8Array>,
  onRead: (bytes: Uint8Array) => void = () => {},
  signal?: AbortSignal,
): AsyncGenerator<Frame, void> {
  const reader = body.getReader()
  const stop = endingWith(reader, signal)
  const pending = new PendingBytes()
  try {
    const codec = await newCodec()
    while (true) {
      const { done, value } = await reader.read()
      if (done || signal?.aborted) return
      onRead(value)
      pending.push(value)
      for (let frame = pending.frame(); frame; frame = pending.frame()) {
        yield decoded(codec, frame)
        if (worked(frame.length)) await rest()
      }
      if (worked(value.length)) await rest()
    }
  } finally {
    signal?.removeEventListener('abort', stop)
    // Also runs if the consumer stops early: the provider then stops too.
    await reader.cancel().catch(() => {})
  }
}

/**
 * Bytes read that are not part of a message yet. Each is copied a few times at most, however small the reads are.
 */
class PendingBytes {
  #buffer = new Uint8Array(4_096)
  #from = 0
  #to = 0

  push(bytes: Uint8Array): void {
    if (this.#to + bytes.length > this.#buffer.length) this.#makeRoom(bytes.length)
    this.#buffer.set(bytes, this.#to)
    this.#to += bytes.length
  }

  /**
   * Takes the bytes of the first message; undefined while some are missing. They stay valid until the next push.
   * @throws Error for a length that no message has
   */
  frame(): Uint8Array | undefined {
    const bytes = this.#buffer.subarray(this.#from, this.#to)
    if (bytes.length < 4) return undefined
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
    if (length < SMALLEST || length > LARGEST_EVENT)
      throw new Error('a message of an event stream has no such length')
    if (bytes.length < length) return undefined
    this.#from += length
    return bytes.subarray(0, length)
  }

  #makeRoom(length: number): void {
    const left = this.#buffer.subarray(this.#from, this.#to)
    const buffer = new Uint8Array(Math.max(this.#buffer.length, 2 * (left.length + length)))
    buffer.set(left)
    this.#buffer = buffer
    this.#from = 0
    this.#to = left.length
  }
}

function decoded(codec: EventStreamCodec, frame: Uint8Array): Frame {
  const { headers, body } = codec.decode(frame)
  const strings = Object.entries(headers).filter(([, { type }]) => type === 'string')
  return {
    headers: Object.fromEntries(strings.map(([name, { value }]) => [name, String(value)])),
    body: decoder.decode(body),
  }
}
