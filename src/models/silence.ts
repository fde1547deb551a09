/**
 * Limits how long a provider may keep its caller waiting: the time without content, and the whole call. Without the
 * second limit, a provider that sends a little now and then could prolong a call for ever.
 */

/** Seconds that a call or a turn may take, in addition to the silence that its model is allowed. */
const LONGEST_CALL = 1_800

/** The most seconds that a call or a turn may take. @param silence that its model is allowed, in seconds */
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

  /** Records content. Cheap enough for every piece: the timer is not reset, it checks this when it fires. */
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
