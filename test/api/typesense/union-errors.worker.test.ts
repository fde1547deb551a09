/** Why a union search has no reply, in Typesense's words (src/collection_manager.cpp, `do_union`). */
import { beforeAll, expect, it } from 'vitest'
import { call } from './api'

beforeAll(async () => {
  const fields = [
    { name: 'tenant', type: 'int32', facet: true },
    { name: 'points', type: 'int32' },
  ]
  await call('POST', '/collections', { body: { name: 'united', fields } })
})

it.each<[string, Record<string, string>, object[], { error: string; code: number }]>([
  [
    'a collection that there is not',
    {},
    [{ collection: 'none' }],
    { error: '`none` collection not found.', code: 404 },
  ],
  [
    'a page that is no number',
    { page: 'x' },
    [{}],
    {
      error:
        'Error while initializing global parameters of union: Parameter `page` must be an unsigned integer.',
      code: 400,
    },
  ],
  [
    'different directions',
    {},
    [{ sort_by: 'points:asc' }, { sort_by: 'points:desc' }],
    {
      error:
        'Expected order of `points` sort_by (DESC) at search index `1` to be the same as the order of `points` sort_by (ASC) at search index `0`.',
      code: 400,
    },
  ],
])('answers %s with status 200', async (_, query, given, error) => {
  const searches = given.map((each) => ({ collection: 'united', q: '*', ...each }))
  const path = `/multi_search?${new URLSearchParams(query)}`
  expect(await call('POST', path, { body: { union: true, searches } })).toEqual([200, error])
})
