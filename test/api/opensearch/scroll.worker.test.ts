/** `?scroll=` and `_search/scroll`: all hits, page by page. */
import { beforeAll, describe, expect, it } from 'vitest'
import { historySchema } from '../../history-schema'
import { ask, setStage } from '../parley/stage'
import { call } from '../typesense/api'
import { fill, idsOf, indexName, request } from './api'

describe('scrolling', () => {
  const index = indexName('scrolled')
  const IDS = Array.from({ length: 25 }, (_, n) => `d${n}`)
  type Page = {
    _scroll_id: string
    hits: { total: { value: number }; hits: { _id: string; _source: unknown }[] }
  }

  beforeAll(async () => {
    await fill(
      index,
      Object.fromEntries(IDS.map((id, n) => [id, { n, text: n % 2 ? 'odd stone' : 'even stone' }])),
    )
  })

  const begin = async (body: unknown): Promise<Page> => {
    const [status, page] = await request('POST', `/${index}/_search?scroll=10m`, body)
    expect([status, page.error]).toEqual([200, undefined])
    return page
  }

  /** The ids of all pages. @param between runs after each page */
  const all = async (first: Page, between?: (page: Page) => Promise<unknown>): Promise<string[]> => {
    const ids: string[] = []
    for (let page = first; page.hits.hits.length > 0; ) {
      ids.push(...page.hits.hits.map(({ _id }) => _id))
      await between?.(page)
      page = (await request('POST', '/_search/scroll', { scroll_id: page._scroll_id, scroll: '10m' }))[1]
    }
    return ids
  }

  it('goes through all documents, as Sycamore and helpers.scan do', async () => {
    const first = await begin({ query: { match_all: {} }, size: 10 })
    expect(first.hits.total.value).toBe(25)
    expect(first.hits.hits).toHaveLength(10)
    expect(await all(first)).toEqual(IDS)
    expect(await all(await begin({ sort: '_doc', size: 7, query: { match: { text: 'odd' } } }))).toHaveLength(
      12,
    )
    expect(await request('DELETE', '/_search/scroll', { scroll_id: [first._scroll_id] })).toEqual([
      200,
      { succeeded: true, num_freed: 1 },
    ])
  })

  it('shows of each document what the first request asked for', async () => {
    const [, page] = await request('POST', `/${index}/_search?scroll=1m&size=1&_source_includes=n`, {})
    expect(page.hits.hits[0]._source).toEqual({ n: 0 })
    const [, next] = await request('GET', `/_search/scroll?scroll_id=${page._scroll_id}`)
    expect(next.hits.hits).toEqual([expect.objectContaining({ _id: 'd1', _source: { n: 1 } })])
  })

  it('passes no document over while those that were read are removed', async () => {
    const copy = indexName('scrolled')
    await fill(copy, Object.fromEntries(IDS.map((id, n) => [id, { n }])))
    const [, first] = await request('POST', `/${copy}/_search?scroll=1m`, { size: 4 })
    const ids = await all(first, ({ hits }) =>
      Promise.all(hits.hits.map(({ _id }) => request('DELETE', `/${copy}/_doc/${_id}`))),
    )
    expect(ids).toEqual(IDS)
  })

  it('keeps the order of a search that ranks or sorts', async () => {
    const sorted = await all(await begin({ sort: [{ n: 'desc' }], size: 10 }))
    expect(sorted).toEqual(IDS.toReversed())
    const ranked = await begin({ query: { match: { text: 'odd stone' } }, size: 20 })
    const [, once] = await request('POST', `/${index}/_search`, {
      query: { match: { text: 'odd stone' } },
      size: 25,
    })
    expect(await all(ranked)).toEqual(once.hits.hits.map(({ _id }: { _id: string }) => _id))
  })

  it('refuses what it cannot do, and another index than the key may search', async () => {
    const refused = async (query: string, body: unknown) =>
      (await request('POST', `/${index}/_search${query}`, body))[1].error.reason
    expect(await refused('?scroll=soon', {})).toContain('[soon] as a time value')
    expect(await refused('?scroll=1m', { from: 3 })).toContain('must be set to 0')
    const [status, { error }] = await request('POST', '/_search/scroll', { scroll_id: 'bm90aGluZw==' })
    expect([status, error.type]).toEqual([404, 'search_context_missing_exception'])
    const { _scroll_id } = await begin({ size: 1 })
    const statusWith = async (collections: string[]): Promise<number> => {
      const [, { value }] = await call('POST', '/keys', {
        body: { description: 'scrolls', actions: ['documents:search'], collections },
      })
      return (await request('POST', '/_search/scroll', { scroll_id: _scroll_id }, value))[0]
    }
    expect(await statusWith([index])).toBe(200)
    expect(await statusWith(['another-.*'])).toBe(401)
  })

  it.each([
    ['[hybrid]', '', { query: { hybrid: { queries: [{ match: { text: 'odd' } }] } } }],
    ['[search_pipeline]', '&search_pipeline=p', {}],
    ['[aggs]', '', { aggs: { most: { max: { field: 'n' } } } }],
    ['[min_score]', '', { min_score: 2 }],
    ['[track_total_hits: false]', '', { track_total_hits: false }],
    ['[highlight]', '', { highlight: { fields: { text: {} } } }],
  ])('refuses %s', async (name, query, body) => {
    const [status, { error }] = await request('POST', `/${index}/_search?scroll=1m${query}`, body)
    expect([status, error.reason]).toEqual([400, expect.stringContaining(name)])
  })

  it('runs no pipeline, and says so of an index that has one by default', async () => {
    const piped = indexName('piped')
    await request('PUT', `/${piped}`, { settings: { 'index.search.default_pipeline': 'p' } })
    const statusOf = async (query: string) =>
      (await request('POST', `/${piped}/_search?scroll=1m${query}`, {}))[0]
    expect([await statusOf(''), await statusOf('&search_pipeline=_none')]).toEqual([400, 200])
  })

  it('takes `from=0` and `size` of the address, and ends', async () => {
    const path = `/${index}/_search?scroll=1m&from=0&size=10&sort=n:asc`
    expect(await all((await request('GET', path))[1])).toEqual(IDS)
  })

  it('goes backwards, and by another key after `_doc`', async () => {
    expect(await all(await begin({ sort: [{ _doc: 'desc' }], size: 10 }))).toEqual(IDS.toReversed())
    const first = await begin({ sort: ['_doc', { n: 'asc' }], size: 1 })
    expect(first.hits.hits[0]).toMatchObject({ sort: [null, 0] })
    const [status] = await request('POST', `/${index}/_search?scroll=1m`, { sort: ['_doc', 'nowhere'] })
    expect(status).toBe(400)
  })

  it.each([
    { match: { text: 'odd cliff' } },
    { match_phrase: { text: 'odd stone' } },
    { match: { text: { query: 'stine', fuzziness: 1 } } },
  ])('finds what the search finds where `_doc` sorts: %j', async (query) => {
    const found = await idsOf(index, query, { sort: '_doc' })
    expect(found.length).toBeGreaterThan(11)
    expect(await all(await begin({ query, sort: '_doc', size: 7 }))).toEqual(found)
  })

  it('counts as a number where `rest_total_hits_as_int` asks for it', async () => {
    const asInt = 'rest_total_hits_as_int=true'
    for (const sort of [undefined, ['n']]) {
      const [, page] = await request('POST', `/${index}/_search?scroll=1m&${asInt}`, { size: 2, sort })
      expect(page.hits.total).toBe(25)
      const [, next] = await request('POST', `/_search/scroll?${asInt}`, { scroll_id: page._scroll_id })
      expect(next.hits.total).toBe(25)
      const [, other] = await request('POST', '/_search/scroll', { scroll_id: page._scroll_id })
      expect(other.hits.total).toEqual({ value: 25, relation: 'eq' })
    }
  })

  it('takes an id in the path as it is, and nothing else than it knows', async () => {
    expect((await request('DELETE', '/_search/scroll/%25'))[0]).toBe(200)
    expect((await request('GET', '/_search/scroll/%25'))[0]).toBe(404)
    const { _scroll_id: scroll_id } = await begin({ size: 1 })
    const [status, { error }] = await request('POST', '/_search/scroll', { scroll_id, size: 5 })
    expect([status, error.reason]).toEqual([400, expect.stringContaining('[size]')])
  })

  it('fills its pages, however long the documents are', async () => {
    const long = indexName('long')
    const ids = Array.from({ length: 40 }, (_, n) => `d${n}`)
    await fill(long, Object.fromEntries(ids.map((id) => [id, { text: 'word '.repeat(2_000) }])))
    const [, page] = await request('POST', `/${long}/_search?scroll=1m`, { size: 38 })
    expect(page.hits.hits).toHaveLength(38)
    const [, rest] = await request('POST', '/_search/scroll', { scroll_id: page._scroll_id })
    expect(rest.hits.hits).toHaveLength(2)
  })
})

