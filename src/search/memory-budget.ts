/**
 * Bounds the memory of all objects of an isolate for one kind of data: matrices of vectors, or values of fields. The
 * platform may run several objects of a class in one isolate of 128 MB, and each of them alone would be within its
 * limit.
 *
 * All of this data can be read again from storage. So the holder that was used longest ago is evicted.
 */
export interface Holder {
  /** Frees the memory. */
  evict(): void
}

/** An object that is gone leaves its memory to the garbage collector, so the budget must not keep it. */
interface Entry {
  holder: WeakRef<Holder>
  bytes: number
}

export class MemoryBudget {
  readonly #most: number
  /** the one used last is last */
  #entries: Entry[] = []

  /** @param most bytes of all holders together */
  constructor(most: number) {
    this.#most = most
  }

  /**
   * Call this before a holder takes memory, and when it is used. Evicts others until it fits. One that is larger than the
   * budget stays alone.
   * @param bytes that it will take
   */
  use(holder: Holder, bytes: number): void {
    const others = this.#without(holder)
    let total = others.reduce((sum, entry) => sum + entry.bytes, bytes)
    while (total > this.#most && others.length > 0) {
      const [oldest] = others.splice(0, 1)
      total -= oldest!.bytes
      oldest!.holder.deref()?.evict()
    }
    this.#entries = [...others, { holder: new WeakRef(holder), bytes }]
  }

  /** The holder has freed its memory. */
  release(holder: Holder): void {
    this.#entries = this.#without(holder)
  }

  #without(holder: Holder): Entry[] {
    return this.#entries.filter((entry) => {
      const held = entry.holder.deref()
      return held !== undefined && held !== holder
    })
  }
}
