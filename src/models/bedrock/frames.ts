/**
 * The framing of AWS event streams (`application/vnd.amazon.eventstream`): messages of headers and a body, each
 * with its length before it and checksums, sent one after another. The network cuts them anywhere.
 */
import { EventStreamCodec } from '@smithy/core/event-streams'
import { endingWith } from '../sse'

export interface Frame {
  /** the string headers, `:message-type` and `:event-type` among them */
  headers: Record<string, string>
  body: string
}

// A prelude with its checksum, and the checksum of the message.
const SMALLEST = 16
// Far above what a piece of an answer needs; without a bound a broken server could fill the memory.
const LARGEST = 8 * 1024 * 1024

const decoder = new TextDecoder()
const encoder = new TextEncoder()
const codec = new EventStreamCodec(
  (bytes) => decoder.decode(bytes as Uint8Array),
  (text) => encoder.encode(text),
)

/**
 * The messages of a byte stream, in order. What is left when it ends is no message: whether the stream was complete
 * is for the caller to tell, from its own end marker.
 * @param onRead called for each read: the sign of life that a timeout waits for
 * @param signal ends the reading
 * @throws Error for a message that does not have the checksum, or a length, that it should
 */
export async function* readFrames(
  body: ReadableStream<Uint8Array>,
  onRead: () => void = () => {},
  signal?: AbortSignal,
): AsyncGenerator<Frame, void> {
  const reader = body.getReader()
  const stop = endingWith(reader, signal)
  let pending: Uint8Array = new Uint8Array(0)
  try {
    while (true) {
      const { done, value } = await reader.read()
      onRead()
      if (done || signal?.aborted) return
      pending = pending.length === 0 ? value : joined(pending, value)
      for (let frame = first(pending); frame; frame = first(pending)) {
        pending = pending.subarray(frame.length)
        yield decoded(frame)
      }
    }
  } finally {
    signal?.removeEventListener('abort', stop)
    // Also reached when the consumer stops early: the provider then stops too.
    await reader.cancel().catch(() => {})
  }
}

/** The bytes of the first message; undefined while some are missing. */
function first(bytes: Uint8Array): Uint8Array | undefined {
  if (bytes.length < 4) return undefined
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
  if (length < SMALLEST || length > LARGEST)
    throw new Error('a message of an event stream has no such length')
  return bytes.length < length ? undefined : bytes.subarray(0, length)
}

function decoded(frame: Uint8Array): Frame {
  const { headers, body } = codec.decode(frame)
  const strings = Object.entries(headers).filter(([, { type }]) => type === 'string')
  return {
    headers: Object.fromEntries(strings.map(([name, { value }]) => [name, String(value)])),
    body: decoder.decode(body),
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length)
  bytes.set(first)
  bytes.set(second, first.length)
  return bytes
}
