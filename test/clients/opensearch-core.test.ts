/** Cases of the core slice by their numbers in the contract: bulk, errors, settings and feedback, over a real socket. */
import { expect, test } from 'vitest'
import { KEY, unique, url } from './harness'
import { call, connect, presidents } from './opensearch-api'

const lines = (...values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('')

const bulk = async (text: string, method = 'POST', path = '/_bulk') => {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/x-ndjson' },
    body: text,
  })
  // biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
  return { status: response.status, body: (await response.json()) as any }
}

test('D1: tells a client what this is, and HEAD that it is there', async () => {
  const { body } = await connect().info()
  expect([body.version.distribution, body.tagline]).toEqual([
    'opensearch',
    'The OpenSearch Project: https://opensearch.org/',
  ])
  const head = await fetch(url, { method: 'HEAD', headers: { authorization: `Bearer ${KEY}` } })
  expect([head.status, await head.text()]).toEqual([200, ''])
})

test('D2, D3: a bulk makes its index, and each item tells for itself', async () => {
  const index = unique('bulk')
  const { body: made } = await bulk(lines({ create: { _index: index, _id: '1' } }, { title: 'a' }))
  expect(made).toMatchObject({ errors: false, items: [{ create: { status: 201, result: 'created' } }] })
  const { body: gone } = await bulk(lines({ delete: { _id: 'none' } }), 'PUT', `/${index}/_bulk`)
  expect(gone).toMatchObject({ errors: false, items: [{ delete: { status: 404, result: 'not_found' } }] })
  const { body: mixed } = await connect().bulk({
    index,
    refresh: true,
    body: [{ index: { _id: '' } }, { a: 1 }, { index: { _id: 'id' } }, { a: 2 }, { index: {} }, { a: 3 }],
  })
  expect(mixed).toMatchObject({
    errors: true,
    items: [
      { index: { status: 400, error: { reason: 'if _id is specified it must not be empty' } } },
      { index: { status: 201 } },
      { index: { status: 201 } },
    ],
  })
  expect((await connect().count({ index })).body.count).toBe(3)
})

test.each([
  ['D4', '{"index":{"_index":"x"}}\n{}\n{}\n', 'Malformed action/metadata line [3], expected FIELD_NAME'],
  ['D5', '{"index":{"_index":"x"}}\n{}', 'The bulk request must be terminated by a newline'],
])('%s: a malformed bulk is refused whole', async (_, text, reason) => {
  const { status, body } = await bulk(text)
  expect([status, body.error.type, body.error.reason]).toEqual([
    400,
    'illegal_argument_exception',
    expect.stringContaining(reason),
  ])
})

test('D9, D10: an index is made once, and one that is missing is named', async () => {
  const index = unique('twice')
  await connect().indices.create({ index })
  await expect(connect().indices.create({ index })).rejects.toMatchObject({
    statusCode: 400,
    meta: { body: { error: { type: 'resource_already_exists_exception', index } } },
  })
  const missing = unique('missing')
  await expect(connect().search({ index: missing })).rejects.toMatchObject({
    statusCode: 404,
    meta: {
      body: {
        error: { type: 'index_not_found_exception', reason: `no such index [${missing}]`, index: missing },
      },
    },
  })
})

test('D11: searches by one field and several, in pages, with parts of the source', async () => {
  const index = await presidents()
  const find = async (body: Record<string, unknown>, more: Record<string, unknown> = {}) =>
    (await connect().search({ index, ...more, body: body as never })).body.hits.hits
  expect(await find({ query: { match: { text: 'lincoln' } } })).toMatchObject([{ _id: '1' }])
  const both = { multi_match: { query: 'Lincoln Term', fields: ['title^2', 'text'] } }
  expect((await find({ query: both })).map(({ _id }) => _id).sort()).toEqual(['1', '3'])
  expect(await find({ query: { match_all: {} } }, { size: 2 })).toHaveLength(2)
  expect(await find({ query: { match_all: {} }, size: 2, from: 2 })).toHaveLength(1)
  const [titled] = await find({ query: { match: { text: 'lincoln' } }, _source: ['title'] })
  expect(titled?._source).toEqual({ title: 'Lincoln' })
  const [bare] = await find({ query: { match: { text: 'lincoln' } }, _source: false })
  expect(bare).not.toHaveProperty('_source')
})

test('D13: an unknown query is named', async () => {
  const index = await presidents()
  const foo = connect().search({ index, body: { query: { foo: {} } } as never })
  await expect(foo).rejects.toMatchObject({
    statusCode: 400,
    meta: { body: { error: { type: 'parsing_exception', reason: 'unknown query [foo]' } } },
  })
})

test('D14: paths, methods and types of content that there are not', async () => {
  const nowhere = await call('GET', '/nope/_nope/nope')
  expect(nowhere).toEqual({
    status: 400,
    body: { error: 'no handler found for uri [/nope/_nope/nope] and method [GET]' },
  })
  const index = await presidents()
  const headers = { authorization: `Bearer ${KEY}` }
  const patched = await fetch(`${url}/${index}`, { method: 'PATCH', headers })
  expect([patched.status, patched.headers.get('allow')]).toEqual([405, 'DELETE, GET, PUT'])
  const untyped = await fetch(`${url}/${index}/_search`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'text/plain' },
    body: '{}',
  })
  expect([untyped.status, await untyped.json()]).toEqual([
    406,
    { error: 'Content-Type header [text/plain] is not supported', status: 406 },
  ])
})

test('D15: settings come nested or dotted, and are shown either way', async () => {
  const { cluster } = connect()
  const name = 'plugins.ml_commons.only_run_on_ml_node'
  const nested = { plugins: { ml_commons: { only_run_on_ml_node: 'false' } } }
  const { body: first } = await cluster.putSettings({ body: { persistent: nested } })
  expect(first).toEqual({ acknowledged: true, persistent: nested, transient: {} })
  const { body: second } = await cluster.putSettings({ body: { persistent: { [name]: true } } })
  expect(second.persistent).toEqual({ plugins: { ml_commons: { only_run_on_ml_node: 'true' } } })
  const { body: flat } = await cluster.getSettings({ flat_settings: true })
  expect(flat.persistent).toMatchObject({ [name]: 'true' })
  await cluster.putSettings({ body: { persistent: { [name]: null } } })
  expect((await cluster.getSettings({ flat_settings: true })).body.persistent).not.toHaveProperty([name])
})

test('D17: feedback is kept beside its message', async () => {
  const index = unique('feedback')
  const api = connect()
  await api.indices.create({ index, body: { mappings: { properties: { thumb: { type: 'keyword' } } } } })
  const update = { doc: { thumb: 'up' }, doc_as_upsert: true }
  expect((await api.update({ index, id: 'm1', body: update })).body.result).toBe('created')
  expect((await api.update({ index, id: 'm1', body: update })).body.result).toBe('noop')
  expect((await api.get({ index, id: 'm1' })).body).toMatchObject({ found: true, _source: { thumb: 'up' } })
  await expect(api.get({ index, id: 'm2' })).rejects.toMatchObject({
    statusCode: 404,
    meta: { body: { _index: index, _id: 'm2', found: false } },
  })
})
