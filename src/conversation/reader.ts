/**
 * A reader of a turn: a byte stream of lines that is filled as it is read.
 *
 * Nothing is buffered for a reader beyond what it asked for. A slow reader, or one that does not read at all,
 * holds only a position in lines that are kept anyway, and no copy of them.
 */
import type { TurnEvent } from '../turn/events'

/**
 * Yields the next bytes to read; undefined while there are none; null at the end. @throws if its data is gone
 */
export type Source = () => Uint8Array | undefined | null

const encoder = new TextEncoder()

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
