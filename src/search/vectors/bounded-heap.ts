/** Keeps the items with the highest scores, the later ones among equals: a binary heap with the lowest of them on top. */
export class BoundedHeap {
  #limit: number
  #scores: number[] = []
  #items: number[] = []
  #slacks: number[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Lower scores are not kept. */
  get least(): number {
    return this.#items.length < this.#limit ? Number.NEGATIVE_INFINITY : this.#scores[0]!
  }

  /** @param slack how far off the score may be */
  offer(score: number, item: number, slack = 0): void {
    const size = this.#items.length
    if (size < this.#limit) {
      this.#set(size, score, item, slack)
      this.#up(size)
    } else if (
      size > 0 &&
      (score > this.#scores[0]! || (score === this.#scores[0]! && item > this.#items[0]!))
    ) {
      this.#set(0, score, item, slack)
      this.#down(0)
    }
  }

  /** The items that may be among the best `count` by their true scores, and some more, best first. @param more at least */
  likely(count: number, more = 0): number[] {
    const order = this.#items.map((_, at) => at)
    order.sort((a, b) => this.#scores[b]! - this.#scores[a]! || this.#items[b]! - this.#items[a]!)
    const last = order[Math.min(count, order.length) - 1]
    if (last === undefined) return []
    const isLikely = (at: number) =>
      this.#scores[last]! - this.#scores[at]! <= Math.hypot(this.#slacks[last]!, this.#slacks[at]!)
    return order.filter((at, place) => place < count + more || isLikely(at)).map((at) => this.#items[at]!)
  }

  #set(at: number, score: number, item: number, slack: number): void {
    this.#scores[at] = score
    this.#items[at] = item
    this.#slacks[at] = slack
  }

  /** Whether the item in one place goes before that in another. */
  #isLower(a: number, b: number): boolean {
    const [one, other] = [this.#scores[a]!, this.#scores[b]!]
    return one < other || (one === other && this.#items[a]! < this.#items[b]!)
  }

  #up(start: number): void {
    for (let at = start; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!this.#isLower(at, parent)) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #down(start: number): void {
    for (let at = start; ; ) {
      const left = 2 * at + 1
      if (left >= this.#items.length) return
      const right = left + 1
      const least = right < this.#items.length && this.#isLower(right, left) ? right : left
      if (!this.#isLower(least, at)) return
      this.#swap(at, least)
      at = least
    }
  }

  #swap(a: number, b: number): void {
    const [score, item, slack] = [this.#scores[a]!, this.#items[a]!, this.#slacks[a]!]
    this.#set(a, this.#scores[b]!, this.#items[b]!, this.#slacks[b]!)
    this.#set(b, score, item, slack)
  }
}
