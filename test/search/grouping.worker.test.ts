import { beforeAll, describe, expect, it } from 'vitest'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { makeBooks } from './books'
import { makeCollection, refusal, type TestCollection } from './make-collection'

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

  it('leaves pinned documents where their group has them', async () => {
    const result = await search({ q: '*', group_by: 'genre', pinned_hits: 'fox:1' })
    expect([result.found, result.found_docs]).toEqual([3, 4])
  })
})

describe('what groups cannot do is refused', () => {
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
