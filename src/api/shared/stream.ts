/** Reads the events that a Conversation object streams, and streams the reply that a protocol makes of them. */
import type { Answering } from '../../conversation/ask'
import { coded, type Failure } from '../../errors'
import { settlesWithin } from '../../lib/waiting'
import { errorOf, interrupted, interruptionOf, searchFailed } from '../../turn/errors'
import { readEvent } from '../../turn/event-line'
import {
  Heartbeat,
  INTERRUPTION_SEQ,
  isForReaders,
  isNumbered,
  isTerminal,
  type Position,
  type TurnEvent,
  type Wording,
} from '../../turn/events'
import { allFailed, emptyTurn, eventsOf, fold, type Turn } from '../../turn/fold'
import { deliver, failureOf } from '../http/deliver'

// =============================================================================
// Reads the events that a Conversation object streams: lines of JSON.

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
 * @param words the pieces that the object writes itself (turn/events.ts)
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
function endless(): never {
  throw interrupted()
}

/** @throws ApiError if this event is the turn's error */
export function throwFailure(event: TurnEvent): void {
  if (event.type === 'error') throw coded(event.code, event.status, event.message)
}

// =============================================================================
// One turn as an HTTP reply: streamed while it runs, or whole at its end.

/** Writes the events of one turn in a protocol's words. Each stream has its own encoder, which may keep state. */
export interface TurnEncoder {
  /** The text for an event. Never called with an `error`. */
  encode(event: TurnEvent): string
  /** The text that ends the stream of a turn that failed or was cut off. */
  fail(failure: Failure): string
  /**
   * Call this after the conversation's object wrote this many pieces of text (turn/events.ts). For encoders that
   * number their output
   */
  passed?(pieces: number): void
}

/** What is written for an event of each type, once it is folded into the turn. @param known passages of the turn before it */
type Writers = {
  [Type in TurnEvent['type']]?: (
    event: Extract<TurnEvent, { type: Type }>,
    known: number,
  ) => string | undefined
}

/** An encoder that folds its events. @param make is given the turn so far; of types without a writer nothing is written */
export function turnEncoder(
  make: (turn: Turn) => Writers & Pick<TurnEncoder, 'fail' | 'passed'>,
): TurnEncoder {
  const turn = emptyTurn()
  const { fail, passed, ...writers } = make(turn)
  return {
    encode(event) {
      const known = turn.passages.length
      fold(turn, event)
      return writers[event.type]?.(event as never, known) ?? ''
    },
    fail,
    ...(passed && { passed }),
  }
}

/** A server-sent event of JSON. */
export const frame = (content: unknown): string => `data: ${JSON.stringify(content)}\n\n`

interface TurnStreaming {
  headers: Record<string, string>
  /** written when nothing else is; a comment in server-sent events by default */
  heartbeat?: string
  /** milliseconds of silence before a heartbeat, 15,000 by default */
  heartbeatMs?: number
}

export interface Streaming extends TurnStreaming {
  /** what to wait for before sending headers. `once`: nothing, as when a reader resumes */
  opensAt: keyof typeof OPENINGS | 'once'
}

const UNCACHED = { 'cache-control': 'no-cache, no-transform' }

/** Streams the answer. @throws ApiError if the turn fails before the headers are sent */
export async function streamTurn(
  read: EventReader,
  encoder: TurnEncoder,
  { opensAt, ...streaming }: Streaming,
): Promise<Response> {
  const head = opensAt === 'once' ? { events: [] } : await readHead(read, OPENINGS[opensAt])
  return streamFrom(head, read, encoder, streaming)
}

/** Streams the rest of a turn after its head. */
export function streamFrom(
  { events, pending }: TurnHead,
  read: EventReader,
  encoder: TurnEncoder,
  { headers, heartbeat = COMMENT, heartbeatMs }: TurnStreaming,
): Response {
  const turn = ofOneTurn(encoder)
  // The words come after the first piece of text, and before what follows it.
  const first = read.words ? events.findIndex(({ type }) => type === 'delta') : -1
  const { text, end } = turn.encode(first < 0 ? events : events.slice(0, first))
  return streamEvents(read, turn, {
    headers: { ...UNCACHED, ...headers },
    head: { text: first < 0 ? text || heartbeat : text, end },
    heartbeat,
    heartbeatMs,
    pending: first < 0 ? pending : Promise.resolve(events.slice(first)),
  })
}

/** Waits for the whole turn. @throws ApiError if it fails */
export async function wholeTurn(read: EventReader): Promise<Turn> {
  let turn = emptyTurn()
  read.anew?.(() => {
    turn = emptyTurn()
  })
  for (;;) {
    for (const event of (await read()) ?? endless()) {
      throwFailure(event)
      fold(turn, event)
      if (event.type === 'done') return turn
    }
  }
}

