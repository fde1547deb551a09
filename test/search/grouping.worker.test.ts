import { beforeAll, describe, expect, it } from 'vitest'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { makeBooks } from './books'
import { makeCollection, refusal, type TestCollection } from './make-collection'
import { importAll } from './object'

let books: TestCollection

beforeAll(async () => {
  books = await makeBooks()
})

const search = (params: SearchParameters): Promise<SearchResult> => books.search(params)

describe('group_by', () => {
  it('gives the best hits of each group', async () => {
    const result = await search({ q: '*', group_by: 'genre', group_limit: '1' })
    expect(result).toMatchObject({ found: 3, found_docs: 4 })
    expect(result).not.toHaveProperty('hits')
    expect(
      result.grouped_hits!.map(({ group_key, hits, found }) => [
        group_key,
        hits.map(({ document }) => document.id),
        found,
      ]),
    ).toEqual([
      [[], ['universities'], 1],
      [['Technique'], ['databases'], 1],
      [['Nature'], ['dogs'], 2],
    ])
  })

  it('groups by lists and booleans, in the order of the search', async () => {
    const result = await search({ q: 'fox', query_by: 'title,text', group_by: 'tags,stock' })
    expect(result.grouped_hits!.map(({ group_key }) => group_key)).toEqual([
      [['animals', 'High hills'], true],
      [['animals'], false],
    ])
  })

  it('pages groups, and leaves documents without the value alone', async () => {
    const params = { q: '*', group_by: 'genre', group_missing_values: 'false', per_page: '1', page: '2' }
    const result = await search(params)
    expect(result.found).toBe(3)
    expect(result.grouped_hits!.map(({ group_key }) => group_key)).toEqual([['Technique']])
  })
})

describe('pinned documents of a grouped search', () => {
  let shelf: TestCollection

  beforeAll(async () => {
    shelf = await makeCollection(
      [
        { name: 'title', type: 'string' },
        { name: 'series', type: 'string', facet: true, optional: true },
      ],
      [
        { id: 'p1', title: 'the stone', series: 'potter' },
        { id: 'p2', title: 'the chamber', series: 'potter' },
        { id: 'p3', title: 'the prisoner', series: 'potter' },
        { id: 'l1', title: 'the ring', series: 'rings' },
        { id: 'n1', title: 'the nose', series: 'nose' },
        { id: 'x1', title: 'the loner' },
      ],
    )
  })

  const grouped = async (params: SearchParameters) => {
    const result = await shelf.search({ q: '*', group_by: 'series', group_limit: '2', ...params })
    const groups = result.grouped_hits!.map(({ hits }) =>
      hits.map(({ document: { id }, curated }) => (curated ? `${id}!` : id)).join(' '),
    )
    return { found: result.found, documents: result.found_docs, groups }
  }

  it('put their groups in their positions, and other hits of the group follow', async () => {
    const expected = ['p1! p3', 'x1', 'n1', 'l1']
    // As in Typesense, a group with pinned and other matches counts twice.
    expect(await grouped({ pinned_hits: 'p1:1' })).toEqual({ found: 5, documents: 5, groups: expected })
    const words = { q: 'the', query_by: 'title', sort_by: '_seq_id:desc' }
    expect((await grouped({ ...words, pinned_hits: 'p1:1' })).groups).toEqual(expected)
    expect((await grouped({ pinned_hits: 'p1:3,l1:2' })).groups).toEqual(['x1', 'l1!', 'p1! p3', 'n1'])
    expect((await grouped({ pinned_hits: 'p1:99' })).groups).toEqual(['x1', 'n1', 'l1', 'p1! p3'])
  })

  it('share a group, and groups of one position follow each other', async () => {
    expect((await grouped({ pinned_hits: 'p1:1,p2:1,n1:1' })).groups).toEqual(['p1! p2!', 'n1!', 'x1', 'l1'])
    const alone = { group_missing_values: 'false', pinned_hits: 'x1:2' }
    expect((await grouped(alone)).groups).toEqual(['n1', 'x1!', 'l1', 'p3 p2'])
  })

  it('are there when nothing else is found, and on the page of their position', async () => {
    const none = { q: 'nothing', query_by: 'title', pinned_hits: 'l1:1,p2:2' }
    expect(await grouped(none)).toEqual({ found: 2, documents: 0, groups: ['l1!', 'p2!'] })
    const pages = ['1', '2', '3'].map(async (page) => {
      const { groups } = await grouped({ pinned_hits: 'p1:2,l1:3', per_page: '2', page })
      return groups
    })
    expect(await Promise.all(pages)).toEqual([['x1', 'p1! p3'], ['l1!', 'n1'], []])
  })

  it('count in facets', async () => {
    const counts = async (params: SearchParameters) => {
      const { facet_counts } = await shelf.search({ q: 'prisoner', query_by: 'title', ...params })
      return facet_counts[0]!.counts.map(({ value, count }) => `${value} ${count}`)
    }
    const pinning = { facet_by: 'series', pinned_hits: 'p1:1,l1:2' }
    expect(await counts(pinning)).toEqual(['potter 2', 'rings 1'])
    expect(await counts({ ...pinning, group_by: 'series' })).toEqual(['rings 1', 'potter 1'])
    expect(await counts({ ...pinning, q: '*', hidden_hits: 'p3' })).toEqual(['potter 2', 'nose 1', 'rings 1'])
  })
})

