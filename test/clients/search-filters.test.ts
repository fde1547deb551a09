/** What searches of Typesense 30 do beyond words: filters, orders and facets, through its own client. */
import { beforeAll, describe, expect, test } from 'vitest'
import { client, makeCollection, unique } from './harness'

type Params = Record<string, unknown>

const PLACES = [
  {
    title: 'red shoe',
    price: 1,
    year: 100,
    note: '',
    at: [48.85, 2.35],
    rows: [
      { a: 1, b: 2 },
      { a: 3, b: 4 },
    ],
  },
  { title: 'blue shoe', price: 2, year: 50, note: '[1,2]', at: [51.5, -0.12], rows: [{ a: 1, b: 4 }] },
  { title: 'red hat', price: 3, year: 10, note: 'a new york pizza', at: [40.7, -74], rows: [] },
  { title: 'york', price: 4, year: 1, note: 'york is new', at: [0, 0] },
]

const make = (fields: object[], documents: object[], schema: object = {}): Promise<string> =>
  makeCollection(
    'filters',
    fields,
    documents.map((document, id) => ({ id: `${id}`, ...document })),
    schema,
  )

const search = (collection: string, params: Params) =>
  client()
    .collections<{ id: string }>(collection)
    .documents()
    .search({ q: '*', ...params })

const ids = async (collection: string, params: Params): Promise<string> =>
  (await search(collection, params)).hits!.map(({ document }) => document.id).join(' ')

const refusal = (collection: string, params: Params): Promise<string> =>
  search(collection, params).then(
    () => 'taken',
    (error) => `${error.httpStatus} ${error.message.replace(/^.*Server said: /, '')}`,
  )

let places: string
beforeAll(async () => {
  places = await make(
    [
      { name: 'title', type: 'string', facet: true },
      { name: 'price', type: 'int32', facet: true },
      { name: 'year', type: 'int32' },
      { name: 'note', type: 'string' },
      { name: 'at', type: 'geopoint' },
      { name: 'rows', type: 'object[]', optional: true },
    ],
    PLACES,
    { enable_nested_fields: true },
  )
})

describe('filters', () => {
  test.each([
    ['price:[!=1,>3]', '3 2 1'],
    ['price:[1..2,4]', '3 1 0'],
    ['note:[]', ''],
    ['price:[]', ''],
    ['rows.{a:=1 && b:=2}', '0'],
    ['rows.{a:=1 && b:=4}', '1'],
    ['note:"new york"', '2'],
    ['note:`new york`', '3 2'],
    ['note:"york new"', ''],
    ['title:!red', '3 1'],
    ['title:!=red shoe', '3 2 1'],
    ['at:(48.86, 2.35, 10 km)', '0'],
    ['at:([48.86, 2.35], radius: 10 km)', '0'],
    ['at:([48.86, 2.35], radius: 6 mi, exact_filter_radius: 0 km)', '0'],
    ['at:(48.9, 2.3, 48.9, 2.4, 48.8, 2.4, 48.8, 2.3)', '0'],
    ['at:([48.9, 2.3, 48.9, 2.4, 48.8, 2.4, 48.8, 2.3])', '0'],
    ['at:!=(48.86, 2.35, 10 km)', '3 2 1'],
    // `&&` and `||` bind alike, from left to right.
    ['price:=1 || price:=2 && title:red', '0'],
  ])('%s', async (filter_by, found) => {
    expect(await ids(places, { filter_by })).toBe(found)
  })

  test('a polygon is found by a point inside of it', async () => {
    const areas = await make([{ name: 'area', type: 'geopolygon' }], [{ area: [0, 0, 0, 10, 10, 10, 10, 0] }])
    expect(await ids(areas, { filter_by: 'area:(5, 5)' })).toBe('0')
    expect(await ids(areas, { filter_by: 'area:(5, 15)' })).toBe('')
  })

  test('numbers of 64 bits differ by one', async () => {
    const name = await make([{ name: 'n', type: 'int64' }], [{ n: 0 }])
    const lines = ['{"id":"1","n":9007199254740992}', '{"id":"2","n":9007199254740993}'].join('\n')
    await client().collections(name).documents().import(lines)
    expect(await ids(name, { filter_by: 'n:=9007199254740993' })).toBe('2')
    expect(await ids(name, { filter_by: 'n:>9007199254740992' })).toBe('2')
  })
})

