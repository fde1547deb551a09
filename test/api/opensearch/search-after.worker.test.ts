/** `search_after`: the hits behind those that a page ended with. */
import { beforeAll, describe, expect, it } from 'vitest'
import { fill, indexName, request } from './api'

const index = indexName('stock')

const KINDS = ['axe', 'Bolt', 'cable']
/** 60 documents: each value occurs several times, and every seventh price is missing. */
const DOCUMENTS = Object.fromEntries(
  Array.from({ length: 60 }, (_, at) => [
    `d${(at * 37) % 60}`,
    {
      title: `part ${'of a long machine '.repeat(at % 5)}`,
      kind: KINDS[at % 3],
      size: (at * 7) % 12,
      made: `2024-0${1 + (at % 4)}-15`,
      ...(at % 7 !== 0 && { price: at % 9 }),
    },
  ]),
)

beforeAll(async () => {
  const properties = {
    title: { type: 'text' },
    kind: { type: 'keyword' },
    size: { type: 'integer' },
    price: { type: 'double' },
    made: { type: 'date' },
  }
  const [status] = await request('PUT', `/${index}`, { mappings: { properties } })
  expect(status).toBe(200)
  await fill(index, DOCUMENTS)
})

type Search = Record<string, unknown>

const search = (body: Search, query = '') => request('POST', `/${index}/_search${query}`, body)

const hitsOf = async (body: Search): Promise<{ _id: string; sort: unknown[] }[]> => {
  const [status, answer] = await search(body)
  expect([status, answer.error]).toEqual([200, undefined])
  return answer.hits.hits
}

describe('goes through all hits in their order, each once', () => {
  it.each([
    [['size', '_doc']],
    [[{ size: 'desc' }, { _doc: 'desc' }]],
    [['size', { _id: 'asc' }]],
    [[{ price: 'desc' }, '_id']],
    [[{ price: { order: 'asc', missing: '_first' } }, '_id']],
    [['kind', { size: 'desc' }, '_doc']],
    [[{ made: 'desc' }, '_doc']],
    [['_doc']],
    [[{ _doc: 'desc' }]],
  ])('sorted by %j', async (sort) => {
    const all = (await hitsOf({ sort, size: 100 })).map(({ _id }) => _id)
    expect(all.length).toBe(60)
    const read: string[] = []
    for (let after: unknown[] | undefined; ; ) {
      const page = await hitsOf({ sort, size: 7, ...(after && { search_after: after }) })
      if (page.length === 0) break
      read.push(...page.map(({ _id }) => _id))
      after = page.at(-1)!.sort
    }
    expect(read).toEqual(all)
  })

  it('by the score of words', async () => {
    const body = { query: { match: { title: 'machine' } }, sort: ['_score', '_id'] }
    const all = await hitsOf({ ...body, size: 100 })
    expect(new Set(all.map(({ sort }) => sort[0])).size).toBeGreaterThan(2)
    const rest = await hitsOf({ ...body, size: 100, search_after: all[9]!.sort })
    expect(rest.map(({ _id }) => _id)).toEqual(all.slice(10).map(({ _id }) => _id))
  })
})

it('skips equal hits where nothing parts them, begins anywhere, and tells the total of all', async () => {
  const [, { hits, aggregations }] = await search({
    sort: ['size'],
    search_after: [6.5],
    size: 3,
    aggs: { sizes: { max: { field: 'size' } } },
  })
  expect(hits.total).toEqual({ value: 60, relation: 'eq' })
  expect(hits.hits.map((hit: { sort: unknown[] }) => hit.sort)).toEqual([[7], [7], [7]])
  expect(aggregations.sizes.value).toBe(11)
  expect((await hitsOf({ sort: ['size'], search_after: [7], size: 1 }))[0]!.sort).toEqual([8])
  expect(await hitsOf({ sort: ['size'], search_after: [11] })).toEqual([])
})

it('reads values as hits show them, dates and numbers as texts too', async () => {
  const by = async (sort: unknown[], search_after: unknown[]) =>
    (await hitsOf({ sort, search_after, size: 1 }))[0]?.sort
  const made = Date.parse('2024-02-15')
  expect(await by(['made'], [made])).toEqual([Date.parse('2024-03-15')])
  expect(await by(['made'], ['2024-02-15'])).toEqual([Date.parse('2024-03-15')])
  expect(await by([{ size: 'desc' }], ['4'])).toEqual([3])
  // Strings are sorted whatever their case.
  expect(await by(['kind'], ['AXE'])).toEqual(['Bolt'])
  expect(await by([{ price: 'desc' }], [null])).toBe(undefined)
})

it.each([
  [
    { sort: ['size'], search_after: [3], from: 1 },
    '`from` parameter must be set to 0 when `search_after` is used.',
  ],
  [{ sort: ['size'], search_after: [3, 4] }, 'search_after has 2 value(s) but sort has 1.'],
  [{ search_after: [3] }, 'Sort must contain at least one field.'],
  [{ sort: ['_score'], search_after: [3] }, 'Sort must contain at least one field.'],
  [{ sort: ['size'], search_after: 3 }, '[search_after] takes a list of values'],
  [{ sort: ['size'], search_after: ['big'] }, 'Failed to parse search_after value for field [size].'],
  [{ sort: ['made'], search_after: ['soon'] }, 'Failed to parse search_after value for field [made].'],
  [
    { sort: ['size', '_id'], search_after: [3, 'gone'] },
    'No hit of [search_after] has the [_id] "gone" any more.',
  ],
  [{ sort: ['_id'] }, 'A [sort] by [_id], unless it is the last key'],
  [{ query: { hybrid: { queries: [{ match_all: {} }] } }, search_after: [3] }, '[search_after]'],
])('refuses %j', async (body, reason) => {
  const [status, { error }] = await search(body)
  expect([status, error.root_cause[0].reason]).toEqual([400, expect.stringContaining(reason)])
})

it('refuses it in a scroll', async () => {
  const [status, { error }] = await search({ sort: ['size'], search_after: [3] }, '?scroll=1m')
  expect([status, error.reason]).toEqual([
    400,
    '[search_after] of a search that scrolls is not supported here',
  ])
})
