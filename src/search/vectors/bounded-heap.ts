/** Keeps the items with the highest scores: a binary heap with the least of them on top. */
export class BoundedHeap {
  #limit: number
  #scores: number[] = []
  #items: number[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  offer(score: number, item: number): void {
    if (this.#items.length < this.#limit) {
      this.#scores.push(score)
      this.#items.push(item)
      this.#up(this.#items.length - 1)
    } else if (this.#limit > 0 && score > this.#scores[0]!) {
      this.#scores[0] = score
      this.#items[0] = item
      this.#down(0)
    }
  }

  items(): number[] {
    return this.#items
  }

  #up(start: number): void {
    for (let at = start; at > 0; ) {
      const parent = (at - 1) >> 1
      if (this.#scores[parent]! <= this.#scores[at]!) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #down(start: number): void {
    for (let at = start; ; ) {
      const left = 2 * at + 1
      if (left >= this.#items.length) return
      const right = left + 1
      const least = right < this.#items.length && this.#scores[right]! < this.#scores[left]! ? right : left
      if (this.#scores[at]! <= this.#scores[least]!) return
      this.#swap(at, least)
      at = least
    }
  }

  #swap(a: number, b: number): void {
    const score = this.#scores[a]!
    const item = this.#items[a]!
    this.#scores[a] = this.#scores[b]!
    this.#items[a] = this.#items[b]!
    this.#scores[b] = score
    this.#items[b] = item
  }
}
