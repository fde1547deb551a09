import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { unwrap } from '../../../src/errors'
import type { FilterNode } from '../../../src/search/filter/parse'
import { printFilter } from '../../../src/search/filter/parse'
import { not, oneOf, type SqlFragment } from '../../../src/search/fragment'
import { makeCollection, refusal, type TestCollection } from '../make-collection'
import { idsWhere, newObject } from '../object'
import { anyClause, documents, FIELDS, filter, matches } from './reference'

let collection: TestCollection

beforeAll(async () => {
  collection = await makeCollection(FIELDS, documents, { enable_nested_fields: true })
})

describe('filters', () => {
  it('match what an evaluation of the documents matches', async () => {
    await fc.assert(
      fc.asyncProperty(filter, async (node) => {
        const expected = documents.filter((doc) => matches(doc, node)).map(({ id }) => id)
        expect(await idsWhere(collection.object, printFilter(node))).toEqual(expected)
      }),
      { numRuns: 300 },
    )
  })

  it('take twelve areas, and no more', async () => {
    const points = await makeCollection([{ name: 'at', type: 'geopoint' }], [{ id: 'a', at: [1, 1] }])
    const areas = (count: number) => `at:[${Array(count).fill('(1, 1, 2 km)').join(', ')}]`
    expect(await idsWhere(points.object, areas(12))).toEqual(['a'])
    expect(await refusal(points, { q: '*', filter_by: areas(13) })).toBe(
      '400 Filter field `at` takes at most 12 areas.',
    )
  })

  it('of thousands of clauses take many statements and come to the same', async () => {
    const clauses = fc.sample(anyClause, { numRuns: 1500, seed: 3 })
    for (const kind of ['and', 'or'] as const) {
      const node: FilterNode = { kind, children: clauses }
      const expected = documents.filter((doc) => matches(doc, node)).map(({ id }) => id)
      expect(await idsWhere(collection.object, printFilter(node))).toEqual(expected)
    }
    const alternating = clauses
      .slice(0, 90)
      .reduce<FilterNode>(
        (left, clause, index) => ({ kind: index % 2 ? 'and' : 'or', children: [left, clause] }),
        {
          kind: 'clause',
          field: 'year',
          operator: ':',
          list: false,
          values: [{ text: '1', quoted: false }],
        },
      )
    const expected = documents.filter((doc) => matches(doc, alternating)).map(({ id }) => id)
    expect(await idsWhere(collection.object, printFilter(alternating))).toEqual(expected)
  })

  it('come to the same with more values, and beside more clauses, than SQL compares', async () => {
    const texts = Array.from({ length: 600 }, (_, n) => ({ text: `zz${n}`, quoted: false }))
    const numbers = Array.from({ length: 600 }, (_, n) => ({ text: `${1_000 + n}`, quoted: false }))
    const isNumeric = new Set(['year', 'sizes', 'price', 'size'])
    const longer = (node: FilterNode): FilterNode => {
      if (node.kind === 'clause') {
        if (!node.list || node.values.length === 0 || node.field === 'stock') return node
        return { ...node, values: [...node.values, ...(isNumeric.has(node.field) ? numbers : texts)] }
      }
      if (node.kind === 'object') return { ...node, child: longer(node.child) }
      return node.kind === 'join' ? node : { ...node, children: node.children.map(longer) }
    }
    const others = numbers.slice(0, 40).map(
      (value): FilterNode => ({
        kind: 'clause',
        field: 'year',
        operator: ':!=',
        list: false,
        values: [value],
      }),
    )
    await fc.assert(
      fc.asyncProperty(filter, async (node) => {
        const expected = documents.filter((doc) => matches(doc, node)).map(({ id }) => id)
        expect(await idsWhere(collection.object, printFilter(longer(node)))).toEqual(expected)
        const beside: FilterNode = {
          kind: 'and',
          children: [{ kind: 'or', children: [node, node] }, ...others],
        }
        expect(await idsWhere(collection.object, printFilter(beside))).toEqual(expected)
      }),
      { numRuns: 150 },
    )
  })

  it('take lists of thousands of values', async () => {
    const ids = Array.from({ length: 20_000 }, (_, index) => String(index + 58))
    expect(await idsWhere(collection.object, `id:[${ids.join(',')}]`)).toEqual(['58', '59'])
    expect(await idsWhere(collection.object, `id:![${ids.join(',')}] && id:!=0`)).toHaveLength(57)
  })

  it.each([
    ['nothing:1', 'Could not find a filter field named `nothing` in the schema.'],
    ['constructor:1', 'Could not find a filter field named `constructor` in the schema.'],
    ['year:x', 'Error with filter field `year`: Numerical field has an invalid comparator.'],
    ['year:>x', 'Error with filter field `year`: Not an int32.'],
    ['year:1.5', 'Error with filter field `year`: Not an int32.'],
    ['year:3000000000', 'Error with filter field `year`: `3000000000` exceeds the range of an int32.'],
    ['sizes:[1,x]', 'Error with filter field `sizes`: Numerical field has an invalid comparator.'],
    ['price:x', 'Error with filter field `price`: Numerical field has an invalid comparator.'],
    ['price:<x', 'Error with filter field `price`: Not a float.'],
    ['stock:1', 'Value of filter field `stock` must be `true` or `false`.'],
    ['genre:', 'Error with filter field `genre`: Filter value cannot be empty.'],
    ['genre:[a,]', 'Error with filter field `genre`: Filter value cannot be empty.'],
    ['year:>', 'Error with filter field `year`: Filter value cannot be empty.'],
    [
      'person:x',
      'Error with filter field `person`: Unidentified field data type, see docs for supported data types.',
    ],
    ['$other(id:1)', 'Referenced collection `other` in `filter_by` not found.'],
  ])('refuse %s', async (filterBy, message) => {
    expect(await refusal(collection, { q: '*', filter_by: filterBy })).toBe(`400 ${message}`)
  })

  it('refuse vectors and fields that are not indexed', async () => {
    const { object } = await makeCollection(
      [
        { name: 'plain', type: 'string', index: false, optional: true },
        { name: 'vector', type: 'float[]', num_dim: 2 },
      ],
      [],
    )
    const messageOf = async (filterBy: string) => {
      const outcome = await object.search({ q: '*', filter_by: filterBy })
      return outcome.ok ? '' : outcome.error.message
    }
    expect(await messageOf('plain:x')).toBe('Cannot filter on non-indexed field `plain`.')
    expect(await messageOf('vector:1')).toBe('Cannot filter on vector field `vector`.')
  })
})

