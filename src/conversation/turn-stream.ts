/**
 * Sends the events of the running turn to its readers and to the log.
 *
 * Readers are written first and the log afterwards, because a stream write waits for earlier storage writes.
 * Text is gathered for up to 32 ms.
 */
import { interruptionOf } from '../turn/errors'
import { readEvent } from '../turn/event-line'
import {
  audienceOf,
  Heartbeat,
  isTerminal,
  type LogEvent,
  type LogEventBody,
  type Reading,
  RUN_SEQ,
  type TurnEvent,
  type Wording,
  writePiece,
} from '../turn/events'

/**
 * How long lines wait for the log, in milliseconds: those of a turn's beginning, and those after. Each write is a row
 * that is billed. Readers of a running turn get its lines from memory. So the log is read only once the turn has ended or
 * its object has died, and then the turn ends as interrupted however much the log holds: at most these milliseconds are
 * missing from its trace.
 */
const FIRST_LOG_MS = 1_000
const LOG_MS = 5_000
/** Characters that wait at most. */
const LOG_CHARACTERS = 256 * 1024
/** Characters of one write to a reader who has fallen behind. */
const MOST_AT_ONCE = 64 * 1024

const encoder = new TextEncoder()

/** An event that is not in the log: its line, and the number of the event it comes before. */
interface Aside {
  seq: number
  line: string
}

/** What a reader joins for. */
export interface Joining extends Reading {
  /** the pieces that it reads as words (`joinWords`) are left out */
  without?: 'words'
}

