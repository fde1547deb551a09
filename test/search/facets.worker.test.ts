import { beforeAll, describe, expect, it } from 'vitest'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { makeBooks } from './books'
import { makeCollection, refusal, type TestCollection } from './make-collection'

let books: TestCollection

beforeAll(async () => {
  books = await makeBooks()
})

const search = (params: SearchParameters): Promise<SearchResult> => books.search(params)

describe('facets', () => {
  const facets = async (facetBy: string, params: SearchParameters = {}) =>
    (await search({ q: '*', facet_by: facetBy, per_page: '1', ...params })).facet_counts

  const counts = async (facetBy: string, params: SearchParameters = {}) =>
    (await facets(facetBy, params))[0]!.counts.map(({ value, count }) => `${value} ${count}`)

  it('count values of everything found', async () => {
    expect(await facets('genre')).toEqual([
      {
        field_name: 'genre',
        sampled: false,
        counts: [
          { count: 2, highlighted: 'Nature', value: 'Nature' },
          { count: 1, highlighted: 'Technique', value: 'Technique' },
        ],
        stats: { total_values: 2 },
      },
    ])
    expect(await counts('tags')).toEqual(['animals 2', 'computers 1', 'High hills 1'])
    expect(await counts('stock')).toEqual(['true 3', 'false 1'])
    expect(await counts('tags', { q: 'quick', query_by: 'title' })).toEqual(['animals 1', 'High hills 1'])
    expect(await counts('tags', { filter_by: 'year:>=2000' })).toEqual(['animals 1', 'computers 1'])
  })

  it('put the shorter of equal texts first, and then the last by the alphabet', async () => {
    const names = ['ab', 'b', 'ba', 'a', 'B', 'bb']
    const shelf = await makeCollection(
      [{ name: 'name', type: 'string', facet: true }],
      [...names, 'often', 'often'].map((name) => ({ name })),
    )
    const { facet_counts } = await shelf.search({ q: '*', facet_by: 'name' })
    expect(facet_counts[0]!.counts.map(({ value }) => value)).toEqual([
      'often',
      ...['b', 'a', 'B', 'bb', 'ba', 'ab'],
    ])
  })

  it('give figures for numbers', async () => {
    const [facet] = await facets('price')
    expect(facet!.stats).toEqual({ avg: 7.5, max: 10, min: 5.5, sum: 22.5, total_values: 3 })
    expect(await counts('price')).toEqual(['5.5 1', '7 1', '10 1'])
  })

  it('give the figures of everything found beside a facet query, which searches no ranges', async () => {
    const stats = { avg: 7.5, max: 10, min: 5.5, sum: 22.5 }
    expect(await facets('price', { facet_query: 'price:7' })).toMatchObject([
      { counts: [{ value: '7', highlighted: '<mark>7</mark>' }], stats: { ...stats, total_values: 1 } },
    ])
    const [none] = await facets('price', { facet_query: 'price:8' })
    expect(none).toMatchObject({ counts: [], stats: { ...stats, total_values: 0 } })
    expect(await counts('price(low:[,6], high:[6,])', { facet_query: 'price:7' })).toEqual([
      'high 2',
      'low 1',
    ])
  })

  it('count ranges, their upper end excluded', async () => {
    expect(await counts('year(old:[,2000], new:[2000,2020], `future, far`:[2020,])')).toEqual([
      'new 2',
      'old 1',
      'future, far 1',
    ])
  })

  it('take an order and a limit', async () => {
    expect(await counts('tags(sort_by: _alpha:desc)')).toEqual(['High hills 1', 'computers 1', 'animals 2'])
    expect(await counts('tags(sort_by: year:desc)')).toEqual(['computers 1', 'animals 2', 'High hills 1'])
    expect(await counts('tags', { max_facet_values: '1' })).toEqual(['animals 2'])
    expect((await facets('t*,genre')).map(({ field_name }) => field_name)).toEqual(['tags', 'genre'])
  })

  it('are searched by the beginnings of their words', async () => {
    const [facet] = await facets('tags', { facet_query: 'tags: hi hil' })
    expect(facet!.counts).toEqual([
      { count: 1, highlighted: '<mark>Hi</mark>gh <mark>hi</mark>lls', value: 'High hills' },
    ])
    expect(await counts('year', { facet_query: 'year:19' })).toEqual(['1990 1'])
    expect(await counts('tags', { facet_query: 'tags:' })).toHaveLength(3)
  })
})

