import { beforeAll, describe, expect, it } from 'vitest'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { makeBooks } from './books'
import type { TestCollection } from './make-collection'

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
