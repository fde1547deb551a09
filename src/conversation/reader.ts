/**
 * One who reads along: a byte stream of lines that is made as it is read.
 *
 * Nothing waits for a reader but what it has asked for. One that is slow, or that does not read at all, holds a place
 * in the lines that are kept anyway, and no copy of them.
 */

/** What a reader is to read: the next bytes; undefined while there are none; null at its end. @throws where it is gone */
export type Source = () => Uint8Array | undefined | null

export class Reader {
  readonly stream: ReadableStream<Uint8Array>
  readonly #sources: Source[] = []
  #controller!: ReadableByteStreamController
  /** whether a read waits for bytes */
  #wanted = false
  #ending = false
  #closed = false
  #gone = false

  /** @param onGone called when the reader leaves before it has read everything */
  constructor(onGone: () => void = () => {}) {
    this.stream = new ReadableStream({
      type: 'bytes',
      start: (controller: ReadableByteStreamController) => {
        this.#controller = controller
      },
      pull: () => {
        this.#wanted = true
        this.wake()
      },
      cancel: () => {
        this.#closed = true
        this.#gone = true
        this.#sources.length = 0
        onGone()
      },
    })
  }

  /** Whether it may be given more to read. */
  get open(): boolean {
    return !this.#closed && !this.#ending
  }

  /** Whether it left before it had read everything. */
  get gone(): boolean {
    return this.#gone
  }

  /** Lets it read what a source has, after what it was given before. */
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

  /** Nothing is to come after what it was given. */
  end(): void {
    this.#ending = true
    this.wake()
  }

  /** To be called when a source has more. */
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
    // A read that waits learns of the end by this alone.
    this.#controller.byobRequest?.respond(0)
  }
}
