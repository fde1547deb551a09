/** Adds up the facets that several searches have of a field. */
import { badRequest } from '../errors'
import { integer } from '../lib/json'
import type { FacetCounts } from './types'

/** A whole number that a double cannot hold is a BigInt. The two compare exactly. */
type Numeric = number | bigint

/** How many values a facet has counted. The average also covers lists, in which a document has a value twice. */
export function valuesIn({ stats: { avg = 0, sum = 0 }, counts }: FacetCounts): number {
  // An average of zero tells nothing.
  return avg === 0 ? counts.reduce((total, { count }) => total + count, 0) : Math.round(Number(sum) / avg)
}

/** Whether a facet shows all values that it has found. */
export const isWhole = ({ stats, counts }: FacetCounts): boolean => stats.total_values <= counts.length

/**
 * The facets as one. Its numbers are exact. If one of them does not show all its values, nobody knows which of them the others
 * have: the result then has infinitely many.
 * @throws ApiError 400 if the number of values cannot be told
 */
export function mergeFacets(facets: readonly FacetCounts[]): FacetCounts | undefined {
  const [first, ...others] = facets
  if (first === undefined || others.length === 0) return first
  const counts = new Map<string, FacetCounts['counts'][number]>()
  for (const each of facets.flatMap((facet) => facet.counts)) {
    const before = counts.get(each.value)?.count ?? 0
    counts.set(each.value, { ...each, count: before + each.count })
  }
  const total_values = facets.every(isWhole) ? counts.size : Number.POSITIVE_INFINITY
  const merged = { ...first, counts: [...counts.values()], stats: { total_values } }
  const numbers = facets.filter(({ stats }) => stats.avg !== undefined)
  if (numbers.length === 0) return merged
  if (numbers.some((facet) => facet.stats.avg === 0 && !isWhole(facet)))
    throw badRequest(`\`${first.field_name}\` has too many values to count them in several collections.`)
  const sorted = (key: 'min' | 'max') =>
    numbers.map(({ stats }) => stats[key]!).sort((a, b) => (a < b ? -1 : 1))
  const sum = numbers.map(({ stats }) => stats.sum!).reduce(added)
  const avg = Number(sum) / numbers.reduce((total, facet) => total + valuesIn(facet), 0)
  return { ...merged, stats: { total_values, min: sorted('min')[0]!, max: sorted('max').at(-1)!, sum, avg } }
}

/** The sum, exact where both are whole numbers. */
function added(a: Numeric, b: Numeric): Numeric {
  const areWhole = [a, b].every((each) => typeof each === 'bigint' || Number.isSafeInteger(each))
  return areWhole ? integer(String(BigInt(a) + BigInt(b))) : Number(a) + Number(b)
}
