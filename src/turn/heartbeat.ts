/**
 * Writes something whenever nothing else was written for a while, so that neither a client nor a proxy takes a silent
 * connection for a dead one.
 */
export class Heartbeat {
  readonly #ms: number
  readonly #beat: () => void
  #last = Date.now()
  #timer: ReturnType<typeof setTimeout>

  /** @param ms the longest silence, in milliseconds */
  constructor(ms: number, beat: () => void) {
    this.#ms = ms
    this.#beat = beat
    this.#timer = this.#after(ms)
  }

  /** Call this whenever something is written. */
  written(): void {
    this.#last = Date.now()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  // To set the timer again for each piece would cost more than to look at the clock.
  #after(ms: number): ReturnType<typeof setTimeout> {
    return setTimeout(() => {
      const left = this.#last + this.#ms - Date.now()
      this.#timer = this.#after(left > 0 ? left : this.#ms)
      if (left > 0) return
      this.written()
      this.#beat()
    }, ms)
  }
}
