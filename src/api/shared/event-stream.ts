/**
 * Streams a log of events as an HTTP reply while the log grows. A protocol's encoder writes the events.
 *
 * Each piece of text is read once, parsed once and written once. There is no TransformStream in between: in workerd one
 * costs as much as everything else here.
 */
import { interrupted } from '../../turn/errors'
import { INTERRUPTION_SEQ, type TurnEvent } from '../../turn/events'
import { Heartbeat } from '../../turn/heartbeat'
import type { Wording } from '../../turn/wording'
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
  const body = read.words ? bodyWithWords(read, encoder, stream) : bodyOf(read, encoder, stream)
  return new Response(body, { headers: { ...HEADERS, ...stream.headers } })
}

function bodyOf(
  read: EventReader,
  encoder: EventEncoder,
  { head, heartbeat, heartbeatMs = HEARTBEAT_MS, pending }: EventStream,
): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder()
  let begun = pending
  let left = false
  let beating: Heartbeat | undefined

  const next = async (): Promise<Words> => {
    try {
      return encoder.encode(await (begun ?? read()))
    } catch (error) {
      return { text: left ? '' : encoder.breakOff(error), end: true }
    } finally {
      begun = undefined
    }
  }

  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes.encode(head.text))
      if (head.end) {
        controller.close()
        return
      }
      beating = new Heartbeat(heartbeatMs, () => controller.enqueue(bytes.encode(heartbeat)))
    },
    async pull(controller) {
      for (let written = false; !written; ) {
        const { text, end } = await next()
        if (left) return
        written = text !== ''
        if (written) {
          beating?.written()
          controller.enqueue(bytes.encode(text))
        }
        if (end) {
          beating?.stop()
          controller.close()
          return
        }
      }
    },
    async cancel() {
      left = true
      beating?.stop()
      await read.stop()
    },
  })
}

/**
 * The same, with the pieces of the answer written by the conversation's object (turn/wording.ts). The runtime copies
 * them from stream to stream, and JavaScript continues with the event after them.
 */
function bodyWithWords(
  read: EventReader,
  encoder: EventEncoder,
  { head, heartbeat, heartbeatMs = HEARTBEAT_MS, pending }: EventStream,
): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder()
  const { readable, writable } = new IdentityTransformStream()
  /** the words that were not copied yet */
  let words = read.words
  /** number of the piece before the copied words */
  let before: number | undefined
  /** whether some of the words may be missing */
  let isTorn = false
  let left = false
  let begun = pending
  let writer = writable.getWriter()
  let held: typeof writer | undefined
  let beating: Heartbeat | undefined

  const take = (): void => {
    const taken = writer
    // `closed` also rejects when the writer releases its lock.
    taken.closed.catch(() => {
      if (held === taken) leave()
    })
    held = taken
    beating = new Heartbeat(heartbeatMs, () => void write(heartbeat).catch(() => {}))
  }
  const leave = (): void => {
    if (left) return
    left = true
    beating?.stop()
    void words?.cancel().catch(() => {})
    void read.stop()
  }
  const write = async (text: string): Promise<void> => {
    if (text === '') return
    beating?.written()
    await writer.write(bytes.encode(text))
  }

  /** Writes the words. If the object dies meanwhile, it is unknown which of them were written. */
  const copy = async (source: ReadableStream<Uint8Array>): Promise<void> => {
    beating?.stop()
    held = undefined
    writer.releaseLock()
    isTorn = await source.pipeTo(writable, { preventClose: true, preventAbort: true }).then(
      () => false,
      () => true,
    )
    // What follows is numbered after all that may have been written.
    if (isTorn) encoder.passed?.(INTERRUPTION_SEQ)
    writer = writable.getWriter()
    take()
  }

  /** Writes events. @returns whether the stream ends with them */
  const put = async (events: TurnEvent[] | undefined): Promise<boolean> => {
    const { text, end } = encoder.encode(events)
    await write(text)
    return end
  }

  const next = async (): Promise<boolean> => {
    const events = await (begun ?? read())
    begun = undefined
    if (read.wasResumed?.()) {
      isTorn ||= before !== undefined
      // A turn that ran again has other words, and its events contain them.
      words = undefined
    }
    if (isTorn) {
      const rest = events?.filter(({ type }) => type !== 'delta')
      // The answer is complete, but this stream missed parts of it. The client gets it by asking again.
      if (rest?.at(-1)?.type === 'done') throw interrupted()
      return put(rest)
    }
    const [follows] = events ?? []
    if (before !== undefined && follows) {
      encoder.passed?.(follows.seq - before - 1)
      before = undefined
    }
    const first = words ? (events?.findIndex(({ type }) => type === 'delta') ?? -1) : -1
    if (!words || !events || first < 0) return put(events)
    const source = words
    words = undefined
    before = events[first]!.seq
    await put(events.slice(0, first + 1))
    await copy(source)
    const later = events.slice(first + 1)
    if (later.length > 0) begun = Promise.resolve(later)
    return false
  }

  const run = async (): Promise<void> => {
    take()
    try {
      await write(head.text)
      for (let end = head.end; !end && !left; ) end = await next()
    } catch (error) {
      if (!left) await write(encoder.breakOff(error))
    }
    beating?.stop()
    if (!left) await writer.close()
  }
  void run().catch(leave)
  return readable
}
