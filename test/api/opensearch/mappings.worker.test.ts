/** Mappings that would change nothing are refused. */
import { describe, expect, it } from 'vitest'
import { fill, idsOf, indexName, request } from './api'

const keyword = { type: 'keyword' }
const map = (a: unknown) => request('PUT', `/${indexName('mapped')}`, { mappings: { properties: { a } } })

describe('a mapping', () => {
  it.each([
    [{ type: 'object', enabled: false }, '[enabled: false] of the object [a]'],
    [{ dynamic: 'strict', properties: { k: keyword } }, '[dynamic: strict] of the object [a]'],
    [{ type: 'nested', dynamic: false }, '[dynamic: false] of the object [a]'],
    [{ properties: { b: { type: 'object', enabled: false } } }, 'of the object [a.b]'],
    [{ type: 'keyword', fields: { text: { type: 'text' } } }, '[a.text]'],
    [{ type: 'keyword', fields: { lower: { ...keyword, normalizer: 'lowercase' } } }, '[a.lower]'],
    [{ type: 'text', fields: { keyword: { ...keyword, normalizer: 'lowercase' } } }, '[normalizer]'],
    [{ type: 'integer', fields: { keyword } }, '[fields] of [a]'],
    [{ type: 'date', fields: { raw: keyword } }, '[a.raw]'],
  ])('that does nothing is refused by its name: %j', async (a, reason) => {
    const [status, { error }] = await map(a)
    expect([status, error.reason]).toEqual([400, expect.stringContaining(reason)])
  })

  it.each([
    { type: 'object', enabled: true, dynamic: 'true', properties: { k: keyword } },
    { type: 'nested', include_in_parent: true, properties: { k: keyword } },
    { type: 'text', fields: { keyword: { ...keyword, ignore_above: 256 } } },
    { type: 'keyword', fields: { keyword } },
    { type: 'date', fields: { keyword } },
  ])('that has an effect is taken: %j', async (a) => {
    expect((await map(a))[0]).toBe(200)
  })

  it('of a flat_object says that nothing inside of it is searched', async () => {
    const index = indexName('flat')
    await request('PUT', `/${index}`, { mappings: { properties: { a: { type: 'flat_object' } } } })
    await fill(index, { one: { a: { x: 'q' } } })
    for (const query of [{ term: { 'a.x': 'q' } }, { match: { 'a.x': 'q' } }, { exists: { field: 'a.x' } }]) {
      expect(await idsOf(index, query)).toContain('400 A query of [a.x], inside of a [flat_object]')
    }
  })
})