describe('orders', () => {
  const RED = { q: 'shoe', query_by: 'title' }
  test.each<[string, Params, string]>([
    ['_text_match(bucket_size: 2):desc,price:desc', RED, '1 0'],
    ['_text_match(buckets: 1):desc,price:asc', RED, '0 1'],
    ['year(origin: 50, func: diff):asc', {}, '1 2 3 0'],
    ['year(origin: 50, func: gauss, scale: 10, decay: 0.5):desc', {}, '1 2 3 0'],
    ['year(origin: 50, func: linear, scale: 40, decay: 0.5):desc', {}, '1 2 3 0'],
    ['at(48.85, 2.35):asc', {}, '0 1 3 2'],
    ['at(48.85, 2.35, exclude_radius: 2 mi):asc', {}, '0 1 3 2'],
    ['_eval(title:red):desc,price:asc', {}, '0 2 1 3'],
    ['_eval([(title:red):3,(price:2):5]):desc,price:asc', {}, '1 0 2 3'],
  ])('%s', async (sort_by, more, found) => {
    expect(await ids(places, { sort_by, ...more })).toBe(found)
  })

  test('a shuffle has a seed', async () => {
    const shuffled = (seed: number) => ids(places, { sort_by: `_rand(${seed}):asc` })
    const first = await shuffled(5)
    expect(await shuffled(5)).toBe(first)
    expect(first.split(' ').sort().join(' ')).toBe('0 1 2 3')
    const others = await Promise.all([1, 2, 3, 4, 6, 7, 8, 9].map(shuffled))
    expect(new Set([first, ...others]).size).toBeGreaterThan(1)
  })

  test('the distance of a vector is a key', async () => {
    const points = await make(
      [{ name: 'v', type: 'float[]', num_dim: 2 }],
      [{ v: [1, 0] }, { v: [0, 1] }, { v: [1, 1] }],
    )
    expect(await ids(points, { sort_by: '_vector_query(v:([0, 1])):asc' })).toBe('1 2 0')
  })

  test.each([
    ['_group_found:desc', '404 group_by parameters should not be empty when using sort_by group_found'],
    ['_vector_query(v:([1, 2])):asc', '400 Field `v` does not have a vector query index.'],
    ['price:asc,year:asc,at(0,0):asc,_text_match:desc', '400 Only upto 3 sort fields are allowed.'],
  ])('%s is refused', async (sort_by, message) => {
    expect(await refusal(places, { sort_by })).toBe(message)
  })
})

describe('facets', () => {
  const facet = async (params: Params) =>
    (await search(places, { per_page: 0, max_facet_values: 10, ...params })).facet_counts![0]!
  const values = async (params: Params) => (await facet(params)).counts.map(({ value }) => value)

  test('are searched with typos', async () => {
    expect(await values({ facet_by: 'title', facet_query: 'title:shoa' })).toEqual(['red shoe', 'blue shoe'])
    const exactly = { facet_query: 'title:shoa', facet_query_num_typos: 0 }
    expect(await values({ facet_by: 'title', ...exactly })).toEqual([])
  })

  test('give the figures of everything found beside their query', async () => {
    const { counts, stats } = await facet({ facet_by: 'price', facet_query: 'price:4' })
    expect(counts).toEqual([{ count: 1, highlighted: '<mark>4</mark>', value: '4' }])
    expect(stats).toEqual({ avg: 2.5, max: 4, min: 1, sum: 10, total_values: 1 })
  })

  test('count ranges, and the best hits alone', async () => {
    expect(await values({ facet_by: 'price(low:[0,3], high:[3,])' })).toEqual(['low', 'high'])
    const counts = (await facet({ facet_by: 'title(top_k: true)', filter_by: 'price:<3' })).counts
    expect(counts.map(({ value }) => value).sort()).toEqual(['blue shoe', 'red shoe'])
  })
})

describe('what is not there', () => {
  test.each(['voice_query', 'personalization_user_id', 'personalization_model_id'])(
    '%s is refused by its name',
    async (parameter) => {
      expect(await refusal(places, { [parameter]: 'x' })).toContain(
        `400 Parameter \`${parameter}\` is not supported.`,
      )
    },
  )

  test('infix of a field without its index is refused', async () => {
    expect(await refusal(places, { q: 'ho', query_by: 'title', infix: 'always' })).toContain(
      '400 Could not find `title` in the infix index.',
    )
  })

  test('stems of a language without a stemmer are refused, and name those that there are', async () => {
    const fields = [{ name: 'text', type: 'string', stem: true, locale: 'fi' }]
    await expect(
      client()
        .collections()
        .create({ name: unique('stems'), fields } as never),
    ).rejects.toMatchObject({
      httpStatus: 400,
      message: expect.stringContaining('Set it to one of en, da, de, es, fr, it, nl, no, pt, ru, sv.'),
    })
  })
})

test('parts of words are found where the field is indexed for them', async () => {
  const parts = await make(
    [{ name: 'part', type: 'string', infix: true }],
    [{ part: 'XK-4711-b' }, { part: '711' }],
  )
  const asked = { q: '711', query_by: 'part', num_typos: 0 }
  expect(await ids(parts, { ...asked, infix: 'always' })).toBe('1 0')
  expect(await ids(parts, { ...asked, infix: 'fallback' })).toBe('1')
  expect(await ids(parts, { ...asked, infix: 'off' })).toBe('1')
})

test('typos are allowed field by field', async () => {
  const two = await make(
    [
      { name: 'title', type: 'string' },
      { name: 'code', type: 'string' },
    ],
    [
      { title: 'lantern', code: 'none' },
      { title: 'none', code: 'lantern' },
    ],
  )
  const asked = { q: 'lantrn', query_by: 'title,code' }
  expect(await ids(two, { ...asked, num_typos: '1,0' })).toBe('0')
  expect(await ids(two, { ...asked, num_typos: '0,1' })).toBe('1')
})

test('an update counts a number up', async () => {
  const name = await make([{ name: 'seen', type: 'int32' }], [{ seen: 3 }])
  const document = client().collections<{ seen: number }>(name).documents('0')
  await document.update({ $operations: { increment: { seen: 4 } } } as never)
  expect((await document.retrieve()).seen).toBe(7)
})

test('a union of grouped searches counts what it lists', async () => {
  const one = (q: string) => ({ collection: places, q, query_by: 'title', group_by: 'title' })
  const union = await client().multiSearch.perform({ union: true, searches: [one('red'), one('shoe')] })
  expect(union).toMatchObject({ found: 3 })
})
