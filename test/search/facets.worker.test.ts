import { beforeAll, describe, expect, it } from 'vitest'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { makeBooks } from './books'
import type { TestCollection } from './make-collection'

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
    expect(await counts('tags')).toEqual(['animals 2', 'High hills 1', 'computers 1'])
    expect(await counts('stock')).toEqual(['true 3', 'false 1'])
    expect(await counts('tags', { q: 'quick', query_by: 'title' })).toEqual(['High hills 1', 'animals 1'])
    expect(await counts('tags', { filter_by: 'year:>=2000' })).toEqual(['animals 1', 'computers 1'])
  })

  it('give figures for numbers', async () => {
    const [facet] = await facets('price')
    expect(facet!.stats).toEqual({ avg: 7.5, max: 10, min: 5.5, sum: 22.5, total_values: 3 })
    expect(await counts('price')).toEqual(['5.5 1', '7 1', '10 1'])
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
