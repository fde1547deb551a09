/** What comes first where the words fit equally well, and stars in lists of fields to highlight. */
import { beforeAll, describe, expect, it } from 'vitest'
import { idsOf, makeCollection, type TestCollection } from './make-collection'

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

describe('however many documents match', () => {
  const COUNT = 420
  const TITLES = ['film', 'cling film', 'films', 'a filmed play', 'filmography', 'plays', 'the last film']
  const documents = Array.from({ length: COUNT }, (_, n) => ({
    id: `d${n}`,
    n,
    title: TITLES[(n * 5) % TITLES.length]!,
    text: TITLES[(n * 5) % TITLES.length] === 'plays' ? 'a film about it' : 'x',
    points: n % 3,
    reviews: (n * 37) % COUNT,
    kind: `k${n % 4}`,
  }))
  const words = { q: 'film', query_by: 'title,text', num_typos: '0' }
  let films: TestCollection
  /** Of each document how well it fits, as few matches tell it. */
  const scores = new Map<string, bigint>()

  beforeAll(async () => {
    const numbers = ['n', 'points', 'reviews'].map((name) => ({ name, type: 'int32' }))
    const texts = ['title', 'text'].map((name) => ({ name, type: 'string' }))
    films = await makeCollection(
      [...texts, ...numbers, { name: 'kind', type: 'string', facet: true }],
      documents,
    )
    for (let from = 0; from < COUNT; from += 60) {
      const filter = `n:>=${from} && n:<${from + 60}`
      const { hits } = await films.search({ ...words, filter_by: filter, per_page: '60' })
      for (const { document, text_match_info: info } of hits!) {
        scores.set(document.id as string, BigInt(String(info!.score)))
      }
    }
    expect(scores.size).toBe(COUNT)
  })

  type Row = (typeof documents)[number]
  const better = (a: Row, b: Row) => Number(scores.get(b.id)! - scores.get(a.id)!)
  const newest = (a: Row, b: Row) => b.n - a.n
  const more = (key: 'points' | 'reviews') => (a: Row, b: Row) => b[key] - a[key]

  it.each<[string, ((a: Row, b: Row) => number)[]]>([
    ['points:desc', [more('points'), better]],
    ['points:asc,_text_match:desc,reviews:desc', [(a, b) => a.points - b.points, better, more('reviews')]],
    ['points:desc,_text_match:asc', [more('points'), (a, b) => better(b, a)]],
    ['reviews:desc', [more('reviews')]],
    ['_text_match:desc,reviews:desc', [better, more('reviews')]],
    ['_text_match:asc,reviews:desc', [(a, b) => better(b, a), more('reviews')]],
  ])('orders them all, and tells of each how well it fits: %s', async (sort, keys) => {
    const expected = documents.toSorted((a, b) =>
      [...keys, newest].reduce((order, key) => order || key(a, b), 0),
    )
    for (const per of [10, 70, 250]) {
      for (let page = 1; page * per - per < COUNT; page++) {
        const { hits, found } = await films.search({
          ...words,
          sort_by: sort,
          page: `${page}`,
          per_page: `${per}`,
        })
        expect(found).toBe(COUNT)
        const shown = hits!.map(({ document, text_match_info: info }) => [
          document.id,
          BigInt(String(info!.score)),
        ])
        const wanted = expected.slice(page * per - per, page * per)
        expect(shown).toEqual(wanted.map(({ id }) => [id, scores.get(id)]))
      }
    }
  })

  it('shows the best of each group', async () => {
    const order = '_text_match:desc,reviews:desc'
    const { grouped_hits: groups } = await films.search({
      ...words,
      sort_by: order,
      group_by: 'kind',
      group_limit: '5',
    })
    for (const {
      group_key: [kind],
      hits,
    } of groups!) {
      const own = documents.filter((each) => each.kind === kind)
      const best = own.toSorted((a, b) => better(a, b) || more('reviews')(a, b)).slice(0, 5)
      expect(hits.map(({ document }) => document.id)).toEqual(best.map(({ id }) => id))
    }
    expect(groups).toHaveLength(4)
  })
})
