/** Nested fields at their edges: arrays in objects of arrays, optional parents, places, names with dots. */
import { describe, expect, it } from 'vitest'
import type { SearchParameters } from '../../src/search/types'
import { idsOf, makeCollection } from './make-collection'
import { importAll } from './object'

type Fields = Record<string, unknown>[]

const nested = (fields: Fields, documents: Record<string, unknown>[] = []) =>
  makeCollection(fields, documents, { enable_nested_fields: true })

/** What becomes of each document: `stored`, or the error. */
async function outcomes(fields: Fields, documents: Record<string, unknown>[]): Promise<unknown[]> {
  const { object } = await nested(fields)
  const results = await importAll(object, documents)
  return results.map(({ success, error }) => (success ? 'stored' : error))
}

async function found(fields: Fields, documents: Record<string, unknown>[], params: SearchParameters) {
  const collection = await nested(fields, documents)
  return idsOf(await collection.search({ q: '*', per_page: '100', ...params })).sort()
}

const HINT = 'Hint: field inside an array of objects must be an array type as well.'

describe('places', () => {
  const many: Fields = [{ name: 'addresses.at', type: 'geopoint[]' }]
  const one: Fields = [{ name: 'address.at', type: 'geopoint' }]

  it('may be in each object of an array, alone or as lists', async () => {
    const documents = [
      { id: 'objects', addresses: [{ at: [1.91, 23.5] }, { at: [12.91, 23.5] }] },
      {
        id: 'lists',
        addresses: [
          { at: [[1.91, 23.5]] },
          {
            at: [
              [1.91, 23.5],
              [1.95, 24.5],
            ],
          },
        ],
      },
      { id: 'object', addresses: { at: [[1.91, 23.5]] } },
      { id: 'point', addresses: { at: [1.91, 23.5] } },
    ]
    expect(await found(many, documents, { filter_by: 'addresses.at:(12.911, 23.5, 1 mi)' })).toEqual([
      'objects',
    ])
    expect(await found(many, documents, { filter_by: 'addresses.at:(1.91, 23.5, 1 mi)' })).toEqual([
      'lists',
      'object',
      'objects',
      'point',
    ])
    expect(
      await outcomes(many, [{ addresses: [{ at: [1.91, 'x'] }] }, { addresses: [{ at: [[1.91, 'x']] }] }]),
    ).toEqual([
      expect.stringMatching(/^Field `addresses.at` /),
      'Field `addresses.at` must be an array of geopoint.',
    ])
  })

  it('are checked in one object', async () => {
    const documents = [
      { address: { at: [19, 72.88] } },
      { address: { at: [19.12, 72] } },
      { address: { at: [19, 72] } },
    ]
    expect(await outcomes(one, documents)).toEqual(['stored', 'stored', 'stored'])
    expect(
      await outcomes(one, [
        { address: { at: [1.91, 'x'] } },
        { address: { at: [[1.91, 'x']] } },
        { address: [{ at: [1.91, 2.56] }, { at: [2.91, 3.56] }] },
      ]),
    ).toEqual([
      expect.stringMatching(/^Field `address.at` must be a/),
      'Field `address.at` must be a 2 element array: [lat, lng].',
      `Field \`address.at\` has an incorrect type. ${HINT}`,
    ])
  })

  it('are gone with their document', async () => {
    const { object, search } = await nested(
      [{ name: 'addresses', type: 'object[]' }, ...many],
      [{ id: '0', addresses: [{ at: [19.07283, 72.88261] }] }],
    )
    const filter = { q: '*', filter_by: 'addresses.at:(19.07, 72.882, 1 mi)' }
    expect((await search(filter)).found).toBe(1)
    await object.remove('0', false)
    expect((await search(filter)).found).toBe(0)
  })

  it('sort and filter through an object that the first document shows', async () => {
    const documents = [
      { id: 'far', where: { at: [10, 10] } },
      { id: 'near', where: { at: [1, 1] } },
    ]
    const fields = [
      { name: 'where', type: 'object' },
      { name: 'where.at', type: 'geopoint' },
    ]
    const collection = await nested(fields, documents)
    expect(idsOf(await collection.search({ q: '*', sort_by: 'where.at(0, 0):asc' }))).toEqual(['near', 'far'])
  })
})

