/** Values of keywords and dates: as they are written, and where there is none. */
import { describe, expect, it } from 'vitest'
import { ask, fill, idsOf, indexName } from './api'

describe('a sort', () => {
  const properties = { k: { type: 'keyword' }, day: { type: 'date' }, n: { type: 'integer' } }

  it.each(['k', 'name.keyword', 'day', 'n'])('by %s puts what has no value last, or first', async (field) => {
    const index = indexName('sorted')
    await ask('PUT', `/${index}`, { mappings: { properties } })
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
