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
   * @throws what `work` throws
   */
  async pass<Result>(work: () => Promise<Result>, isUrgent = false): Promise<Result> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => (isUrgent ? this.#urgent : this.#waiting).push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#urgent.shift() ?? this.#waiting.shift()
      if (next) next()
      else this.#free += 1
    }
  }
}
