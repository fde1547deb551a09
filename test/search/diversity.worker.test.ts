/** Curations whose `diversity` puts hits in an order in which neighbours differ. */
import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { CURATIONS, putSet } from '../../src/registry/named-sets'
import type { SearchParameters } from '../../src/search/types'
import { idsOf, makeCollection, refusal, type TestCollection } from './make-collection'

const FIELDS = [
  { name: 'name', type: 'string' },
  { name: 'brand', type: 'string', facet: true, optional: true },
  { name: 'tags', type: 'string[]', facet: true, optional: true },
  { name: 'size', type: 'int32' },
  { name: 'place', type: 'geopoint', optional: true },
  { name: 'plain', type: 'string', optional: true },
  { name: 'words', type: 'string[]', optional: true },
  { name: 'vector', type: 'float[]', num_dim: 2, optional: true },
]

const SHOES = [
  {
    id: '0',
    name: 'red shoe',
    brand: 'Alta',
    tags: ['wool', 'silk'],
    size: 1,
    place: [1, 1],
    vector: [1, 0],
  },
  {
    id: '1',
    name: 'red shoe',
    brand: 'alta',
    tags: ['lace', 'wool'],
    size: 1,
    place: [1, 2],
    vector: [0, 1],
  },
  {
    id: '2',
    name: 'red shoe',
    brand: 'Bora',
    tags: ['silk', 'denim', 'lace'],
    size: 2,
    place: [1, 1],
    vector: [1, 0],
  },
  { id: '3', name: 'red shoe', brand: 'Cava', tags: ['wool'], size: 2, vector: [1, 0.1] },
  { id: '4', name: 'red shoe', tags: ['lace', 'silk'], size: 1 },
  {
    id: '5',
    name: 'red shoe',
    brand: 'Bora',
    tags: ['wool', 'lace'],
    size: 1,
    place: [1, 1],
    vector: [0, 1],
  },
]

let made = 0

async function withDiversity(
  metrics: Record<string, unknown>[],
  more: { item?: Record<string, unknown>; documents?: Record<string, unknown>[] } = {},
): Promise<TestCollection> {
  const set = `diverse ${made++}`
  const item = {
    id: 'a',
    rule: { tags: ['diverse'] },
    diversity: { similarity_metric: metrics },
    ...more.item,
  }
  await putSet(env, CURATIONS, set, { items: [item] })
  return makeCollection(FIELDS, more.documents ?? SHOES, { curation_sets: [set] })
}

const DIVERSE: SearchParameters = { q: '*', curation_tags: 'diverse' }
const ids = async (collection: TestCollection, params: SearchParameters): Promise<string[]> =>
  idsOf(await collection.search(params))

