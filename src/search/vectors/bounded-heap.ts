import { FirstItems } from '../../lib/first-items'

interface Scored {
  score: number
  item: number
  slack: number
}

/** Keeps the items with the highest scores, the later ones among equals. */
export class BoundedHeap {
  readonly #best: FirstItems<Scored>

  constructor(limit: number) {
    this.#best = new FirstItems(limit, (a, b) => b.score - a.score || b.item - a.item)
  }

  /** Lower scores are not kept. */
  get least(): number {
    return this.#best.isFull ? this.#best.last!.score : Number.NEGATIVE_INFINITY
  }

  /** @param slack how far off the score may be */
  offer(score: number, item: number, slack: number): void {
    this.#best.offer({ score, item, slack })
  }

  /** The items that may be among the best `count` by their true scores, and some more, best first. @param more at least */
  likely(count: number, more = 0): number[] {
    const { items } = this.#best
    const last = items[Math.min(count, items.length) - 1]
    if (last === undefined) return []
    const isLikely = ({ score, slack }: Scored) => last.score - score <= Math.hypot(last.slack, slack)
    return items.filter((each, place) => place < count + more || isLikely(each)).map(({ item }) => item)
  }
}
