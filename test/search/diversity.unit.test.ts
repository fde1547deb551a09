/** Maximal marginal relevance: the order of hits that differ, and what a curation may ask of it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parameter } from '../../src/search/request/parameters'
import { marginalRelevance } from '../../src/search/run/page'
import { diversityOf } from '../../src/search/sets/curation'

/** Similarities of items, of which each pair has one. */
const matrix = (size: number) =>
  fc
    .array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: size * size, maxLength: size * size })
    .map(
      (values) => (one: number, other: number) => values[Math.min(one, other) * size + Math.max(one, other)]!,
    )

const items = fc
  .array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 })
  .chain((relevance) => fc.tuple(fc.constant(relevance), matrix(relevance.length)))

const lambdas = fc.double({ min: 0, max: 1, noNaN: true })

describe('maximal marginal relevance', () => {
  test('places every item once, the first one first', async () => {
    await fc.assert(
      fc.asyncProperty(items, lambdas, async ([relevance, alike], lambda) => {
        const order = await marginalRelevance(relevance, alike, lambda)
        expect(order.toSorted((a, b) => a - b)).toEqual([...relevance.keys()])
        if (order.length > 0) expect(order[0]).toBe(0)
      }),
    )
  })

  test('each next item has the highest marginal relevance of those left, the earliest of equals', async () => {
    await fc.assert(
      fc.asyncProperty(items, lambdas, async ([relevance, alike], lambda) => {
        const order = await marginalRelevance(relevance, alike, lambda)
        for (let at = 1; at < order.length; at++) {
          const chosen = order.slice(0, at)
          const value = (item: number) =>
            lambda * relevance[item]! - (1 - lambda) * Math.max(...chosen.map((other) => alike(item, other)))
          const left = [...relevance.keys()].filter((item) => !chosen.includes(item))
          const best = Math.max(...left.map(value))
          expect(order[at]).toBe(left.find((item) => value(item) === best))
        }
      }),
    )
  })

  test('once the search has to end, the others stay in their order', async () => {
    const alike = (one: number, other: number) => Number(one % 2 === other % 2)
    let placed = 0
    const order = await marginalRelevance([1, 1, 1, 1, 1, 1], alike, 0.5, async () => ++placed < 2)
    expect(order).toEqual([0, 1, 2, 3, 4, 5])
    placed = -10
    const equal = [0, 0, 0, 1, 1, 0]
    const differing = (one: number, other: number) => Number(equal[one] === equal[other])
    expect(await marginalRelevance(equal, differing, 0, async () => ++placed < 0)).toEqual([0, 3, 1, 2, 4, 5])
    placed = 0
    expect(await marginalRelevance(equal, differing, 0, async () => ++placed < 2)).toEqual([0, 3, 1, 2, 4, 5])
    expect(placed).toBe(2)
  })

  test('with a lambda of 1, relevance alone decides', async () => {
    const falling = items.map(([relevance, alike]) => [relevance.toSorted((a, b) => b - a), alike] as const)
    await fc.assert(
      fc.asyncProperty(falling, async ([relevance, alike]) => {
        expect(await marginalRelevance(relevance, alike, 1)).toEqual([...relevance.keys()])
      }),
    )
  })

  test('with a lambda of 0, relevance does not count', async () => {
    await fc.assert(
      fc.asyncProperty(items, async ([relevance, alike]) => {
        const without = await marginalRelevance(
          relevance.map(() => 0),
          alike,
          0,
        )
        expect(await marginalRelevance(relevance, alike, 0)).toEqual(without)
      }),
    )
  })
})

describe('the property `diversity`', () => {
  test('is read with its defaults', () => {
    expect(diversityOf(undefined)).toBeUndefined()
    expect(diversityOf({})).toBeUndefined()
    expect(diversityOf({ similarity_metric: [{ field: 'a', method: 'Jaccard' }] })).toEqual({
      similarity_metric: [{ field: 'a', method: 'jaccard', weight: 1 }],
    })
  })

  test.each<[unknown, string]>([
    [[], 'Invalid `diversity` format: []'],
    [null, 'Invalid `diversity` format: null'],
    [{ a: 1 }, '`similarity_metric` not found: {"a":1}'],
    [{ similarity_metric: [] }, 'Invalid `similarity_metric` format: []'],
    [{ similarity_metric: {} }, 'Invalid `similarity_metric` format: {}'],
    [{ similarity_metric: [{}] }, 'Invalid `similarity_metric` format, expected an object: {}'],
    [{ similarity_metric: [{ method: 'equality' }] }, '`field` not found: {"method":"equality"}'],
    [{ similarity_metric: [{ field: 1 }] }, 'Invalid `field` format: 1'],
    [{ similarity_metric: [{ field: 'a' }] }, '`method` not found: {"field":"a"}'],
    [{ similarity_metric: [{ field: 'a', method: 2 }] }, 'Invalid `method` format: 2'],
    [{ similarity_metric: [{ field: 'a', method: 'x' }] }, '`method` not found: {"field":"a","method":"x"}'],
    [
      { similarity_metric: [{ field: 'a', method: 'equality', weight: 'x' }] },
      'Invalid `weight` format: "x"',
    ],
    [
      { similarity_metric: [{ field: 'a', method: 'equality', weight: Number.POSITIVE_INFINITY }] },
      'Invalid `weight` format: null',
    ],
    [
      { similarity_metric: Array.from({ length: 11 }, () => ({ field: 'a', method: 'equality' })) },
      '`similarity_metric` takes at most 10 metrics.',
    ],
  ])('%j is refused', (given, message) => {
    expect(() => diversityOf(given)).toThrow(message)
  })

  test('`diversity_lambda` is a number between 0 and 1', () => {
    const lambda = (text: string) => parameter({ diversity_lambda: text }, 'diversity_lambda')
    expect(['', '0', '0.25', '1'].map(lambda)).toEqual([0.5, 0, 0.25, 1])
    for (const wrong of ['a', '-0.1', '1.5', 'NaN', '0.5x']) {
      expect(() => lambda(wrong)).toThrow('`diversity_lambda` must be a number between 0 and 1')
    }
  })
})