export class TurnStream {
  readonly #names: { conversation_id: string; turn: number }
  readonly #log: (lines: string, results: Aside[]) => void
  /** every reader event so far, by number */
  readonly #lines: string[] = []
  /** for readers who ask for them, by the number of the event they come before */
  readonly #results = new Map<number, string>()
  readonly #history = new Map<number, string>()
  readonly #readers = new Set<Reader>()
  readonly #wordReaders = new Set<Reader>()
  /** how many answers the turn has begun before: its object was reset so often */
  readonly #earlier: number
  /** in a later run, the place of the answer's first event */
  #answerAt: number | undefined
  /** in a later run, readers of whom only the answer's beginning shows whether they have read of an earlier one */
  #ahead: { reader: Reader; seq: number; joining: Joining }[] = []
  /** place of the first piece of the answer */
  #firstPiece: number | undefined
  /** place of the first event after it that is no piece */
  #pastPieces: number | undefined
  /** lines not in the log yet, operator events included */
  #unlogged: string[] = []
  #unloggedCharacters = 0
  #unkept: Aside[] = []
  #logTimer: ReturnType<typeof setTimeout> | undefined
  /** whether the log has any lines */
  #logged = false
  readonly #text = new TextGatherer((text) => {
    this.#speaking = true
    this.#write({ type: 'delta', text })
  })
  #ended = false
  #speaking = false

  /**
   * @param log stores lines, each with its line break, and results beside them
   * @param run 2 if the turn runs for the second time
   */
  constructor(conversationId: string, turn: number, log: (lines: string, results: Aside[]) => void, run = 1) {
    this.#names = { conversation_id: conversationId, turn }
    this.#log = log
    this.#earlier = run - 1
  }

  get turn(): number {
    return this.#names.turn
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Whether the turn runs again: the numbers of its answer then do not follow those before. */
  get isRepeated(): boolean {
    return this.#earlier > 0
  }

  /** Whether any of the answer can be read yet. */
  get speaking(): boolean {
    return this.#speaking
  }

  /** How many readers follow the turn. */
  get readers(): number {
    for (const reader of this.#readers) if (!reader.open) this.#readers.delete(reader)
    return this.#readers.size + this.#ahead.filter(({ reader }) => reader.open).length
  }

  emit(event: LogEventBody): void {
    if (this.#ended) return
    if (event.type === 'delta') {
      this.#text.add(event.text)
      return
    }
    // An operator event waits for the next line for readers. A log write of its own would cost as much as that
    // one.
    if (audienceOf(event) === 'operator') {
      this.#unlogged.push(this.#lineOf(event))
      return
    }
    this.#text.flush()
    if (event.type === 'results' || event.type === 'history') {
      const line = this.#lineOf(event)
      if (event.type === 'results') this.#unkept.push({ seq: this.#nextSeq, line })
      const asides = event.type === 'results' ? this.#results : this.#history
      asides.set(this.#lines.length, line)
      return
    }
    this.#write(event)
    if (!this.#ended) return
    this.#text.end()
    this.#readers.clear()
    this.flush()
  }

  /**
   * Lets a reader have the events after `seq`, including those to come, and what it asks for besides. Who has read of an answer that a
   * reset ended is told so, because this answer does not go on where that one ended.
   */
  join(reader: Reader, seq = -1, joining: Joining = {}): void {
    const { results, history, without } = joining
    if (this.#earlier > 0 && this.#answerAt === undefined && seq >= this.#lines.length) {
      this.#ahead.push({ reader, seq, joining })
      return
    }
    const at = this.#placeAfter(seq)
    if (at === undefined) {
      reader.follow(onceOf(interruptionOf(this.#names.conversation_id, this.turn)))
      reader.end()
      return
    }
    const next = (place: number): string => {
      if (without && this.#isAmongWords(place)) return ''
      const found = results ? (this.#results.get(place) ?? '') : ''
      const said = history ? (this.#history.get(place) ?? '') : ''
      return found + said + this.#lines[place]
    }
    let place = at
    reader.follow(() => {
      if (place >= this.#lines.length) return this.#ended ? null : undefined
      let text = ''
      while (place < this.#lines.length && text.length < MOST_AT_ONCE) text += next(place++)
      return text === '' ? undefined : encoder.encode(text)
    })
    if (this.#ended) reader.end()
    else this.#readers.add(reader)
  }

  /** Lets a reader have the pieces after the first one, up to the next other event, as a protocol writes them. */
  joinWords(reader: Reader, words: Wording): void {
    let at: number | undefined
    let beating: Heartbeat | undefined
    let beats = false
    const beat = (): void => {
      if (!reader.open) beating?.stop()
      beats = true
      reader.wake()
    }
    reader.follow(() => {
      if (this.#firstPiece === undefined) return this.#ended ? null : undefined
      at ??= this.#firstPiece + 1
      beating ??= new Heartbeat(words.heartbeatMs, beat)
      const end = this.#pastPieces ?? this.#lines.length
      let text = ''
      for (; at < end && text.length < MOST_AT_ONCE; at += 1) {
        const event = readEvent(this.#lines[at]!)
        if (event.type !== 'delta') continue
        text += writePiece(words, event.text, { ...this.#names, seq: at, piece: at - this.#firstPiece })
      }
      if (text !== '') beating.written()
      else if (beats) text = words.heartbeat
      beats = false
      if (text !== '') return encoder.encode(text)
      if (this.#pastPieces === undefined) return undefined
      beating.stop()
      return null
    })
    if (this.#ended || this.#pastPieces !== undefined) reader.end()
    else this.#wordReaders.add(reader)
  }

  #isAmongWords(place: number): boolean {
    const [first, past = Number.POSITIVE_INFINITY] = [this.#firstPiece, this.#pastPieces]
    return first !== undefined && place > first && place < past
  }

  #write(body: LogEventBody): void {
    const isAnswer = body.type !== 'question' && body.type !== 'retrieval'
    if (this.#earlier > 0 && isAnswer) this.#answerAt ??= this.#lines.length
    const line = this.#lineOf(body)
    const place = this.#lines.push(line) - 1
    this.#unlogged.push(line)
    const isEnd = isTerminal(body)
    if (isEnd) this.#ended = true
    if (body.type === 'delta') this.#firstPiece ??= place
    else if (this.#firstPiece !== undefined) this.#pastPieces ??= place
    if (this.#answerAt !== undefined)
      for (const { reader, seq, joining } of this.#ahead.splice(0)) this.join(reader, seq, joining)
    for (const reader of this.#wordReaders) {
      if (isEnd || this.#pastPieces !== undefined) reader.end()
      else reader.wake()
      if (!reader.open) this.#wordReaders.delete(reader)
    }
    for (const reader of this.#readers) {
      if (!reader.open) this.#readers.delete(reader)
      else if (isEnd) reader.end()
      else reader.wake()
    }
    this.#unloggedCharacters += line.length
    if (this.#unloggedCharacters >= LOG_CHARACTERS) this.flush()
    else this.#logTimer ??= setTimeout(() => this.flush(), this.#logged ? LOG_MS : FIRST_LOG_MS)
  }

  /** The number of the next event. */
  get #nextSeq(): number {
    const place = this.#lines.length
    return this.#answerAt === undefined ? place : this.#earlier * RUN_SEQ + place - this.#answerAt
  }

  /** The place of the event after this number; undefined if the number is of an earlier answer. */
  #placeAfter(seq: number): number | undefined {
    const answerAt = this.#answerAt
    if (answerAt === undefined || seq < answerAt) return seq + 1
    const first = this.#earlier * RUN_SEQ
    return seq < first ? undefined : answerAt + seq - first + 1
  }

  #lineOf(body: LogEventBody): string {
    const event: LogEvent = { ...body, ...this.#names, seq: this.#nextSeq }
    return `${JSON.stringify(event)}\n`
  }

  /** Writes what the log does not have yet. */
  flush(): void {
    if (this.#logTimer) clearTimeout(this.#logTimer)
    this.#logTimer = undefined
    if (this.#unlogged.length === 0) return
    const lines = this.#unlogged.join('')
    const results = this.#unkept
    this.#unlogged = []
    this.#unloggedCharacters = 0
    this.#unkept = []
    this.#logged = true
    this.#log(lines, results)
  }
}

/**
 * Gathers the text of an answer. The first piece goes out at once. After a write, text of the next 32 ms goes out as one
 * piece. In workerd the cost of streaming is the number of writes.
 */

/**
 * Two frames of a screen, so nobody sees the steps. At 200 tokens a second, with 16 ms a token costs 1.07 times as
 * much as copying its bytes, with 32 ms 0.92 times, and with 50 ms no less (`npm run bench -- stream`).
 */
const GATHER_MS = 32
const GATHER_CHARACTERS = 4_096

class TextGatherer {
  readonly #write: (text: string) => void
  #text = ''
  /** set if text was written within the last 32 ms */
  #timer: ReturnType<typeof setTimeout> | undefined

  /** @param write gets the pieces. Together they are the text */
  constructor(write: (text: string) => void) {
    this.#write = write
  }

  add(text: string): void {
    this.#text += text
    if (!this.#timer || this.#text.length >= GATHER_CHARACTERS) this.flush()
  }

  /** Writes what was gathered so far. */
  flush(): void {
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    this.#write(text)
    this.end()
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.flush()
    }, GATHER_MS)
  }

  /** Stops the timer. Nothing is added any more. */
  end(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

// =============================================================================
// A reader of a turn: a byte stream of lines that is filled as it is read.
//
// Nothing is buffered for a reader beyond what it asked for. A slow reader, or one that does not read at all,
// holds only a position in lines that are kept anyway, and no copy of them.

/**
 * Yields the next bytes to read; undefined while there are none; null at the end. @throws if its data is gone
 */
export type Source = () => Uint8Array | undefined | null

/** A source of one event alone. */
export function onceOf(event: TurnEvent): Source {
  let line: string | undefined = `${JSON.stringify(event)}\n`
  return () => {
    if (line === undefined) return null
    const bytes = encoder.encode(line)
    line = undefined
    return bytes
  }
}

/** What a caller of a turn reads. */
export interface Reads {
  events: ReadableStream<Uint8Array>
  /**
   * The pieces that directly follow the first one, written by the request's `words`. `events` then leaves these
   * pieces out. Absent: `events` has all pieces
   */
  words?: ReadableStream<Uint8Array>
}

export class Reader {
  readonly stream: ReadableStream<Uint8Array>
  readonly #sources: Source[] = []
  readonly #onGone: () => void
  #controller!: ReadableByteStreamController
  /** whether a read is waiting for bytes */
  #wanted = false
  #ending = false
  #closed = false
  #gone = false

  /** @param onGone called if the reader leaves before it has read everything */
  constructor(onGone: () => void = () => {}) {
    this.#onGone = onGone
    this.stream = new ReadableStream({
      type: 'bytes',
      start: (controller: ReadableByteStreamController) => {
        this.#controller = controller
      },
      pull: () => {
        this.#wanted = true
        this.wake()
      },
      cancel: () => this.#leave(),
    })
  }

  /** Whether it can be given more to read. */
  get open(): boolean {
    return !this.#closed && !this.#ending
  }

  /** Whether it left before it had read everything. */
  get gone(): boolean {
    return this.#gone
  }

  /** Ends the stream of a reader that is known to have left. Otherwise only a failed write would show it. */
  leave(): void {
    if (this.#closed) return
    this.#leave()
    this.#controller.close()
    this.#controller.byobRequest?.respond(0)
  }

  #leave(): void {
    this.#closed = true
    this.#gone = true
    this.#sources.length = 0
    this.#onGone()
  }

  /** Appends a source: the reader gets it after all earlier ones. */
  follow(source: Source): void {
    if (!this.open) return
    this.#sources.push(source)
    this.wake()
  }

  write(bytes: Uint8Array): void {
    let next: Uint8Array | null = bytes
    this.follow(() => {
      const now = next
      next = null
      return now
    })
  }

  /** Ends the stream after the sources given so far. */
  end(): void {
    this.#ending = true
    this.wake()
  }

  /** Call this when a source has more. */
  wake(): void {
    if (this.#closed) return
    try {
      this.#serve()
    } catch (error) {
      this.#closed = true
      this.#gone = true
      this.#controller.error(error)
    }
  }

  #serve(): void {
    while (this.#wanted && this.#sources.length > 0) {
      const bytes = this.#sources[0]!()
      if (bytes === undefined) return
      if (bytes === null) {
        this.#sources.shift()
        continue
      }
      this.#wanted = false
      this.#controller.enqueue(bytes)
    }
    if (!this.#ending || this.#sources.length > 0 || this.#closed) return
    this.#closed = true
    this.#controller.close()
    // A pending BYOB read stays pending after close(). Only `respond(0)` ends it.
    this.#controller.byobRequest?.respond(0)
  }
}