describe('facets of a grouped search', () => {
  const shelves = [
    { brand: 'A', size: 1, tags: ['x', 'y'], rating: 1 },
    { brand: 'A', size: 1, tags: ['x'], rating: 2 },
    { brand: 'A', size: 2, tags: ['y'], rating: 7 },
    { brand: 'B', size: 2, tags: ['y', 'y'], rating: 8 },
    { brand: 'B', tags: [], rating: 9 },
    { brand: 'B', tags: ['x'], rating: 9 },
  ]
  let shelf: TestCollection

  beforeAll(async () => {
    shelf = await makeCollection(
      [
        { name: 'brand', type: 'string', facet: true },
        { name: 'size', type: 'int32', facet: true, optional: true },
        { name: 'tags', type: 'string[]', facet: true },
        { name: 'rating', type: 'int32', facet: true },
      ],
      shelves,
    )
  })

  const counts = async (params: SearchParameters) => {
    const { facet_counts } = await shelf.search({ q: '*', ...params })
    return facet_counts.map(({ counts }) => counts.map(({ value, count }) => `${value} ${count}`))
  }

  it('counts the groups that have a value, whatever group_limit shows', async () => {
    const facetBy = 'brand,tags,rating(low:[0,5], high:[5,10])'
    const expected = [
      ['B 2', 'A 2'],
      ['y 2', 'x 2'],
      ['high 2', 'low 1'],
    ]
    for (const limit of ['1', '3']) {
      const params = { facet_by: facetBy, group_by: 'size', group_limit: limit, per_page: '1' }
      expect(await counts(params)).toEqual(expected)
    }
  })

  it('counts a document without the group’s value by itself if it is a group of its own', async () => {
    const params = { facet_by: 'brand,tags', group_by: 'size', group_missing_values: 'false' }
    expect(await counts(params)).toEqual([
      ['B 3', 'A 2'],
      ['y 2', 'x 2'],
    ])
  })

  it('counts by groups of lists, and with a facet query', async () => {
    expect(await counts({ facet_by: 'brand', group_by: 'tags' })).toEqual([['B 3', 'A 3']])
    expect(await counts({ facet_by: 'tags', facet_query: 'tags:y', group_by: 'brand' })).toEqual([['y 2']])
  })

  it('gives statistics of all documents', async () => {
    const { facet_counts } = await shelf.search({ q: '*', facet_by: 'rating', group_by: 'brand' })
    expect(facet_counts[0]!.stats).toMatchObject({ min: 1, max: 9, sum: 36, total_values: 5 })
  })
})

describe('what groups cannot do is refused', () => {
  it('by lists that are too long together, and not by a single long one', async () => {
    const tags = (count: number) => Array.from({ length: count }, (_, n) => `value ${n} `.padEnd(100, 'x'))
    const fields = [{ name: 'tags', type: 'string[]', facet: true }]
    const long = { id: 'a', tags: tags(12_000) }
    const made = await makeCollection(fields, [long, { id: 'b', tags: ['x'] }])
    const asks: SearchParameters[] = [
      {},
      { sort_by: '_group_found:desc' },
      { group_limit: '3' },
      { facet_by: 'tags' },
    ]
    for (const asked of asks)
      expect((await made.search({ q: '*', group_by: 'tags', ...asked })).found).toBe(2)
    await importAll(
      made.object,
      Array.from({ length: 7 }, (_, n) => ({ id: `c${n}`, tags: tags(12_000 + n) })),
    )
    for (const asked of asks) {
      expect(await refusal(made, { q: '*', group_by: 'tags', ...asked })).toMatch(
        /^422 .* characters together/,
      )
    }
  })

  it('by an object, which has no value of its own', async () => {
    const made = await makeCollection(
      [
        { name: 'maker', type: 'object', facet: true, optional: true },
        { name: 'makers', type: 'object[]', facet: true, optional: true },
      ],
      [{ id: 'a', maker: { name: 'Ann' }, makers: [{ name: 'Bob' }] }],
      { enable_nested_fields: true },
    )
    for (const name of ['maker', 'makers']) {
      expect(await refusal(made, { q: '*', group_by: name })).toMatch(
        /^400 Cannot group by `makers?`: it is of type/,
      )
      expect(await refusal(made, { q: '*', facet_by: name })).toMatch(/^404 /)
    }
    expect((await made.search({ q: '*', group_by: 'maker.name' })).found).toBe(1)
  })

  it('by the size of groups where there are none', async () => {
    expect(await refusal(books, { q: '*', sort_by: '_group_found:desc' })).toBe(
      '404 group_by parameters should not be empty when using sort_by group_found',
    )
    const sorted = await search({ q: '*', group_by: 'genre', sort_by: '_group_found:desc' })
    expect(sorted.grouped_hits!.map(({ found }) => found)).toEqual([2, 1, 1])
  })

  it('with more hits than a reply may have', async () => {
    const many = { q: '*', group_by: 'genre', group_limit: '99' }
    expect(await refusal(books, { ...many, per_page: '26' })).toBe(
      '422 Only upto 2500 hits can be fetched in groups. Lower `per_page` or `group_limit`, which are multiplied.',
    )
    expect(await refusal(books, { ...many, per_page: '25' })).toBe('accepted')
  })
})
