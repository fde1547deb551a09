import { beforeAll, describe, expect, it } from 'vitest'
import type { SearchParameters } from '../../src/search/types'
import { makeBooks } from './books'
import { refusal, type TestCollection } from './make-collection'

let books: TestCollection

beforeAll(async () => {
  books = await makeBooks()
})

describe('bad parameters', () => {
  it.each<[SearchParameters, string]>([
    [{}, '400 Parameter `q` is required.'],
    [{ q: 'fox' }, '400 No search fields specified for the query.'],
    [{ q: 'fox', query_by: 'nope' }, '404 Could not find a field named `nope` in the schema.'],
    [{ q: 'fox', query_by: 'year' }, '400 Field `year` should be a string or a string array.'],
    [{ q: 'fox', query_by: 'id' }, '400 Cannot use `id` as a query by field.'],
    [{ q: 'fox', query_by: 'secret' }, '400 Field `secret` is marked as a non-indexed field in the schema.'],
    [
      { q: 'fox', query_by: 'title,text', query_by_weights: '1' },
      '400 Number of weights in `query_by_weights` does not match number of `query_by` fields.',
    ],
    [
      { q: 'fox', query_by: 'title,text', num_typos: '1,1,1' },
      '400 Number of values in `num_typos` does not match number of `query_by` fields.',
    ],
    [
      { q: 'fox', query_by: 'title', prefix: 'true,false' },
      '400 Number of prefix values in `prefix` does not match number of `query_by` fields.',
    ],
    [{ q: '*', filter_by: 'nope:1' }, '400 Could not find a filter field named `nope` in the schema.'],
    [{ q: '*', sort_by: 'nope:asc' }, '404 Could not find a field named `nope` in the schema for sorting.'],
    [{ q: '*', sort_by: 'text:asc' }, '404 Could not find a field named `text` in the schema for sorting.'],
    [{ q: '*', sort_by: 'year:up' }, '400 Order for field` year` should be either ASC or DESC.'],
    [{ q: 'fox', query_by: 'title', fusion: 'best' }, '400 Parameter `fusion` must be `rank` or `score`.'],
    [{ q: '*', sort_by: 'year' }, '400 Parameter `sort_by` is malformed.'],
    [
      { q: '*', sort_by: 'year:asc,price:asc,stock:asc,title:asc' },
      '400 Only upto 3 sort fields are allowed.',
    ],
    [{ q: '*', sort_by: 'at(x,1):asc' }, '400 Bad syntax for sorting field `at`'],
    [{ q: '*', facet_by: 'title' }, '404 Could not find a facet field named `title` in the schema.'],
    [{ q: '*', facet_by: 'year(a:[x,1])' }, '400 Facet range value is not valid.'],
    [{ q: '*', facet_by: 'year( :[0,1])' }, '400 Facet range value is not valid.'],
    [
      { q: '*', facet_by: 'tags(a:[0,1])' },
      '400 Range facet is restricted to only integer and float fields.',
    ],
    [
      { q: '*', facet_by: 'tags', facet_query: 'x' },
      '400 Facet query must be in the `facet_field: value` format.',
    ],
    [
      { q: '*', facet_query: 'tags:x' },
      '400 The `facet_query` parameter is supplied without a `facet_by` parameter.',
    ],
    [
      { q: '*', facet_by: 'tags', facet_query: 'genre:x' },
      '400 Facet query refers to a facet field `genre` that is not part of `facet_by` parameter.',
    ],
    [{ q: '*', group_by: 'title' }, '400 Group by field `title` should be a facet field.'],
    [
      { q: '*', group_by: 'tags', group_limit: '100' },
      '400 Value of `group_limit` must be between 1 and 99.',
    ],
    [{ q: '*', per_page: '251' }, '422 Only upto 250 hits can be fetched per page.'],
    [{ q: '*', page: 'abc' }, '400 Parameter `page` must be an unsigned integer.'],
    [{ q: '*', page: '-1' }, '400 Parameter `page` must be an unsigned integer.'],
    [
      { q: '*', limit_hits: '20', page: '3' },
      '422 Only upto 20 hits can be fetched. Ensure that `page` and `per_page` parameters are within this range.',
    ],
    [{ q: '*', pinned_hits: 'fox' }, '400 Pinned hits are not in expected format.'],
    [{ q: '*', vector_query: 'title:([1])' }, '400 Field `title` does not have a vector query index.'],
  ])('%j', async (params, expected) => {
    expect(await refusal(books, params)).toBe(expected)
  })

  it('that nobody knows are ignored', async () => {
    expect(
      (await books.search({ q: '*', throwOnFail: 'true', use_cache: '1', exhaustive_search: 'true' })).found,
    ).toBe(4)
  })
})

describe('what a reply may hold', () => {
  it('is bounded, with an error that says what to do', async () => {
    expect(await refusal(books, { q: '*', facet_by: 'genre', max_facet_values: '100001' })).toBe(
      '400 Parameter `max_facet_values` must be at most 100000. Ask for fewer values, those of a `facet_query`.',
    )
    expect(await refusal(books, { q: '*', facet_by: 'genre', max_facet_values: '100000' })).toBe('accepted')
    expect(await refusal(books, { q: '*', page: '201', per_page: '250' })).toMatch(
      /^422 Only upto 50000 hits can be fetched\. .* For all documents use the export\.$/,
    )
    expect(await refusal(books, { q: '*', page: '200', per_page: '250' })).toBe('accepted')
  })
})