describe('types', () => {
  it('inside an array of objects are those of arrays', async () => {
    const year = (optional: boolean): Fields => [{ name: 'studies.year', type: 'int32', optional }]
    const list = { studies: [{ name: 'College', year: 1997 }] }
    const incorrect = `Field \`studies.year\` has an incorrect type. ${HINT}`
    expect(await outcomes(year(false), [list])).toEqual([incorrect])
    expect(await outcomes(year(true), [list, { studies: { name: 'College' } }])).toEqual([
      incorrect,
      'stored',
    ])
    const blocks: Fields = [
      { name: 'blocks.text', type: 'object[]' },
      { name: 'blocks.text.description', type: 'string' },
    ]
    expect(await outcomes(blocks, [{ blocks: { text: [{ description: 'Hello' }] } }])).toEqual([
      `Field \`blocks.text.description\` has an incorrect type. ${HINT}`,
    ])
    expect(
      await outcomes(
        [{ name: 'addresses', type: 'object[]' }],
        [{ addresses: [] }, { addresses: [{ a: 1 }] }],
      ),
    ).toEqual(['stored', 'stored'])
  })

  it('of optional values allow null and missing ones at any depth', async () => {
    const fields = (optional: boolean): Fields => [
      { name: 'data', type: 'object' },
      { name: 'data.places.state', type: 'string[]', optional },
    ]
    const nothing = { id: 'nothing', data: { places: [{ state: null }] } }
    const some = { id: 'some', data: { places: [{ state: null }, { state: 'NY' }] } }
    expect(await found(fields(true), [nothing, some], { q: 'ny', query_by: 'data.places.state' })).toEqual([
      'some',
    ])
    expect(await outcomes(fields(false), [nothing, some])).toEqual([
      'Field `data.places.state` has been declared in the schema, but is not found in the document.',
      'stored',
    ])
    const deep: Fields = ['items.name', 'items.about', 'items.parts.name'].map((name) => ({
      name,
      type: 'string[]',
      optional: true,
    }))
    const document = {
      id: 'a',
      items: [
        {
          about: 'x',
          name: 'foo',
          parts: [{ ok: true }, { ok: true, name: 'naruto' }, { name: 'dragon ball' }],
        },
      ],
    }
    expect(await found(deep, [document], { q: 'dragon', query_by: 'items.parts.name' })).toEqual(['a'])
    expect(await found(deep, [document], { filter_by: 'items.parts.name:=naruto' })).toEqual(['a'])
  })

  it('are found in arrays inside of arrays of objects', async () => {
    const fields: Fields = [{ name: 'rows', type: 'object[]' }]
    const documents = [
      {
        id: 'a',
        rows: [{ cells: [{ tags: ['x', 'y'], size: 1.5 }] }, { cells: [{ tags: ['z'], size: 2 }] }],
      },
      { id: 'b', rows: [{ cells: [] }, { cells: [{ tags: [] }] }] },
    ]
    expect(
      await found(fields, documents, { filter_by: 'rows.cells.tags:=z && rows.cells.size:>1.9' }),
    ).toEqual(['a'])
    expect(await found(fields, documents, { q: 'y', query_by: 'rows.cells.tags' })).toEqual(['a'])
  })
})

describe('names with dots', () => {
  it('come before the objects of the same path', async () => {
    const document = {
      id: 'a',
      company: { staff: 1000, ids: [1, 2] },
      details: [{ name: 'bar' }],
      'company.staff': 2000,
      'company.ids': [10],
      'details.name': ['foo'],
    }
    const explicit: Fields = [
      { name: 'company.staff', type: 'int32' },
      { name: 'company.ids', type: 'int32[]' },
      { name: 'details.name', type: 'string[]' },
    ]
    for (const fields of [explicit, [{ name: '.*', type: 'auto' }]]) {
      const collection = await nested(fields, [document])
      const count = async (params: SearchParameters) => (await collection.search({ q: '*', ...params })).found
      expect(await count({ filter_by: 'company.staff:2000 && company.ids:10' })).toBe(1)
      expect(await count({ filter_by: 'company.staff:1000 || company.ids:1' })).toBe(0)
      expect(await count({ q: 'foo', query_by: 'details.name' })).toBe(1)
      expect(await count({ q: 'bar', query_by: 'details.name' })).toBe(0)
    }
    const plain = await nested([{ name: 'name.first', type: 'string' }], [{ 'name.first': 'Alpha Beta' }])
    const { hits } = await plain.search({ q: 'beta', query_by: 'name.first' })
    expect(hits![0]!.highlight).toMatchObject({ 'name.first': { snippet: 'Alpha <mark>Beta</mark>' } })
  })

  it('are plain names where nested fields are off', async () => {
    const fields: Fields = [
      { name: 'name.first', type: 'string', facet: true },
      { name: 'size.cm', type: 'int32', optional: true },
    ]
    const collection = await makeCollection(fields, [
      { id: 'a', 'name.first': 'Ann', 'size.cm': 5 },
      { id: 'b', 'name.first': 'Bob', size: { cm: 5 } },
    ])
    expect(idsOf(await collection.search({ q: 'ann', query_by: 'name.first' }))).toEqual(['a'])
    expect(idsOf(await collection.search({ q: '*', filter_by: 'size.cm:5' }))).toEqual(['a'])
    const { facet_counts } = await collection.search({
      q: '*',
      facet_by: 'name.first',
      sort_by: 'size.cm:asc',
    })
    expect(facet_counts[0]!.counts.map(({ value }) => value)).toEqual(['Bob', 'Ann'])
    const auto = await makeCollection(
      [{ name: '.*', type: 'auto' }],
      [{ company: { staff: 1 }, company_staff: 2 }],
    )
    const { fields: known } = (await auto.object.summary()) as { fields?: { name: string }[] }
    expect(known?.map(({ name }) => name) ?? []).not.toContain('company.staff')
  })
})
