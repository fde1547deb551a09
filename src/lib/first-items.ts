/** The first of many: in an order, or of those in order that meet a condition. */

/**
 * @param holds of no place at first, and of all from some place on
 * @returns the first place of which it holds; `count` if it holds of none
 */
export function firstPlace(count: number, holds: (place: number) => boolean): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/** Keeps the first `limit` of all items that it is offered: a binary heap with the last of them on top. */
export class FirstItems<Item> {
  readonly #heap: Item[] = []

  /** @param order negative if `a` comes first */
  constructor(
    private readonly limit: number,
    private readonly order: (a: Item, b: Item) => number,
  ) {}

  get isFull(): boolean {
    return this.#heap.length >= this.limit
  }

  /** The last of those that are kept. */
  get last(): Item | undefined {
    return this.#heap[0]
  }

  /** In order. */
  get items(): Item[] {
    return this.#heap.toSorted(this.order)
  }

  offer(item: Item): void {
    if (!this.isFull) this.#up(this.#heap.push(item) - 1)
    else if (this.limit > 0 && this.order(item, this.#heap[0]!) < 0) {
      this.#heap[0] = item
      this.#down()
    }
  }

  #isLater(a: number, b: number): boolean {
    return this.order(this.#heap[a]!, this.#heap[b]!) > 0
  }

  #up(start: number): void {
    for (let at = start; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!this.#isLater(at, parent)) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #down(): void {
    for (let at = 0; ; ) {
      const left = 2 * at + 1
      if (left >= this.#heap.length) return
      const right = left + 1
      const later = right < this.#heap.length && this.#isLater(right, left) ? right : left
      if (!this.#isLater(later, at)) return
      this.#swap(at, later)
      at = later
    }
  }

  #swap(a: number, b: number): void {
    const item = this.#heap[a]!
    this.#heap[a] = this.#heap[b]!
    this.#heap[b] = item
  }
}
