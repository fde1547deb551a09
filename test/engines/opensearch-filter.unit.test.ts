/** filter_by as OpenSearch's query, where an index has no field for whole values. */
import { expect, test } from 'vitest'
import { readMapping } from '../../src/engines/opensearch/mapping'
import { filterQuery } from '../../src/engines/opensearch/query'

const index = readMapping('books', {
  books: {
    mappings: {
      properties: {
        tenant: { type: 'text' },
        title: { type: 'text', fields: { keyword: { type: 'keyword' } } },
      },
    },
  },
})

test('compares whole values by the keyword', () => {
  const value = { value: 'acme', case_insensitive: true }
  expect(filterQuery('title:=acme', index)).toEqual({ term: { 'title.keyword': value } })
})

test.each(['tenant:=acme', 'tenant:!=acme', 'tenant:=ac*'])('refuses %s without one', (filter) => {
  expect(() => filterQuery(filter, index)).toThrow('no `keyword` field')
})

test('finds words without one', () => {
  expect(filterQuery('tenant:acme', index)).toEqual({
    match: { tenant: { query: 'acme', operator: 'and' } },
  })
})