describe('the order of diverse hits', () => {
  it.each<[string, Record<string, unknown>[], string[]]>([
    // 5 has wool and lace. 2 shares a fourth with it, 0 a third, 3 the half, 1 all.
    ['the shared values of a list', [{ field: 'tags', method: 'jaccard' }], ['5', '2', '0', '3', '4', '1']],
    // Alta and alta are one value of a facet's normal form; a missing brand is like no other.
    ['an equal value', [{ field: 'brand', method: 'equality' }], ['5', '4', '3', '1', '2', '0']],
    ['an equal number', [{ field: 'size', method: 'equality' }], ['5', '3', '4', '2', '1', '0']],
    ['an equal place', [{ field: 'place', method: 'equality' }], ['5', '4', '3', '1', '2', '0']],
    ['equal lists', [{ field: 'tags', method: 'equality' }], ['5', '4', '3', '2', '0', '1']],
    ['near vectors', [{ field: 'vector', method: 'vector_distance' }], ['5', '4', '2', '3', '1', '0']],
    [
      'several fields by their weights',
      [
        { field: 'size', method: 'equality', weight: 0.25 },
        { field: 'brand', method: 'equality', weight: 1 },
      ],
      ['5', '3', '4', '1', '2', '0'],
    ],
  ])('avoids %s', async (_, metrics, order) => {
    const collection = await withDiversity(metrics)
    expect(await ids(collection, DIVERSE)).toEqual(order)
    expect(await ids(collection, { q: '*' })).toEqual(['5', '4', '3', '2', '1', '0'])
    expect(await ids(collection, { ...DIVERSE, diversity_lambda: '1' })).toEqual([
      '5',
      '4',
      '3',
      '2',
      '1',
      '0',
    ])
  })

  it('weighs how well a hit fits against how it differs', async () => {
    const documents = [
      { id: '0', name: 'blue boat', brand: 'B', size: 1 },
      { id: '1', name: 'red shoe', brand: 'A', size: 1 },
      { id: '2', name: 'red shoe', brand: 'A', size: 1 },
      { id: '3', name: 'red boat', brand: 'B', size: 1 },
    ]
    const collection = await withDiversity([{ field: 'brand', method: 'equality' }], { documents })
    const params = { ...DIVERSE, q: 'red shoe', query_by: 'name', drop_tokens_threshold: '10' }
    expect(await ids(collection, { ...params, diversity_lambda: '1' })).toEqual(['2', '1', '3'])
    expect(await ids(collection, { ...params, diversity_lambda: '0.9' })).toEqual(['2', '1', '3'])
    expect(await ids(collection, { ...params, diversity_lambda: '0.1' })).toEqual(['2', '3', '1'])
    const near = { ...DIVERSE, vector_query: 'vector:([1, 0], k: 10)' }
    const shoes = await withDiversity([{ field: 'vector', method: 'vector_distance' }])
    expect(await ids(shoes, { ...near, diversity_lambda: '1' })).toEqual(['2', '0', '3', '5', '1'])
    expect((await ids(shoes, { ...near, diversity_lambda: '0' })).slice(0, 2)).toEqual(['2', '5'])
  })

  it('is one order for all pages, of the first 250 hits', async () => {
    const documents = Array.from({ length: 260 }, (_, at) => ({
      id: `${at}`,
      name: 'red shoe',
      size: at % 10,
    }))
    const collection = await withDiversity([{ field: 'size', method: 'equality' }], { documents })
    const whole = await ids(collection, { ...DIVERSE, per_page: '250' })
    expect(new Set(whole.slice(0, 10).map((id) => id.at(-1))).size).toBe(10)
    const paged: string[] = []
    for (let page = 1; page <= 6; page++) {
      const result = await collection.search({ ...DIVERSE, per_page: '50', page: `${page}` })
      expect([result.found, result.page]).toEqual([260, page])
      paged.push(...idsOf(result))
    }
    expect(paged.slice(0, 250)).toEqual(whole)
    expect(paged.slice(250)).toEqual(['9', '8', '7', '6', '5', '4', '3', '2', '1', '0'])
    const across = await ids(collection, { ...DIVERSE, offset: '245', limit: '10' })
    expect(across).toEqual(paged.slice(245, 255))
  })

  it('leaves pinned documents in their places, and counts as before', async () => {
    const item = { includes: [{ id: '0', position: 2 }], excludes: [{ id: '3' }] }
    const collection = await withDiversity([{ field: 'size', method: 'equality' }], { item })
    const result = await collection.search({ ...DIVERSE, facet_by: 'brand' })
    expect(idsOf(result)).toEqual(['5', '0', '2', '4', '1'])
    expect(result.found).toBe(5)
    expect(result.hits![1]!.curated).toBe(true)
    expect(result.facet_counts[0]!.counts[0]).toMatchObject({ value: 'Bora', count: 2 })
  })
})

describe('what cannot be diversified', () => {
  it.each<[Record<string, unknown>, SearchParameters, string]>([
    [{ field: 'none', method: 'equality' }, {}, '400 `none` field not found in the schema.'],
    [
      { field: 'plain', method: 'equality' },
      {},
      '400 Enable sorting/faceting on `plain` field to use in diversity.',
    ],
    [
      { field: 'words', method: 'jaccard' },
      {},
      '400 Enable faceting on `words` array field to use in diversity.',
    ],
    [
      { field: 'size', method: 'vector_distance' },
      {},
      '400 Field `size` must be a vector to use `vector_distance` in diversity.',
    ],
    [
      { field: 'size', method: 'equality' },
      { group_by: 'brand' },
      '400 Diversity is not supported along with group_by.',
    ],
    [
      { field: 'size', method: 'equality' },
      { diversity_lambda: '2' },
      '400 Parameter `diversity_lambda` must be a number between 0 and 1.',
    ],
    [
      { field: 'size', method: 'equality' },
      { rerank_model: 'cloudflare/@cf/baai/bge-reranker-base' },
      '400 `rerank_model` cannot be combined with the `diversity` of a curation.',
    ],
  ])('%j with %j', async (metric, params, message) => {
    const collection = await withDiversity([metric])
    expect(await refusal(collection, { ...DIVERSE, ...params })).toBe(message)
  })
})
