/** The facets of several searches as those of one that found all of it. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mergeFacets, valuesIn } from '../../src/search/merge-facets'
import type { FacetCounts } from '../../src/search/types'

/** The facet of a field with these values. @param most how many of them it shows */
function facetOf(values: number[], most = Number.POSITIVE_INFINITY): FacetCounts {
  const counts = new Map<number, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  const sum = values.reduce((total, value) => total + value, 0)
  const numbers = { min: Math.min(...values), max: Math.max(...values), sum, avg: sum / values.length }
  return {
    field_name: 'n',
    sampled: false,
    counts: [...counts].slice(0, most).map(([value, count]) => {
      return { value: String(value), highlighted: String(value), count }
    }),
    stats: { total_values: counts.size, ...(values.length > 0 && numbers) },
  }
}

const inOrder = ({ counts, ...rest }: FacetCounts) => ({
  ...rest,
  counts: counts.toSorted((a, b) => Number(a.value) - Number(b.value)),
})

test('are counted together, and their numbers added up', () => {
  const lists = fc.array(fc.array(fc.integer({ min: -50, max: 50 })), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(lists, (parts) => {
      const merged = mergeFacets(parts.map((part) => facetOf(part)))!
      expect(inOrder(merged)).toEqual(inOrder(facetOf(parts.flat())))
      expect(valuesIn(merged)).toBe(parts.flat().length)
    }),
  )
})

test('have infinitely many values where not all of them are known', () => {
  const [some, others] = [facetOf([1, 2, 3], 2), facetOf([4])]
  expect(mergeFacets([some, others])).toMatchObject({
    stats: { total_values: Number.POSITIVE_INFINITY, min: 1, max: 4, sum: 10, avg: 2.5 },
  })
  expect(mergeFacets([])).toBeUndefined()
  expect(mergeFacets([some])).toBe(some)
  expect(() => mergeFacets([facetOf([-1, 0, 1], 2), others])).toThrow(/`n` has too many values/)
})

test('keep whole numbers that a double cannot hold', () => {
  const large = (value: bigint): FacetCounts => ({
    ...facetOf([0]),
    stats: { total_values: 1, min: value, max: value, sum: value, avg: Number(value) },
  })
  const [one, other] = [2n ** 62n + 1n, 2n ** 61n]
  const { stats } = mergeFacets([large(one), large(other), facetOf([1])])!
  expect(stats).toMatchObject({ min: 1, max: one, sum: one + other + 1n })
})
