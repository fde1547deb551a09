/**
 * Streams a log of events as an HTTP reply while the log grows. A protocol's encoder writes the events.
 *
 * Each piece of text is read once, parsed once and written once. The body is workerd's own identity stream: to write to it
 * costs a tenth less than a stream that is pulled.
 */
import { interrupted } from '../../turn/errors'
import { INTERRUPTION_SEQ, type TurnEvent } from '../../turn/events'
import { Heartbeat, type Wording } from '../../turn/wording'
import type { EventReader } from './read'

/** Writes a log in a protocol's words. Each stream has its own encoder, which may keep state. */
export interface EventEncoder {
  /** @param events that arrived together; undefined: the log has ended. @throws Error if the log is incomplete */
  encode(events: TurnEvent[] | undefined): Words
  /** The last text of a stream whose log cannot be read to the end. */
  breakOff(error: unknown): string
  /** Call this after the conversation's object wrote this many pieces of the answer. */
  passed?(pieces: number): void
}

/** Text to write. */
export interface Words {
  text: string
  /** true if the stream ends here */
  end: boolean
}

/** How a log is streamed. */
export interface EventStream {
  headers: Record<string, string>
  /** written first */
  head: Words
  /** written when nothing else is; every client of the protocol ignores it */
  heartbeat: string
  /** milliseconds of silence before a heartbeat, 15,000 by default */
  heartbeatMs?: number | undefined
  /** a read that has begun and not ended */
  pending?: ReturnType<EventReader> | undefined
}

/** A comment in server-sent events (contract chat-protocols 3.2). */
export const COMMENT = ': ping\n\n'

/** Proxies and load balancers close an idle connection after 30 s at the earliest. */
export const HEARTBEAT_MS = 15_000

/** How pieces are written that are JSON in server-sent events. @param line see Wording */
export const eventWording = (line: Wording['line']): Wording => ({
  line,
  escapes: 'json',
  heartbeat: COMMENT,
  heartbeatMs: HEARTBEAT_MS,
})

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'x-accel-buffering': 'no',
}

/** A reply with status 200. A reader who disconnects stops reading; the turn goes on until somebody stops it. */
export function streamEvents(read: EventReader, encoder: EventEncoder, stream: EventStream): Response {
  const { headers, heartbeat, heartbeatMs = HEARTBEAT_MS } = stream
  const output = new Output(heartbeat, heartbeatMs, () => {
    void read.words?.cancel().catch(() => {})
    void read.stop()
  })
  void writeLog(output, read, encoder, stream)
    .then(() => output.end())
    .catch(() => output.leave())
  return new Response(output.body, { headers: { ...HEADERS, ...headers } })
}

/** Writes a log to its end. @throws Error if the reader has left */
async function writeLog(
  output: Output,
  read: EventReader,
  encoder: EventEncoder,
  { head, pending }: EventStream,
): Promise<void> {
  /** @returns whether the stream ends with these events */
  const put = async (events: TurnEvent[] | undefined): Promise<boolean> => {
    const { text, end } = encoder.encode(events)
    await output.write(text)
    return end
  }
  try {
    await output.write(head.text)
    if (head.end) return
    let { words } = read
    let events = await (pending ?? read())
    for (;;) {
      // A turn that ran again has other words, and its events contain them.
      if (read.wasResumed?.()) words = undefined
      const first = words && events ? events.findIndex(({ type }) => type === 'delta') : -1
      if (!words || !events || first < 0) {
        if (await put(events)) return
        events = await read()
        continue
      }
      // The pieces after the first one were written by the conversation's object (turn/wording.ts).
      await put(events.slice(0, first + 1))
      const isWhole = await output.copy(words)
      words = undefined
      const later: TurnEvent[] | undefined =
        events.length > first + 1 ? events.slice(first + 1) : await read()
      if (!isWhole || read.wasResumed?.()) {
        // What follows is numbered after all that may have been written.
        encoder.passed?.(INTERRUPTION_SEQ)
        await put([await errorOf(read, later)])
        return
      }
      if (later) encoder.passed?.(later[0]!.seq - events[first]!.seq - 1)
      events = later
    }
  } catch (error) {
    if (!output.left) await output.write(encoder.breakOff(error))
  }
}

/**
 * The error that ends a turn, for a stream that may have missed some of its words.
 * @throws ApiError 503 for an answer that is complete: the client gets it by asking again
 */
async function errorOf(read: EventReader, from: TurnEvent[] | undefined): Promise<TurnEvent> {
  for (let events = from; events; events = await read()) {
    const last = events.at(-1)!
    if (last.type === 'error') return last
    if (last.type === 'done') break
  }
  throw interrupted()
}

/** The body of a reply: text, another stream within it, and a heartbeat where nothing else is written. */
class Output {
  readonly body: ReadableStream<Uint8Array>
  /** whether the reader has left */
  left = false
  readonly #writable: WritableStream<Uint8Array>
  readonly #bytes = new TextEncoder()
  readonly #onLeft: () => void
  readonly #beat: () => Heartbeat
  #writer: WritableStreamDefaultWriter<Uint8Array> | undefined
  #beating: Heartbeat | undefined

  constructor(heartbeat: string, heartbeatMs: number, onLeft: () => void) {
    const { readable, writable } = new IdentityTransformStream()
    this.body = readable
    this.#writable = writable
    this.#onLeft = onLeft
    this.#beat = () => new Heartbeat(heartbeatMs, () => void this.write(heartbeat).catch(() => {}))
    this.#take()
  }

  #take(): void {
    const writer = this.#writable.getWriter()
    // `closed` also rejects when the writer releases its lock.
    writer.closed.catch(() => {
      if (this.#writer === writer) this.leave()
    })
    this.#writer = writer
    this.#beating = this.#beat()
  }

  /** @throws Error if the reader has left */
  async write(text: string): Promise<void> {
    if (text === '') return
    this.#beating?.written()
    await this.#writer?.write(this.#bytes.encode(text))
  }

  /**
   * Copies a stream. The runtime does it, and no JavaScript runs for its pieces.
   * @returns false if it broke off. It is unknown then how much of it was written
   */
  async copy(source: ReadableStream<Uint8Array>): Promise<boolean> {
    this.#beating?.stop()
    const writer = this.#writer
    this.#writer = undefined
    writer?.releaseLock()
    const isWhole = await source.pipeTo(this.#writable, { preventClose: true, preventAbort: true }).then(
      () => true,
      () => false,
    )
    this.#take()
    return isWhole
  }

  /** Call this if the reader has left. */
  leave(): void {
    if (this.left) return
    this.left = true
    this.#beating?.stop()
    this.#onLeft()
  }

  async end(): Promise<void> {
    this.#beating?.stop()
    if (!this.left) await this.#writer?.close()
  }
}
