/** A limit on how long a provider may say nothing. The total is not limited: long answers are fine. */
export class SilenceWatch {
  readonly #controller = new AbortController()
  readonly #limit: number
  #last = Date.now()
  #timer: ReturnType<typeof setTimeout>

  /** @param seconds of silence until `signal` aborts */
  constructor(seconds: number) {
    this.#limit = seconds * 1000
    this.#timer = setTimeout(this.#check, this.#limit)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get expired(): boolean {
    return this.#controller.signal.aborted
  }

  /** A sign of life. Cheap enough for every read: the timer is not moved, it looks at this when it fires. */
  touch = (): void => {
    this.#last = Date.now()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #check = (): void => {
    const left = this.#last + this.#limit - Date.now()
    if (left > 0) this.#timer = setTimeout(this.#check, left)
    else this.#controller.abort()
  }
}