/** An answer that has begun. `unnamed`: its reply does not name the conversation */
type Begun = Answering & { unnamed?: boolean | undefined }

const nameOf = ({ conversationId, unnamed }: Begun): Record<string, string> =>
  unnamed ? {} : { 'x-parley-conversation-id': conversationId }

const readerOf = ({ events, resume, words }: Answering): EventReader => chatReader(events, resume, words)

/** Streams an answer that has begun. @throws ApiError as `streamTurn` */
export const streamAnswer = (
  answering: Begun,
  encoder: TurnEncoder,
  { headers, ...streaming }: Omit<Streaming, 'headers'> & Partial<Pick<Streaming, 'headers'>>,
): Promise<Response> =>
  streamTurn(readerOf(answering), encoder, { ...streaming, headers: { ...nameOf(answering), ...headers } })

/** Waits for an answer that has begun. @param write the reply's JSON @throws ApiError as `wholeTurn` */
export async function wholeAnswer(answering: Begun, write: (turn: Turn) => unknown): Promise<Response> {
  const turn = await wholeTurn(readerOf(answering))
  return deliver(write(turn), nameOf(answering), answering.delivery(turn.turn))
}

/** Encodes a log of one turn. The stream ends with the turn. */
const ofOneTurn = (encoder: TurnEncoder): EventEncoder => ({
  encode(events) {
    if (!events) endless()
    const last = events.at(-1)
    if (last?.type !== 'error') return { text: encodeAll(encoder, events), end: last?.type === 'done' }
    const { code, status, message } = last
    const text = encodeAll(encoder, events.slice(0, -1))
    return { text: text + encoder.fail({ code, status, message }), end: true }
  },
  breakOff: (error) => encoder.fail(failureOf(error)),
  passed: (pieces) => encoder.passed?.(pieces),
})

/** Joins text that arrived together: one write instead of many. */
function encodeAll(encoder: TurnEncoder, events: TurnEvent[]): string {
  let encoded = ''
  for (let at = 0; at < events.length; at++) {
    let event = events[at]!
    while (event.type === 'delta' && events[at + 1]?.type === 'delta') {
      const next = events[++at] as typeof event
      event = { ...event, text: event.text + next.text }
    }
    encoded += encoder.encode(event)
  }
  return encoded
}

/** What to wait for before sending headers, and how long. */
export interface Opening {
  /** wait for one of these events; absent: any */
  awaits?: TurnEvent['type'][]
  /** milliseconds. Clients wait a few seconds for headers, and then retry */
  graceMs: number
}

interface TurnHead {
  events: TurnEvent[]
  /** a read that has begun and not ended */
  pending?: ReturnType<EventReader>
}

/** Wait for any event, for what was found, or for the first text. */
export const OPENINGS = {
  event: { graceMs: 1_000 },
  found: { awaits: ['retrieval', 'done'], graceMs: 1_000 },
  text: { awaits: ['delta', 'part', 'done'], graceMs: 2_500 },
} satisfies Record<string, Opening>

/** Reads until the reply may begin. @throws ApiError if the turn fails before that */
export async function readHead(read: EventReader, { awaits, graceMs }: Opening): Promise<TurnHead> {
  const events: TurnEvent[] = []
  const until = Date.now() + graceMs
  for (;;) {
    const pending = read()
    if (!(await settlesWithin(Math.max(0, until - Date.now()), pending))) return { events, pending }
    for (const event of (await pending) ?? endless()) {
      throwFailure(event)
      events.push(event)
    }
    if (!awaits || events.some(({ type }) => awaits.includes(type))) return { events }
  }
}

// Streams a log of events as an HTTP reply while the log grows. A protocol's encoder writes the events.
//
// Each piece of text is read once, parsed once and written once. The body is workerd's own identity stream: to write to it
// costs a tenth less than a stream that is pulled.

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
interface Words {
  text: string
  /** true if the stream ends here */
  end: boolean
}

/** How a log is streamed. */
interface EventStream {
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
      // The pieces after the first one were written by the conversation's object (turn/events.ts).
      await put(events.slice(0, first + 1))
      const isWhole = await output.copy(words)
      words = undefined
      const later: TurnEvent[] | undefined =
        events.length > first + 1 ? events.slice(first + 1) : isWhole ? await read() : undefined
      if (!isWhole || read.wasResumed?.()) {
        // What follows is numbered after all that may have been written. A client gets the answer by asking again.
        encoder.passed?.(INTERRUPTION_SEQ)
        const { conversation_id, turn } = events[first]!
        await put([interruptionOf(conversation_id, turn)])
        return
      }
      if (later) encoder.passed?.(later[0]!.seq - events[first]!.seq - 1)
      events = later
    }
  } catch (error) {
    if (!output.left) await output.write(encoder.breakOff(error))
  }
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
