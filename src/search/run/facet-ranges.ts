/** Counts the ranges of a facet. */

import type { FacetRange, FacetRequest } from '../request/facet-request'
import { valuesAt } from '../schema/block'
import { type Numeric, SeenInGroups, Totals } from './facet-totals'
import type { Counted, Counting, FacetBlock } from './facet-values'
import { NO_GROUP } from './grouping'

/** Counts ranges. Empty ones are left out, like values without documents. */
export class Ranges implements Counting {
  readonly #ranges: FacetRange[]
  readonly #counts: number[]
  readonly #totals: Totals
  readonly #seen = new SeenInGroups()

  constructor({ field, ranges }: FacetRequest) {
    this.#totals = new Totals(field)
    this.#ranges = ranges
    this.#counts = ranges.map(() => 0)
  }

  add({ offsets, block, groupOf }: FacetBlock): void {
    for (const at of offsets) {
      const values = valuesAt(block, at) as Numeric[]
      const group = groupOf?.(at) ?? NO_GROUP
      for (const value of values) this.#totals.add(value, 1)
      for (const [range, { from, to }] of this.#ranges.entries()) {
        const isIn = values.some(
          (value) => (from === undefined || value >= from) && (to === undefined || value < to),
        )
        if (!isIn) continue
        // A group counts once in each range that it has a value in.
        if (group === NO_GROUP || this.#seen.add(range, group)) this.#counts[range]!++
      }
    }
  }

  counted(): Counted {
    const counts = this.#ranges
      .map(({ label }, index) => ({ count: this.#counts[index]!, highlighted: label, value: label }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count)
    return { counts, stats: { ...this.#totals.stats, total_values: counts.length } }
  }
}
