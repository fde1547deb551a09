/** The official client of OpenSearch, over a real socket. */
import { Client, errors } from '@opensearch-project/opensearch'
import { describe, expect, test } from 'vitest'
import { KEY, request, SHOWS, client as typesense, unique, url } from './harness'
import { getWith } from './opensearch-api'

const connect = (options: Record<string, unknown> = {}): Client =>
  new Client({ node: url, auth: { username: 'admin', password: KEY }, maxRetries: 0, ...options })

/** An index of shows, made by a bulk without a mapping. */
async function createShows(): Promise<string> {
  const index = unique('os-shows')
  const body = SHOWS.flatMap(({ id, ...show }) => [{ index: { _id: id } }, show])
  const { body: reply } = await connect().bulk({ index, body })
  expect(reply).toMatchObject({ errors: false, items: SHOWS.map(() => ({ index: { status: 201 } })) })
  return index
}

describe('the client', () => {
  test('learns what this is', async () => {
    const { body } = await connect().info()
    expect(body.version.distribution).toBe('opensearch')
    expect(body.tagline).toBe('The OpenSearch Project: https://opensearch.org/')
    expect((await connect().ping()).statusCode).toBe(200)
    expect((await connect().cluster.health()).body.status).toBe('green')
  })

  test('is told of a wrong key by a ResponseError', async () => {
    const stranger = connect({ auth: { username: 'admin', password: 'wrong' } })
    const error = await stranger.info().catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(errors.ResponseError)
    expect(error).toMatchObject({
      statusCode: 401,
      meta: { body: { error: { type: 'security_exception' } } },
    })
  })

  test('keeps an index from its making to its end', async () => {
    const index = unique('os-index')
    const { indices } = connect()
    const properties = { title: { type: 'text' as const }, kind: { type: 'keyword' as const } }
    await indices.create({ index, body: { mappings: { properties } } })
    expect((await indices.exists({ index })).body).toBe(true)
    await expect(indices.create({ index })).rejects.toThrow(/resource_already_exists_exception/)
    await indices.putMapping({ index, body: { properties: { year: { type: 'integer' } } } })
    const { body } = await indices.getMapping({ index })
    expect(body[index]?.mappings.properties).toEqual({ ...properties, year: { type: 'integer' } })
    const { body: rows } = await connect().cat.indices({ index, format: 'json' })
    expect(rows).toMatchObject([{ index, 'docs.count': '0' }])
    await indices.delete({ index })
    expect((await indices.exists({ index })).body).toBe(false)
    await expect(connect().search({ index })).rejects.toMatchObject({ statusCode: 404 })
  })

  test('writes, reads, updates and deletes a document', async () => {
    const index = unique('os-docs')
    const api = connect()
    const { body: made } = await api.index({ index, id: 'ä/1 b', body: { title: 'Grüße 🐟', id: 7 } })
    expect(made).toMatchObject({ _id: 'ä/1 b', result: 'created' })
    expect((await api.get({ index, id: 'ä/1 b' })).body._source).toEqual({ title: 'Grüße 🐟', id: 7 })
    await api.update({ index, id: 'ä/1 b', body: { doc: { year: 1 } } })
    expect((await api.getSource({ index, id: 'ä/1 b' })).body).toEqual({ title: 'Grüße 🐟', id: 7, year: 1 })
    expect((await api.exists({ index, id: 'none' })).body).toBe(false)
    await expect(api.get({ index, id: 'none' })).rejects.toMatchObject({ statusCode: 404 })
    await api.delete({ index, id: 'ä/1 b' })
    expect((await api.count({ index })).body.count).toBe(0)
  })

  test('searches what it has written, and what Typesense has', async () => {
    const index = await createShows()
    const { body } = await connect().search({
      index,
      body: {
        query: {
          bool: { must: { match: { overview: 'action series' } }, filter: { range: { points: { gt: 80 } } } },
        },
        highlight: { fields: { overview: {} } },
      },
    })
    expect(body.hits.hits).toMatchObject([
      { _index: index, _id: 'salvage', _source: { title: 'Starship Salvage' } },
    ])
    expect(body.hits.hits[0]?.highlight?.overview?.[0]).toContain('<em>action</em>')
    const found = await typesense()
      .collections(index)
      .documents()
      .search({ q: 'coral', query_by: 'overview' })
    expect(found.hits?.map(({ document }) => (document as { id: string }).id)).toEqual(['reef'])
    const { body: both } = await connect().msearch({
      body: [{ index }, { query: { match_all: {} } }, { index }, { size: 0 }],
    })
    expect(both.responses.map(({ status }) => status)).toEqual([200, 200])
  })

  test('searches several indices at once', async () => {
    const [one, other] = [await createShows(), await createShows()]
    const api = connect()
    const aggs = { all: { value_count: { field: 'points' } }, most: { max: { field: 'points' } } }
    const most = Math.max(...SHOWS.map(({ points }) => points))
    const asked: object = { sort: [{ points: 'desc' }], aggs }
    for (const index of [[one, other], `${one},${other}`, [`*${one}`, '-os-none*', other]]) {
      const { body } = await api.search({ index, size: 2, body: asked })
      expect(body.hits.hits.map(({ sort: values }) => values)).toEqual([[most], [most]])
      expect(body.aggregations).toEqual({ all: { value: 2 * SHOWS.length }, most: { value: most } })
    }
    const index = [one, other, unique('gone')]
    await expect(api.count({ index })).rejects.toMatchObject({ statusCode: 404 })
    expect((await api.count({ index, ignore_unavailable: true })).body.count).toBe(2 * SHOWS.length)
    expect(Object.keys((await api.indices.getMapping({ index: [one, other] })).body).sort()).toEqual(
      [one, other].sort(),
    )
    const lines = [{ index: [one, other] }, { size: 0 }, { index: `${unique('none')}*` }, {}]
    const { body } = await api.msearch({ body: lines as never })
    const totals = body.responses.map(
      (each) => (each as { hits: { total: { value: number } } }).hits.total.value,
    )
    expect(totals).toEqual([2 * SHOWS.length, 0])
    expect((await api.indices.refresh({ index: [one, other] })).body._shards?.total).toBe(2)
  })

  test('pages through sorted hits by search_after', async () => {
    const index = await createShows()
    const read: unknown[] = []
    for (let after: string[] | undefined; ; ) {
      const sort = [{ points: 'desc' as const }, { _id: 'asc' as const }]
      const asked: object = { size: 2, sort, ...(after && { search_after: after }) }
      const { body } = await connect().search({ index, body: asked })
      expect(body.hits.total).toEqual({ value: SHOWS.length, relation: 'eq' })
      const last = body.hits.hits.at(-1)
      if (last === undefined) break
      read.push(...body.hits.hits.map(({ _id }) => _id))
      after = last.sort as string[]
    }
    const best = SHOWS.toSorted((a, b) => b.points - a.points)
    expect(read).toEqual(best.map(({ id }) => id))
  })

  test.each([undefined, 'gzip'])('imports by its helper, compressed or not: %s', async (compression) => {
    const index = unique('os-bulk')
    const api = connect({ compression })
    const datasource = Array.from({ length: 500 }, (_, number) => ({ number, text: `document ${number}` }))
    const stats = await api.helpers.bulk({
      datasource,
      refreshOnCompletion: true,
      onDocument: ({ number }) => ({ index: { _index: index, _id: String(number) } }),
    })
    expect(stats).toMatchObject({ total: 500, successful: 500, failed: 0 })
    const { body } = await api.search({ index, body: { query: { term: { number: 250 } } } })
    expect(body.hits.hits).toMatchObject([{ _id: '250', _source: datasource[250] }])
    const dropped: unknown[] = []
    await api.helpers.bulk({
      datasource: [{ number: 1 }],
      onDocument: () => ({ create: { _index: index, _id: '1' } }),
      onDrop: ({ status }) => dropped.push(status),
    })
    expect(dropped).toEqual([409])
  })
})

describe('a request as curl makes it', () => {
  test('is a GET with a body', async () => {
    const index = await createShows()
    const body = { query: { term: { 'title.keyword': 'Reef' } }, _source: false }
    expect(await getWith(`/${index}/_search`, body)).toMatchObject({
      status: 200,
      body: { hits: { hits: [{ _index: index, _id: 'reef' }] } },
    })
    expect(await getWith(`/${index}/_search/`, { query: { foo: {} } })).toEqual({
      status: 400,
      body: {
        error: {
          root_cause: [{ type: 'parsing_exception', reason: 'unknown query [foo]' }],
          type: 'parsing_exception',
          reason: 'unknown query [foo]',
        },
        status: 400,
      },
    })
  })

  test('finds the page at / with a browser, and JSON with a key', async () => {
    const page = await fetch(`${url}/`, { headers: { accept: 'text/html' } })
    expect(page.headers.get('content-type')).toContain('text/html')
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
    expect(await page.text()).toContain('<!doctype html>')
    const reply = await request('GET', '/')
    expect([reply.status, reply.contentType]).toEqual([200, 'application/json; charset=UTF-8'])
  })
})
