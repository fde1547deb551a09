/** Values of keywords and dates: as they are written, and where there is none. */
import { describe, expect, it } from 'vitest'
import { fill, idsOf, indexName, request } from './api'

describe('a sort', () => {
  const properties = { k: { type: 'keyword' }, day: { type: 'date' }, n: { type: 'integer' } }

  it.each(['k', 'name.keyword', 'day', 'n'])('by %s puts what has no value last, or first', async (field) => {
    const index = indexName('sorted')
    await request('PUT', `/${index}`, { mappings: { properties } })
    await fill(index, {
      two: { k: 'b', name: 'b', day: '2026-02-01', n: 2 },
      none: {},
      one: { k: 'a', name: 'a', day: '2026-01-01', n: 1 },
    })
    const sorted = (how: unknown) => idsOf(index, { match_all: {} }, { sort: [{ [field]: how }] })
    expect(await sorted('asc')).toEqual(['one', 'two', 'none'])
    expect(await sorted('desc')).toEqual(['two', 'one', 'none'])
    expect(await sorted({ order: 'desc', missing: '_last' })).toEqual(['two', 'one', 'none'])
    expect(await sorted({ order: 'desc', missing: '_first' })).toEqual(['none', 'two', 'one'])
    expect(await sorted({ order: 'asc', missing: '_first' })).toEqual(['none', 'one', 'two'])
  })
})

describe('a keyword', () => {
  const ALIKE = ['A-1', 'A1', 'á1', 'a 1', 'A.1', 'A/1', 'A`1', '', '-', '50%']
  const properties = { sku: { type: 'keyword' }, tags: { type: 'keyword' }, day: { type: 'date' } }
  const filled = async (): Promise<string> => {
    const index = indexName('alike')
    await request('PUT', `/${index}`, { mappings: { properties } })
    const documents = ALIKE.map((sku) => [`<${sku}>`, { sku, tags: ['x', sku], name: sku, n: 1 }])
    await fill(index, Object.fromEntries(documents))
    return index
  }

  it('is found by its own letters and signs alone', async () => {
    const index = await filled()
    for (const sku of ALIKE) {
      for (const field of ['sku', 'tags', 'name.keyword']) {
        expect(await idsOf(index, { term: { [field]: sku } }), field + sku).toEqual([`<${sku}>`])
      }
      expect(await idsOf(index, { match: { sku } })).toEqual([`<${sku}>`])
      const others = await idsOf(index, { bool: { must_not: [{ term: { sku } }] } })
      expect(others).toHaveLength(ALIKE.length - 1)
    }
    expect(await idsOf(index, { terms: { sku: ['A-1', 'á1', 'a1'] } })).toEqual(['<A-1>', '<á1>'])
    expect(await idsOf(index, { term: { sku: 'a-1' } })).toEqual([])
  })

  it('that only reads like another one outlives a deletion', async () => {
    const index = await filled()
    const by = async (query: unknown) =>
      (await request('POST', `/${index}/_delete_by_query`, { query }))[1].deleted
    expect(await by({ term: { sku: 'A-1' } })).toBe(1)
    expect(await by({ terms: { tags: ['A1', 'a/1'] } })).toBe(1)
    expect(await by({ match: { 'name.keyword': 'A.1' } })).toBe(1)
    const left = ALIKE.filter((sku) => !['A-1', 'A1', 'A.1'].includes(sku)).map((sku) => `<${sku}>`)
    expect(await idsOf(index, { match_all: {} })).toEqual(left)
  })

  it('has aggregations of its own', async () => {
    const index = await filled()
    const aggs = { skus: { terms: { field: 'sku', size: 20 }, aggs: { sum: { sum: { field: 'n' } } } } }
    const [, { aggregations }] = await request('POST', `/${index}/_search`, { size: 0, aggs })
    const counts = aggregations.skus.buckets.map((each: { sum: { value: number } }) => each.sum.value)
    expect(counts).toEqual(ALIKE.map(() => 1))
  })
})