/** What an id says, and an id that says something else. */
const forged = (said: Record<string, unknown>, id?: string): string =>
  btoa(
    JSON.stringify({
      ...(id !== undefined && JSON.parse(atob(id.replace(/-/g, '+').replace(/_/g, '/')))),
      ...said,
    }),
  )

describe('a scroll of many sorted hits', () => {
  const index = indexName('many')

  beforeAll(async () => {
    for (let from = 0; from < 10_050; from += 3_350) {
      const numbers = Array.from({ length: 3_350 }, (_, n) => from + n)
      await fill(index, Object.fromEntries(numbers.map((n) => [`d${n}`, { n }])))
    }
  }, 60_000)

  /** The first id on the page after so many hits, the length of the page, and the status. */
  const pageAt = async (at: number, query: Record<string, unknown>) => {
    const total = query.range === undefined ? 10_050 : 9_500
    const body = { query, sort: [{ n: 'asc' }], size: 4_000, _source: false }
    const [status, { hits }] = await request('POST', '/_search/scroll', {
      scroll_id: forged({ index, body, query: {}, at, total }),
    })
    return [status, hits?.hits[0]?._id, hits?.hits.length]
  }

  it('ends with an empty page, wherever it ends', async () => {
    const query = { range: { n: { lt: 9_500 } } }
    expect(await pageAt(8_000, query)).toEqual([200, 'd8000', 1_500])
    expect(await pageAt(9_500, query)).toEqual([200, undefined, 0])
  })

  it('reaches 10,000 hits, and says that there are more', async () => {
    const query = { match_all: {} }
    expect(await pageAt(8_000, query)).toEqual([200, 'd8000', 2_000])
    expect((await pageAt(10_000, query))[0]).toBe(400)
  })
})