describe('facet queries with typos', () => {
  let songs: TestCollection
  beforeAll(async () => {
    songs = await makeCollection(
      [{ name: 'genres', type: 'string[]', facet: true }],
      [
        { genres: ['Country Punk Rock', 'Country', 'Slow'] },
        { genres: ['Soft Rock', 'Rock', 'Electronic'] },
        { genres: ['Rockabilly', 'Metal'] },
        { genres: ['Pop Rock', 'Rock', 'Fast'] },
      ],
    )
  })
  const highlighted = async (query: string, params: SearchParameters = {}) =>
    (
      await songs.search({ q: '*', facet_by: 'genres', facet_query: `genres:${query}`, ...params })
    ).facet_counts[0]!.counts.map((count) => count.highlighted)

  it('find the nearest values where none begins as typed', async () => {
    expect(await highlighted('eletronic')).toEqual(['<mark>Electroni</mark>c'])
    expect(await highlighted('eletronic', { facet_query_num_typos: '1' })).toEqual([
      '<mark>Electroni</mark>c',
    ])
    expect(await highlighted('eletronic', { facet_query_num_typos: '0' })).toEqual([])
    expect(await highlighted('xountry puk')).toEqual([])
    expect(await highlighted('xountry roc')).toEqual(['<mark>Country</mark> Punk <mark>Roc</mark>k'])
    expect(await highlighted('meatl')).toEqual(['<mark>Metal</mark>'])
    expect(await highlighted('xsda')).toEqual([])
    expect(await highlighted('mxx')).toEqual([])
  })

  it('do without typos where a value begins as typed', async () => {
    expect(await highlighted('soft roc')).toEqual(['<mark>Soft</mark> <mark>Roc</mark>k'])
    expect((await highlighted('rock')).length).toBe(5)
  })

  it('take a number of typos from 0 to 2', async () => {
    expect(
      await refusal(songs, {
        q: '*',
        facet_by: 'genres',
        facet_query: 'genres:x',
        facet_query_num_typos: 'x',
      }),
    ).toBe('400 Parameter `facet_query_num_typos` must be an unsigned integer.')
  })
})

