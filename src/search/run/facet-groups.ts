/** Facets of grouped searches: as in Typesense, a value counts once for each group that has it. */
import { ApiError } from '../../errors'
import { MAX_DISTINCT } from '../limits'

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
