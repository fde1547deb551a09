/**
 * The events of the running turn on their way to whoever reads along, and to the log.
 *
 * Readers are written first and the log afterwards, since a stream write waits for the storage writes before
 * it. The first piece of text goes out at once; after a write to the readers, what comes within the next 32 ms
 * is gathered and goes out as one event. In workerd the number of writes is the cost of streaming.
 */
import { audienceOf, isTerminal, type LogEvent, type LogEventBody } from '../turn/events'
import type { Reader } from './reader'

/**
 * Two frames of a screen: nobody sees more. At 200 tokens a second a token costs 1.07 times what copying its
 * bytes costs with 16 ms, 0.92 times with 32 ms, and no less with 50 ms (`npm run bench -- stream`).
 */
const GATHER_MS = 32
const GATHER_CHARACTERS = 4_096
const LOG_EVENTS = 32
const LOG_MS = 250
/** Characters of one write to a reader who has fallen behind. */
const MOST_AT_ONCE = 64 * 1024

const encoder = new TextEncoder()

export class TurnStream {
  readonly #names: { conversation_id: string; turn: number }
  readonly #log: (lines: string) => void
  /** every event for readers so far, by number */
  readonly #lines: string[] = []
  readonly #readers = new Set<Reader>()
  /** lines that the log does not have yet, those for operators included */
  #unlogged: string[] = []
  #logTimer: ReturnType<typeof setTimeout> | undefined
  #text = ''
  /** set while the readers have been written within the last 32 ms */
  #gathering: ReturnType<typeof setTimeout> | undefined
  #ended = false
  #speaking = false

  /** @param log keeps lines for good; each ends with its line break */
  constructor(conversationId: string, turn: number, log: (lines: string) => void) {
    this.#names = { conversation_id: conversationId, turn }
    this.#log = log
  }

  get turn(): number {
    return this.#names.turn
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Whether there has been anything of the answer to read. */
  get speaking(): boolean {
    return this.#speaking
  }

  /** How many read along. */
  get readers(): number {
    for (const reader of this.#readers) if (!reader.open) this.#readers.delete(reader)
    return this.#readers.size
  }

  emit(event: LogEventBody): void {
    if (this.#ended) return
    if (event.type === 'delta') {
      this.#text += event.text
      if (!this.#gathering || this.#text.length >= GATHER_CHARACTERS) this.#writeText()
      return
    }
    // It waits for the next line that readers get: a write to the log of its own would cost as much as that one.
    if (audienceOf(event) === 'operator') {
      this.#unlogged.push(this.#lineOf(event))
      return
    }
    this.#writeText()
    this.#write(event)
    if (!this.#ended) return
    if (this.#gathering) clearTimeout(this.#gathering)
    this.#readers.clear()
    this.flush()
  }

  /** Lets a reader have the events after `seq`, those to come included. */
  join(reader: Reader, seq = -1): void {
    let at = seq + 1
    reader.follow(() => {
      if (at >= this.#lines.length) return this.#ended ? null : undefined
      let text = ''
      while (at < this.#lines.length && text.length < MOST_AT_ONCE) text += this.#lines[at++]
      return encoder.encode(text)
    })
    if (this.#ended) reader.end()
    else this.#readers.add(reader)
  }

  #writeText(): void {
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    this.#speaking = true
    this.#write({ type: 'delta', text })
    if (this.#gathering) clearTimeout(this.#gathering)
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined
      this.#writeText()
    }, GATHER_MS)
  }

  #write(body: LogEventBody): void {
    const line = this.#lineOf(body)
    this.#lines.push(line)
    this.#unlogged.push(line)
    const isEnd = isTerminal(body)
    if (isEnd) this.#ended = true
    for (const reader of this.#readers) {
      if (!reader.open) this.#readers.delete(reader)
      else if (isEnd) reader.end()
      else reader.wake()
    }
    if (this.#unlogged.length >= LOG_EVENTS) this.flush()
    else this.#logTimer ??= setTimeout(() => this.flush(), LOG_MS)
  }

  #lineOf(body: LogEventBody): string {
    const event: LogEvent = { ...body, ...this.#names, seq: this.#lines.length }
    return `${JSON.stringify(event)}\n`
  }

  /** Writes to the log what it does not have yet. */
  flush(): void {
    if (this.#logTimer) clearTimeout(this.#logTimer)
    this.#logTimer = undefined
    if (this.#unlogged.length === 0) return
    const lines = this.#unlogged.join('')
    this.#unlogged = []
    this.#log(lines)
  }
}
