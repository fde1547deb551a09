/** What facets count besides values: sums of a field's numbers, and, in grouped searches, pairs of a value and a group. */

import { ApiError } from '../../errors'
import { integer } from '../../lib/exact-json'
import { MAX_DISTINCT } from '../limits'
import { isInt64 } from '../schema/layout'
import type { Field } from '../types'

export type Numeric = number | bigint

/** Adds up a field's numbers, exactly for int64. */
export class Totals {
  readonly #isExact: boolean
  #min: Numeric = Number.POSITIVE_INFINITY
  #max: Numeric = Number.NEGATIVE_INFINITY
  #sum = 0
  /** the part of the sum that `#sum` cannot hold without rounding */
  #large = 0n
  #times = 0

  constructor(field: Field) {
    this.#isExact = isInt64(field)
  }

  /** Adds a value with its number of occurrences. */
  add(value: Numeric, times: number): void {
    if (value < this.#min) this.#min = value
    if (value > this.#max) this.#max = value
    this.#times += times
    const product = Number(value) * times
    if (!this.#isExact || (typeof value === 'number' && Math.abs(product) <= HALF_OF_SAFE)) {
      this.#sum += product
      if (!this.#isExact || Math.abs(this.#sum) <= HALF_OF_SAFE) return
      this.#large += BigInt(this.#sum)
      this.#sum = 0
    } else {
      this.#large += BigInt(value) * BigInt(times)
    }
  }

  /** @returns undefined where nothing was added */
  get stats(): { avg: number; max: Numeric; min: Numeric; sum: Numeric } | undefined {
    if (this.#times === 0) return undefined
    const sum = this.#isExact ? integer(String(this.#large + BigInt(this.#sum))) : this.#sum
    return { avg: Number(sum) / this.#times, max: this.#max, min: this.#min, sum }
  }
}

/** The sum of two such numbers is still a safe integer. */
const HALF_OF_SAFE = 2 ** 52 - 1

/** Upper bound of groups, so that a value and a group together fit into one safe integer. */
const RADIX = 2 ** 26

/** The pairs of a value and a group that a facet has counted. All of them are in memory. */
export class SeenInGroups {
  readonly #groups = new Map<string | number, number>()
  readonly #pairs = new Set<number>()

  /**
   * Remembers a pair.
   * @param value a number of the value, below 2^26
   * @returns whether the pair is new
   * @throws ApiError 422 for more pairs than are counted
   */
  add(value: number, key: string | number): boolean {
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = this.#groups.size
      this.#groups.set(key, group)
    }
    const before = this.#pairs.size
    if (this.#pairs.add(value * RADIX + group).size === before) return false
    if (before < MAX_DISTINCT) return true
    throw new ApiError(
      422,
      `\`facet_by\` with \`group_by\` counts at most ${MAX_DISTINCT} pairs of a value and a group. Find fewer documents with \`filter_by\`.`,
    )
  }
}
