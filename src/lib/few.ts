/**
 * Works through items in order, a few at a time. After a failure no further item is begun.
 * @param atOnce how many run at the same time
 * @returns the results, in the order of the items @throws what `work` throws first
 */
export async function mapFew<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length)
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++
      try {
        results[index] = await work(items[index]!, index)
      } catch (error) {
        next = items.length
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
  return results
}

/** Lets a few works run at the same time. Others wait in the order in which they came. */
export class Gate {
  #free: number
  readonly #waiting: (() => void)[] = []
  readonly #urgent: (() => void)[] = []

  constructor(atOnce: number) {
    this.#free = atOnce
  }

  /**
   * @param isUrgent goes ahead of those that are not
   * @param signal ends the wait. `work` has to heed it itself
   * @throws what `work` throws; the signal's reason
   */
  async pass<Result>(work: () => Promise<Result>, isUrgent = false, signal?: AbortSignal): Promise<Result> {
    signal?.throwIfAborted()
    if (this.#free > 0) this.#free -= 1
    else await this.#place(isUrgent ? this.#urgent : this.#waiting, signal)
    try {
      signal?.throwIfAborted()
      return await work()
    } finally {
      const next = this.#urgent.shift() ?? this.#waiting.shift()
      if (next) next()
      else this.#free += 1
    }
  }

  /** Waits in line. A caller who gives up leaves the line, so that no place is kept for it. */
  #place(line: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        line.splice(line.indexOf(take), 1)
        reject(signal?.reason)
      }
      const take = (): void => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      line.push(take)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }
}
