/** What comes first where the words fit equally well, and stars in lists of fields to highlight. */
import { expect, it } from 'vitest'
import { idsOf, makeCollection } from './make-collection'

const DOCUMENTS = [
  { id: 'long', title: 'A lamp for the desk in the hall upstairs', n: 5 },
  { id: 'short', title: 'A lamp', n: 5 },
  { id: 'new', title: 'A lamp for the desk in the old hall', n: 5 },
  { id: 'first', title: 'The lamp', n: 9 },
]
const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'n', type: 'int32' },
]

it('puts the newest first where the keys of an order are equal', async () => {
  const lamps = await makeCollection(FIELDS, DOCUMENTS)
  const find = async (more = {}) => idsOf(await lamps.search({ q: 'lamp', query_by: 'title', ...more }))
  expect(await find({ sort_by: '_text_match:desc,n:desc' })).toEqual(['first', 'new', 'short', 'long'])
  // Without an order, of documents that fit equally well the one that says little else comes first.
  expect((await find()).at(0)).not.toBe('long')
  const popular = await makeCollection(FIELDS, DOCUMENTS, { default_sorting_field: 'n' })
  expect(idsOf(await popular.search({ q: 'lamp', query_by: 'title' }))).toEqual([
    'first',
    'new',
    'short',
    'long',
  ])
})

it('puts the newest of equals into the better bucket', async () => {
  const lamps = await makeCollection(
    FIELDS,
    ['a', 'b', 'c', 'd'].map((id, at) => ({ id, title: 'The lamp', n: at === 2 ? 1 : 5 })),
  )
  const find = async (buckets: string) =>
    idsOf(
      await lamps.search({ q: 'lamp', query_by: 'title', sort_by: `_text_match(${buckets}):desc,n:desc` }),
    )
  expect(await find('bucket_size: 2')).toEqual(['d', 'c', 'b', 'a'])
  expect(await find('buckets: 2')).toEqual(['d', 'c', 'b', 'a'])
  expect(await find('buckets: 1')).toEqual(['d', 'b', 'a', 'c'])
})

it('puts a list with all words before words in several fields, also where its values have one each', async () => {
  const people = await makeCollection(
    ['best', 'other'].map((name) => ({ name, type: 'string[]' })),
    [
      { id: 'one field', best: ['golang', 'vue', 'react'], other: ['docker', 'elixir'] },
      { id: 'two fields', best: ['golang', 'react'], other: ['docker', 'vue'] },
    ],
  )
  const reply = await people.search({ q: 'golang vue', query_by: 'best,other' })
  expect(idsOf(reply)).toEqual(['one field', 'two fields'])
})

it('takes weights without fields to search, where every document is a match', async () => {
  const lamps = await makeCollection(FIELDS, DOCUMENTS)
  expect(idsOf(await lamps.search({ q: '*', query_by_weights: '2,1' }))).toHaveLength(4)
})

it('pages through many equal documents without losing one', async () => {
  const ids = Array.from({ length: 150 }, (_, number) => String(number))
  const many = await makeCollection(
    FIELDS,
    ids.map((id) => ({ id, title: `lamp ${'x '.repeat(Number(id) % 7)}`, n: Number(id) % 2 })),
  )
  const found: string[] = []
  for (let page = 1; page <= 5; page++) {
    const params = { q: 'lamp', query_by: 'title', sort_by: '_text_match:desc,n:desc', page: String(page) }
    found.push(...idsOf(await many.search({ ...params, per_page: '30' })))
  }
  expect(found.toSorted()).toEqual(ids.toSorted())
  // The whole text first, then by n, and the newest first.
  const whole = ids.filter((id) => Number(id) % 7 === 0).map(Number)
  const inOrder = whole.toSorted((a, b) => (b % 2) - (a % 2) || b - a).map(String)
  expect(found.slice(0, inOrder.length)).toEqual(inOrder)
})

it('highlights the fields that a star stands for', async () => {
  const fields = ['user.name', 'user.city', 'title'].map((name) => ({ name, type: 'string' }))
  const people = await makeCollection(
    [{ name: 'user', type: 'object' }, ...fields],
    [{ id: '1', title: 'Rome', user: { name: 'Roma', city: 'Rome' } }],
    { enable_nested_fields: true },
  )
  const marked = async (more: Record<string, string>) => {
    const { hits } = await people.search({ q: 'rome', query_by: 'title,user', num_typos: '0', ...more })
    return hits![0]!.highlights.map(({ field, value }) => [field, value])
  }
  expect(await marked({ highlight_fields: 'user*' })).toEqual([['user.city', undefined]])
  expect(await marked({ highlight_full_fields: 'user.c*' })).toEqual([
    ['title', undefined],
    ['user.city', '<mark>Rome</mark>'],
  ])
})