describe('filters on places', () => {
  let cities: TestCollection
  beforeAll(async () => {
    cities = await makeCollection(
      [
        { name: 'at', type: 'geopoint', optional: true },
        { name: 'offices', type: 'geopoint[]', optional: true },
      ],
      [
        { id: 'paris', at: [48.8566, 2.3522] },
        { id: 'versailles', at: [48.8049, 2.1204] },
        {
          id: 'berlin',
          at: [52.52, 13.405],
          offices: [
            [48.85, 2.35],
            [0, 0],
          ],
        },
        { id: 'nowhere' },
      ],
    )
  })

  it.each([
    ['at:(48.8566, 2.3522, 5 km)', ['paris']],
    ['at:(48.8566, 2.3522, 20 km)', ['paris', 'versailles']],
    ['at:(48.8566,2.3522,radius: 12 mi)', ['paris', 'versailles']],
    ['at:!=(48.8566, 2.3522, 20 km)', ['berlin', 'nowhere']],
    ['at:[(48.8566,2.3522,5 km), (52.5,13.4,10 km)]', ['paris', 'berlin']],
    ['at:(48, 1, 48, 3, 50, 3, 50, 1)', ['paris', 'versailles']],
    ['at:(48, 2.2, 48, 3, 50, 3, 50, 2.2)', ['paris']],
    ['offices:(48.85, 2.35, 1 km)', ['berlin']],
  ])('%s', async (filterBy, expected) => {
    expect(await idsWhere(cities.object, filterBy)).toEqual(expected)
  })

  it.each(['at:paris', 'at:(1,2)', 'at:(1,2,3,4)', 'at:(a,b,5 km)', 'at:(1,2,5)'])(
    'refuse %s',
    async (filterBy) => {
      const outcome = await cities.object.search({ q: '*', filter_by: filterBy })
      expect(() => unwrap(outcome)).toThrow(/Value of filter field `at`: must be in the/)
    },
  )

  it('name the units that there are', async () => {
    expect(await refusal(cities, { q: '*', filter_by: 'at:(1,2,5 miles)' })).toBe(
      '400 Unit must be either `km` or `mi`.',
    )
  })
})

