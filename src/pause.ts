/**
 * Long work that never waits keeps everybody else waiting. Promises that are settled already run one after the other,
 * and workerd looks at no socket and at no other request meanwhile. A timer makes it look.
 */
export const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1))

/** Pauses whenever so much has been done. */
export class Pauses {
  readonly #every: number
  #done = 0

  /** @param every how much is done without a pause: bytes, or whatever `after` is told */
  constructor(every: number) {
    this.#every = every
  }

  /** Counts what was done. @returns whether it is time for a pause, which the caller then makes: `await pause()` */
  due(done: number): boolean {
    this.#done += done
    if (this.#done < this.#every) return false
    this.#done = 0
    return true
  }
}