describe('a forged id', () => {
  const shaped = indexName('shaped')
  const MESSAGE = { conversation_id: 'c', model_id: 'm', role: 'user', message: 'secret', timestamp: 1 }
  const keyOf = async (collections: string[]): Promise<string> => {
    const body = { description: 'scrolls', actions: ['documents:search'], collections }
    return (await call('POST', '/keys', { body }))[1].value
  }
  const read = async (index: string, key: string, body: Record<string, unknown> = {}) => {
    const scroll_id = forged({ index, body, query: {}, at: 0, total: 0 })
    const [status, { hits }] = await request('POST', '/_search/scroll', { scroll_id }, key)
    return [status, hits?.hits.length]
  }

  beforeAll(async () => {
    await setStage()
    expect((await ask())[0]).toBe(200)
    await call('PUT', '/aliases/talks', { body: { collection_name: 'history' } })
    await call('POST', '/collections', { body: historySchema(shaped) })
    await fill(shaped, { a: MESSAGE })
  })

  it.each(['history', 'talks', shaped])('opens %s to no key that only searches everything', async (index) => {
    const key = await keyOf(['*'])
    expect((await request('POST', `/${index}/_search`, {}, key))[0]).toBe(401)
    expect((await request('POST', `/${index}/_search?scroll=1m`, {}, key))[0]).toBe(401)
    expect(await read(index, key)).toEqual([401, undefined])
    expect(await read(index, key, { size: 0 })).toEqual([401, undefined])
    expect(await read(index, key, { query: { exists: { field: 'timestamp' } }, sort: ['_doc'] })).toEqual([
      401,
      undefined,
    ])
  })

  it('reads what the key names', async () => {
    expect(await read('history', await keyOf(['history']))).toEqual([200, 2])
    expect(await read(shaped, await keyOf([shaped]))).toEqual([200, 1])
    expect(await read(shaped, await keyOf(['history']))).toEqual([401, undefined])
  })

  it.each([{ at: -1 }, { at: 0.5 }, { at: 1e300 }, { index: 1 }, { query: { size: 1 } }, { total: 'x' }])(
    'that says %j is none',
    async (said) => {
      const scroll_id = forged({ index: shaped, body: {}, query: {}, at: 0, total: 0, ...said })
      expect((await request('POST', '/_search/scroll', { scroll_id }))[0]).toBe(404)
    },
  )
})