it('holds more documents than one value of SQLite does', async () => {
  const seqs = Array.from({ length: 600_000 }, (_, index) => 2_000_000_000 + index)
  const { objectId, object } = newObject()
  unwrap(await object.create({ name: 'things', fields: [{ name: 'n', type: 'int32' }] }, 1))
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
  await runInDurableObject(stub, (_, { storage: { sql } }) => {
    for (const seq of [1, 2_000_000_000, 2_000_599_999, 2_000_600_000]) {
      sql.exec("INSERT INTO documents (seq, id, body) VALUES (?, ?, '{}')", seq, String(seq))
    }
    const found = (filter: SqlFragment) =>
      sql
        .exec<{ id: string }>(
          `SELECT d.id FROM documents d WHERE ${filter.sql} ORDER BY d.seq`,
          ...filter.bindings,
        )
        .toArray()
        .map(({ id }) => id)
    expect(found(oneOf(seqs))).toEqual(['2000000000', '2000599999'])
    expect(found(not(oneOf(seqs)))).toEqual(['1', '2000600000'])
    expect(found(oneOf([]))).toEqual([])
    expect(found(not(oneOf([])))).toHaveLength(4)
  })
})

describe('polygons', () => {
  /** Each with places inside and outside of it. */
  const CASES: [name: string, corners: number[], inside: number[][], outside: number[][]][] = [
    [
      'a plain one',
      [0, 0, 10, 0, 10, 10, 0, 10],
      [[5, 5]],
      [
        [5, -5],
        [5, 15],
        [15, 5],
        [-5, 5],
        [5, 175],
      ],
    ],
    [
      'over the 180th meridian',
      [-20, 170, -10, 170, -10, -170, -20, -170],
      [
        [-15, 175],
        [-15, -175],
        [-15, 180],
        [-15, -180],
      ],
      [
        [-15, 0],
        [-15, 165],
        [-15, -165],
        [-5, 180],
      ],
    ],
    [
      'over it, counted on',
      [-20, 170, -10, 170, -10, 190, -20, 190],
      [
        [-15, 175],
        [-15, -175],
      ],
      [[-15, 0]],
    ],
    [
      'around the north pole',
      [70, 0, 70, 90, 70, 180, 70, -90],
      [
        [89, 5],
        [80, -120],
        [71, 180],
        [90, 0],
      ],
      [
        [60, 5],
        [0, 0],
        [-89, 5],
      ],
    ],
    [
      'around the south pole',
      [-70, 10, -70, 130, -70, -110],
      [
        [-89, 5],
        [-80, 170],
        [-90, 0],
      ],
      [
        [-60, 5],
        [0, 0],
        [89, 5],
      ],
    ],
    [
      'the whole map',
      [-90, -180, 90, -180, 90, 180, -90, 180],
      [
        [0, 0],
        [50, 179],
        [-50, -179],
      ],
      [],
    ],
  ]
  const reversed = (corners: number[]): number[] =>
    Array.from({ length: corners.length / 2 }, (_, at) =>
      corners.slice(corners.length - 2 * at - 2).slice(0, 2),
    ).flat()
  const places = CASES.flatMap(([, , inside, outside]) => [...inside, ...outside])

  it.each(CASES)('%s, in either order, from any corner', async (_, corners, inside, outside) => {
    const points = await makeCollection(
      [{ name: 'at', type: 'geopoint' }],
      places.map((at, index) => ({ id: `p${index}`, at })),
    )
    const areas = await makeCollection([{ name: 'area', type: 'geopolygon' }], [{ id: 'a', area: corners }])
    for (const order of [corners, reversed(corners)]) {
      for (let turn = 0; turn < order.length; turn += 2) {
        const turned = [...order.slice(turn), ...order.slice(0, turn)]
        const found = await idsWhere(points.object, `at:(${turned.join(',')})`)
        const at = found.map((id) => places[Number(id.slice(1))])
        for (const place of inside) expect(at).toContainEqual(place)
        for (const place of outside) expect(at).not.toContainEqual(place)
      }
    }
    for (const [list, ids] of [
      [inside, ['a']],
      [outside, []],
    ] as const) {
      for (const place of list) expect(await idsWhere(areas.object, `area:(${place.join(',')})`)).toEqual(ids)
    }
  })
})