describe('facet_return_parent', () => {
  const parentsOf = async (
    { search }: TestCollection,
    facetBy: string,
    parents?: string,
  ): Promise<Record<string, unknown>[]> => {
    const params: SearchParameters = { q: '*', facet_by: facetBy }
    if (parents !== undefined) params.facet_return_parent = parents
    const { facet_counts } = await search(params)
    return facet_counts.map(({ counts }) =>
      Object.fromEntries(counts.map(({ value, parent }) => [value, parent])),
    )
  }
  let colors: TestCollection
  beforeAll(async () => {
    colors = await makeCollection(
      [
        { name: 'value.color', type: 'string', facet: true },
        { name: 'value.r', type: 'int32', facet: true },
        { name: 'tags', type: 'object[]', facet: true },
        { name: 'deep.down', type: 'object' },
        { name: 'deep.down.words', type: 'string[]', facet: true },
        { name: 'top', type: 'string', facet: true },
      ],
      [
        {
          value: { color: 'red', r: 255 },
          tags: [
            { id: 'one', name: 'One' },
            { id: 'two', name: 'Two' },
          ],
          deep: { down: { words: ['a', 'b'] } },
          top: 'x',
        },
        {
          value: { color: 'blue', r: 0 },
          tags: [{ id: 'two', name: 'Two' }],
          deep: { down: { words: [] } },
          top: 'y',
        },
      ],
      { enable_nested_fields: true },
    )
  })

  it('gives the object around each value', async () => {
    const [red, blue] = [
      { color: 'red', r: 255 },
      { color: 'blue', r: 0 },
    ]
    expect(await parentsOf(colors, 'value.color')).toEqual([{ red: undefined, blue: undefined }])
    expect(await parentsOf(colors, 'value.color', 'value.color')).toEqual([{ red, blue }])
    expect(await parentsOf(colors, 'value.color(return_parent: true),value.r')).toEqual([
      { red, blue },
      { 255: undefined, 0: undefined },
    ])
    for (const names of ['value.color,value.r', 'value.*', '*']) {
      expect(await parentsOf(colors, 'value.color,value.r', names)).toEqual([
        { red, blue },
        { 255: red, 0: blue },
      ])
    }
    expect(await parentsOf(colors, 'tags.id', 'tags.id')).toEqual([
      { one: { id: 'one', name: 'One' }, two: { id: 'two', name: 'Two' } },
    ])
    const words = { words: ['a', 'b'] }
    expect(await parentsOf(colors, 'deep.down.words', '*')).toEqual([{ a: words, b: words }])
    expect(await parentsOf(colors, 'top', '*')).toEqual([{ x: undefined, y: undefined }])
  })

  it('shows no field that the search hides', async () => {
    const shown = async (params: SearchParameters) => {
      const asked = { q: '*', facet_by: 'value.color', facet_return_parent: 'value.color', ...params }
      const { facet_counts } = await colors.search(asked as SearchParameters)
      return facet_counts[0]!.counts.map(({ parent }) => parent)
    }
    expect(await shown({ exclude_fields: 'value.r' } as SearchParameters)).toEqual([
      { color: 'red' },
      { color: 'blue' },
    ])
    expect(await shown({ include_fields: 'value.color' } as SearchParameters)).toEqual([
      { color: 'red' },
      { color: 'blue' },
    ])
    expect(await shown({ exclude_fields: 'value' } as SearchParameters)).toEqual([undefined, undefined])
  })

  it('gives the parents of many values, without vectors', async () => {
    const many = await makeCollection(
      [
        { name: 'part.name', type: 'string', facet: true },
        { name: 'part.at', type: 'float[]', num_dim: 2 },
      ],
      Array.from({ length: 120 }, (_, n) => ({ part: { name: `n${n}`, at: [n, 1] } })),
      { enable_nested_fields: true },
    )
    const { facet_counts } = await many.search({
      q: '*',
      facet_by: 'part.name',
      facet_return_parent: 'part.name',
      max_facet_values: '200',
    })
    const { counts } = facet_counts[0]!
    expect(counts).toHaveLength(120)
    for (const { value, parent } of counts) expect(parent).toEqual({ name: value })
  })
})

describe('facet_query on a field with rules of its own', () => {
  it('reads the query as it reads the values', async () => {
    const parts = await makeCollection(
      [{ name: 'code', type: 'string', facet: true, symbols_to_index: ['+'], token_separators: ['-'] }],
      [{ code: 'C++-tools' }, { code: 'Cobalt' }],
    )
    const shown = async (query: string, more: Record<string, string> = {}) => {
      const { facet_counts } = await parts.search({
        q: '*',
        facet_by: 'code',
        facet_query: `code:${query}`,
        ...more,
      } as SearchParameters)
      return facet_counts[0]!.counts.map(({ highlighted }) => highlighted)
    }
    expect(await shown('c++')).toEqual(['<mark>C++</mark>-tools'])
    expect(await shown('tools')).toEqual(['C++-<mark>tools</mark>'])
    expect(await shown('toolz', { facet_query_num_typos: '1' })).toEqual(['C++-<mark>tools</mark>'])
  })
})

