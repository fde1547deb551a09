/**
 * How long a provider may keep its caller waiting: a limit on the time without content, and one on the whole call,
 * which a provider that sends a little now and then would otherwise never end.
 */

/** Seconds that a call, or a turn, may take besides the silence that its model is allowed. */
const LONGEST_CALL = 1_800

/** The most that a call or a turn may take, in seconds. @param silence that its model is allowed, in seconds */
export const overallLimit = (silence: number): number => LONGEST_CALL + silence

export class SilenceWatch {
  readonly #controller = new AbortController()
  readonly #limit: number
  readonly #end: number
  #last = Date.now()
  #timer: ReturnType<typeof setTimeout>

  /** @param seconds of silence until `signal` aborts */
  constructor(seconds: number) {
    this.#limit = seconds * 1000
    this.#end = this.#last + overallLimit(seconds) * 1000
    this.#timer = setTimeout(this.#check, this.#limit)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get expired(): boolean {
    return this.#controller.signal.aborted
  }

  /** A sign of life. Cheap enough for every piece: the timer is not moved, it looks at this when it fires. */
  touch = (): void => {
    this.#last = Date.now()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #check = (): void => {
    const left = Math.min(this.#last + this.#limit, this.#end) - Date.now()
    if (left > 0) this.#timer = setTimeout(this.#check, left)
    else this.#controller.abort()
  }
}
