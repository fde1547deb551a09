/**
 * Long work must pause, or nobody else is served. Promises that have settled run one after another, and workerd looks at no
 * socket and no other request in between. Only a timer makes it look.
 */
export const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1))

/** Says when to pause, by the amount of work done. */
export class Pauses {
  readonly #every: number
  #done = 0

  /** @param every work between pauses, in bytes or whatever unit `due` is given */
  constructor(every: number) {
    this.#every = every
  }

  /** Counts work. @returns whether the caller should now `await pause()` */
  due(done: number): boolean {
    this.#done += done
    if (this.#done < this.#every) return false
    this.#done = 0
    return true
  }
}