describe('options of a facet', () => {
  let jeans: TestCollection
  beforeAll(async () => {
    const documents = Array.from({ length: 500 }, (_, n) => [
      { name: 'jeans', price: 49.99, rank: n },
      { name: 'narrow jeans', price: 29.99, rank: 500 + n },
    ]).flat()
    jeans = await makeCollection(
      [
        { name: 'name', type: 'string', facet: true },
        { name: 'price', type: 'float', facet: true },
        { name: 'rank', type: 'int32' },
      ],
      documents,
    )
  })
  const counts = async (facetBy: string, params: SearchParameters = {}) =>
    (await jeans.search({ q: '*', sort_by: 'rank:asc', facet_by: facetBy, ...params })).facet_counts.map(
      ({ counts }) => counts.map(({ value, count }) => `${value} ${count}`),
    )

  it('count the best 250 hits alone with top_k', async () => {
    expect(await counts('name')).toEqual([['jeans 500', 'narrow jeans 500']])
    expect(await counts('name(top_k: true), price')).toEqual([['jeans 250'], ['29.99 500', '49.99 500']])
    expect(await counts('name(top_k:true)', { page: '6', per_page: '100' })).toEqual([
      ['jeans 500', 'narrow jeans 100'],
    ])
    expect(await counts('price(cheap:[0,30], top_k:true, dear:[30,50])')).toEqual([['dear 250']])
    expect(await counts('name(top_k:true)', { q: 'narrow', query_by: 'name' })).toEqual([
      ['narrow jeans 250'],
    ])
  })

  it('count the hits that the pages show first', async () => {
    const animals = await makeCollection(
      [
        { name: 'title', type: 'string' },
        { name: 'kind', type: 'string', facet: true },
      ],
      Array.from({ length: 400 }, (_, n) =>
        n % 40 === 7
          ? { title: 'wolf', kind: 'exact' }
          : { title: 'wolf and wolf and wolf and wolf', kind: 'repeated' },
      ),
    )
    const { hits, facet_counts } = await animals.search({
      q: 'wolf',
      query_by: 'title',
      facet_by: 'kind(top_k:true)',
      per_page: '10',
    })
    expect(hits!.map(({ document }) => document.title)).toEqual(Array(10).fill('wolf'))
    expect(facet_counts[0]!.counts.map(({ value, count }) => `${value} ${count}`)).toEqual([
      'repeated 240',
      'exact 10',
    ])
  })

  it.each([
    ['name(top_k=true)', 'Invalid facet format.'],
    ['name(top-k:true)', 'Invalid facet param `top-k`.'],
    ['name(sort_by:desc)', 'Invalid sort format.'],
    ['name(sort_by:_alpha:up)', 'Invalid sort param.'],
    ['price(cheap:[0, 30, 40])', 'Error splitting the facet range values.'],
    ['price(cheap:[0, 30)', 'Error splitting the facet range values.'],
    ['price(cheap:[0, 30] dear:[30, 90])', 'Invalid facet format.'],
    ['price(cheap:[0, 30] top_k:true)', 'Invalid facet format.'],
    ['name(sort:_alpha:desc)', 'Invalid facet param `sort`.'],
    ['name(topk:true)', 'Invalid facet param `topk`.'],
    ['name(top_k:10)', 'top_k string format is invalid.'],
    ['name(top_k:false sort_by:_alpha:desc)', 'top_k string format is invalid.'],
    ['price(cheap:[0, 30], dear:[30, 50] top_k:true)', 'Invalid facet format.'],
    ['price( :[0, 20])', 'Facet range value is not valid.'],
  ])('%s is refused', async (facetBy, message) => {
    expect(await refusal(jeans, { q: '*', facet_by: facetBy })).toBe(`400 ${message}`)
  })
})

it('orders values with the same rank by their counts, in the direction of the order', async () => {
  const meals = await makeCollection(
    [
      { name: 'dish', type: 'string', facet: true },
      { name: 'calories', type: 'int32' },
    ],
    [
      { dish: 'pasta', calories: 270 },
      { dish: 'curry', calories: 270 },
      { dish: 'curry', calories: 270 },
      { dish: 'soup', calories: 90 },
    ],
  )
  const valuesBy = async (direction: string) => {
    const facetBy = `dish(sort_by:calories:${direction})`
    const { facet_counts: facets } = await meals.search({ q: '*', facet_by: facetBy })
    return facets[0]!.counts.map(({ value }) => value)
  }
  expect(await valuesBy('desc')).toEqual(['curry', 'pasta', 'soup'])
  expect(await valuesBy('asc')).toEqual(['soup', 'pasta', 'curry'])
})
