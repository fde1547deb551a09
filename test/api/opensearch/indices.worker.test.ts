/** Indices, documents and bulk requests in OpenSearch's words. */
import { describe, expect, it } from 'vitest'
import { call, send } from '../typesense/api'
import { fill, idsOf, indexName, request } from './api'

const SHARDS = { total: 1, successful: 1, failed: 0 }
const FIRST = { _version: 1, _seq_no: 0, _primary_term: 1 }
const error = (status: number, type: string, reason: unknown) => [
  status,
  expect.objectContaining({ status, error: expect.objectContaining({ type, reason }) }),
]

describe('GET /', () => {
  const get = async (headers: Record<string, string>, method = 'GET') => {
    const response = await send(method, '/', { key: null, headers })
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      text: await response.text(),
    }
  }

  it('tells a client of OpenSearch what this is', async () => {
    const { status, text } = await get({ authorization: `Basic ${btoa('u:xyz')}` })
    expect(status).toBe(200)
    expect(JSON.parse(text)).toMatchObject({
      version: { distribution: 'opensearch', number: expect.stringMatching(/^2\.1[2-9]/) },
      tagline: 'The OpenSearch Project: https://opensearch.org/',
    })
    expect((await get({ accept: 'application/json' })).status).toBe(401)
    expect((await get({ accept: 'application/json', authorization: 'Bearer no' })).status).toBe(401)
    expect(await get({ authorization: 'Bearer xyz' }, 'HEAD')).toMatchObject({ status: 200, text: '' })
  })

  it.each([{ accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }, {}])(
    'shows a browser the page: %j',
    async (headers) => {
      const { status, type, text } = await get(headers as Record<string, string>)
      expect([status, type]).toEqual([200, expect.stringContaining('text/html')])
      expect(text).toContain('<!doctype html>')
    },
  )
})

describe('an index', () => {
  it('is a collection', async () => {
    const index = indexName()
    expect((await request('GET', `/${index}`))[0]).toBe(404)
    expect((await request('HEAD', `/${index}`))[0]).toBe(404)
    const mappings = {
      properties: { title: { type: 'text' }, at: { properties: { city: { type: 'keyword' } } } },
    }
    await request('PUT', `/${index}`, { mappings, settings: { number_of_shards: 2, index: { knn: true } } })
    expect((await request('HEAD', `/${index}`))[0]).toBe(200)
    expect(await request('GET', `/${index}`)).toEqual([
      200,
      {
        [index]: {
          aliases: {},
          mappings,
          settings: {
            index: expect.objectContaining({
              number_of_shards: '2',
              number_of_replicas: '0',
              knn: 'true',
              provided_name: index,
            }),
          },
        },
      },
    ])
    expect((await call('GET', `/collections/${index}`))[1]).toMatchObject({ name: index, num_documents: 0 })
    expect(await request('PUT', `/${index}`)).toEqual(
      error(
        400,
        'resource_already_exists_exception',
        expect.stringMatching(new RegExp(`^index \\[${index}/.+\\] already exists$`)),
      ),
    )
    expect(await request('DELETE', `/${index}`)).toEqual([200, { acknowledged: true }])
    expect(await request('DELETE', `/${index}`)).toEqual(
      error(404, 'index_not_found_exception', `no such index [${index}]`),
    )
    expect((await call('GET', `/collections/${index}`))[0]).toBe(404)
  })

  it('that another API made is found here, and the other way round', async () => {
    const name = indexName('made')
    await call('POST', '/collections', {
      body: {
        name,
        fields: [
          { name: 'title', type: 'string' },
          { name: 'n', type: 'int32' },
        ],
      },
    })
    await call('POST', `/collections/${name}/documents`, { body: { id: '1', title: 'Slow boats', n: 3 } })
    expect((await request('GET', `/${name}/_mapping`))[1]).toEqual({
      [name]: { mappings: { properties: { title: { type: 'text' }, n: { type: 'integer' } } } },
    })
    expect(await idsOf(name, { match: { title: 'boats' } })).toEqual(['1'])
    await fill(name, { 2: { title: 'Fast boats', n: 4 } })
    const found = await call('GET', `/collections/${name}/documents/search?q=fast&query_by=title`)
    expect(found[1].hits[0].document).toEqual({ id: '2', title: 'Fast boats', n: 4 })
  })

  it.each([
    ['Upper', 'must be lowercase'],
    ['a%20b', 'must not contain'],
    ['-a', 'must not start with'],
  ])('is not made of the name %s', async (name, reason) => {
    expect(await request('PUT', `/${name}`)).toEqual(
      error(400, 'invalid_index_name_exception', expect.stringContaining(reason)),
    )
  })

  it.each([
    [{ settings: { default_pipeline: 'x' } }, 'pipeline with id [x] does not exist'],
    [
      { mappings: { properties: { a: { type: 'percolator' } } } },
      'No handler for type [percolator] declared on field [a]',
    ],
    [
      { mappings: { properties: { a: { type: 'text', copy_to: 'x' } } } },
      'unknown parameter [copy_to] on mapper [a]',
    ],
    [{ mappings: { dynamic: 'strict' } }, '[dynamic: strict]'],
    [
      { mappings: { properties: { v: { type: 'knn_vector', dimension: 2, space_type: 'l1' } } } },
      'The space type [l1]',
    ],
    [{ foo: 1 }, 'unknown key [foo] for create index'],
  ])('is not made of %j', async (body, reason) => {
    const index = indexName()
    const [status, answer] = await request('PUT', `/${index}`, body)
    expect([status, answer.error.reason]).toEqual([400, expect.stringContaining(reason)])
    expect((await request('GET', `/${index}`))[0]).toBe(404)
  })

  it('learns fields from documents and from mappings', async () => {
    const index = indexName()
    await fill(index, { 1: { name: 'Ann', age: 7, score: 1.5, on: true, id: 12, deep: { word: 'x' } } })
    const text = { type: 'text', fields: { keyword: { type: 'keyword', ignore_above: 256 } } }
    expect((await request('GET', `/${index}/_mapping`))[1][index].mappings.properties).toEqual({
      name: text,
      age: { type: 'long' },
      score: { type: 'float' },
      on: { type: 'boolean' },
      id: { type: 'long' },
      deep: { properties: { word: text } },
    })
    const properties = { year: { type: 'integer' }, name: text }
    expect(await request('PUT', `/${index}/_mapping`, { properties })).toEqual([200, { acknowledged: true }])
    await fill(index, { 2: { year: 1999 } })
    expect(await idsOf(index, { range: { year: { gte: 1999 } } })).toEqual(['2'])
    expect(await idsOf(index, { term: { id: 12 } })).toEqual(['1'])
    expect((await request('GET', `/${index}/_doc/1`))[1]._source.id).toBe(12)
    expect(await request('PUT', `/${index}/_mapping`, { properties: { age: { type: 'keyword' } } })).toEqual(
      error(
        400,
        'illegal_argument_exception',
        expect.stringContaining('mapper [age] cannot be changed from type [long]'),
      ),
    )
  })

  it('has one value or a list in a field of text, as the first document has it', async () => {
    const index = indexName()
    await request('PUT', `/${index}`, {
      mappings: { dynamic: false, properties: { tag: { type: 'keyword' } } },
    })
    expect(await idsOf(index, { term: { tag: 'a' } })).toEqual([])
    await fill(index, { 1: { tag: ['a', 'b'], other: 5 } })
    expect(await idsOf(index, { term: { tag: 'b' } })).toEqual(['1'])
    expect(await idsOf(index, { term: { other: 5 } })).toEqual([])
    const [, { items }] = await request('POST', `/${index}/_bulk`, [{ index: {} }, { tag: 'c' }])
    expect(items[0].index).toMatchObject({
      status: 400,
      error: { type: 'mapper_parsing_exception', reason: expect.stringContaining('tag') },
    })
  })

  it('is deleted, listed and aliased with others', async () => {
    const stem = indexName('many')
    for (const end of ['a', 'b', 'c']) await fill(`${stem}-${end}`, { 1: { x: 1 } })
    const add = { add: { index: `${stem}-a`, alias: `${stem}-alias` } }
    expect(await request('POST', '/_aliases', { actions: [add] })).toEqual([200, { acknowledged: true }])
    expect((await request('GET', '/_aliases?pretty'))[1]).toMatchObject({
      [`${stem}-a`]: { aliases: { [`${stem}-alias`]: {} } },
      [`${stem}-b`]: { aliases: {} },
    })
    expect(await idsOf(`${stem}-alias`, { match_all: {} })).toEqual(['1'])
    const rows = (
      await request('GET', `/_cat/indices/${stem}-*?format=json&h=index,docs.count&s=index:desc`)
    )[1]
    expect(rows).toEqual(['c', 'b', 'a'].map((end) => ({ index: `${stem}-${end}`, 'docs.count': '1' })))
    expect((await request('GET', `/_cat/indices/${stem}-a?v`))[1]).toMatch(
      /^health status index .*\ngreen {2}open {3}many/,
    )
    expect(await request('DELETE', `/${stem}-a,${stem}-b*`)).toEqual([200, { acknowledged: true }])
    expect((await request('GET', `/_cat/indices/${stem}-*?format=json`))[1]).toHaveLength(1)
  })

  it('tells of its cluster', async () => {
    expect(await request('GET', '/_cluster/health')).toMatchObject([
      200,
      { status: 'green', timed_out: false, number_of_nodes: 1 },
    ])
    expect(await request('GET', '/_cluster/settings')).toEqual([200, { persistent: {}, transient: {} }])
    expect(await request('PUT', '/_cluster/settings', { persistent: { a: { b: 1 } } })).toEqual(
      error(400, 'illegal_argument_exception', 'persistent setting [a.b], not recognized'),
    )
    expect(await request('GET', '/_refresh')).toEqual([200, { _shards: SHARDS }])
  })
})

describe('a document', () => {
  it('is made, replaced, read and deleted', async () => {
    const index = indexName()
    const path = `/${index}/_doc/1`
    const written = { _index: index, _id: '1', ...FIRST, _shards: SHARDS }
    expect(await request('PUT', path, { a: 1, b: [1, 2] })).toEqual([201, { ...written, result: 'created' }])
    expect(await request('PUT', path, { a: 2 })).toEqual([200, { ...written, result: 'updated' }])
    expect(await request('GET', path)).toEqual([
      200,
      { _index: index, _id: '1', ...FIRST, found: true, _source: { a: 2 } },
    ])
    expect((await request('HEAD', path))[0]).toBe(200)
    expect(await request('GET', `/${index}/_source/1`)).toEqual([200, { a: 2 }])
    // The same path, written otherwise.
    expect((await request('PUT', `/${index}/%5Fcreate/1`, { a: 4 }))[0]).toBe(409)
    expect(await request('PUT', `/${index}/_create/1`, { a: 3 })).toEqual(
      error(409, 'version_conflict_engine_exception', expect.stringContaining('[1]: version conflict')),
    )
    expect((await request('PUT', `${path}?op_type=create`, { a: 3 }))[0]).toBe(409)
    expect(await request('GET', `/${index}/_doc/2`)).toEqual([404, { _index: index, _id: '2', found: false }])
    expect(await request('DELETE', path)).toEqual([200, { ...written, result: 'deleted' }])
    expect(await request('DELETE', path)).toEqual([404, { ...written, result: 'not_found' }])
    const [status, { _id }] = await request('POST', `/${index}/_doc`, { a: 4 })
    expect([status, _id]).toEqual([201, expect.stringMatching(/^[\w-]{20}$/)])
    expect((await request('POST', `/${index}/_mget`, { ids: [_id, 'x'] }))[1].docs).toEqual([
      { _index: index, _id, ...FIRST, found: true, _source: { a: 4 } },
      { _index: index, _id: 'x', found: false },
    ])
  })

  it('is updated in parts', async () => {
    const index = indexName()
    const update = (id: string, body: unknown) => request('POST', `/${index}/_update/${id}`, body)
    expect(await update('1', { doc: { a: 1 } })).toEqual(
      error(404, 'index_not_found_exception', expect.anything()),
    )
    expect(await update('1', { doc: { a: 1, o: { x: 1 } }, doc_as_upsert: true })).toMatchObject([
      201,
      { result: 'created' },
    ])
    expect(await update('1', { doc: { o: { y: 2 } }, doc_as_upsert: true })).toMatchObject([
      200,
      { result: 'updated' },
    ])
    expect(await update('1', { doc: { o: { x: 1 } } })).toMatchObject([200, { result: 'noop' }])
    expect(await update('2', { doc: { a: 9 }, upsert: { a: 5 } })).toMatchObject([201, { result: 'created' }])
    expect((await request('GET', `/${index}/_source/1`))[1]).toEqual({ a: 1, o: { x: 1, y: 2 } })
    expect((await request('GET', `/${index}/_source/2`))[1]).toEqual({ a: 5 })
    expect(await update('3', { doc: { a: 1 } })).toEqual(
      error(404, 'document_missing_exception', '[3]: document missing'),
    )
    expect(await update('1', { script: 'x' })).toMatchObject([
      400,
      { error: { reason: expect.stringContaining('[script]') } },
    ])
  })

  it('is refused where its type is another, and nothing of it is changed on the way', async () => {
    const index = indexName()
    await fill(index, { 1: { n: 5 } })
    expect(await request('PUT', `/${index}/_doc/2`, { n: 5.5 })).toEqual(
      error(400, 'mapper_parsing_exception', expect.stringContaining('n')),
    )
    expect(await request('PUT', `/${index}/_doc/2`, 'nonsense')).toEqual(
      error(400, 'mapper_parsing_exception', expect.anything()),
    )
    const response = await send('PUT', `/${index}/_doc/2`, { body: { n: 1 } })
    expect([response.status, await response.json()]).toEqual([
      406,
      { error: 'Content-Type header [text/plain;charset=UTF-8] is not supported', status: 406 },
    ])
  })
})

describe('what is not there', () => {
  it('is told in the words of OpenSearch', async () => {
    const index = indexName()
    await fill(index, { 1: { a: 1 } })
    const response = await send('PATCH', `/${index}`)
    expect([response.status, response.headers.get('allow'), await response.json()]).toEqual([
      405,
      'DELETE, GET, PUT',
      {
        error: `Incorrect HTTP method for uri [/${index}] and method [PATCH], allowed: [DELETE, GET, PUT]`,
        status: 405,
      },
    ])
    expect(await request('POST', `/${index}/_flush?x=1`)).toEqual([
      400,
      { error: `no handler found for uri [/${index}/_flush?x=1] and method [POST]` },
    ])
    expect(await request('PUT', '/collections')).toEqual([
      405,
      { message: '/collections takes GET, POST, not PUT.' },
    ])
    expect(await request('PUT', '/nope/nope')).toEqual([404, { message: 'Not Found' }])
  })
})

describe('the measure of a vector', () => {
  const vector = (more: object) => ({ properties: { v: { type: 'knn_vector', dimension: 2, ...more } } })

  it('does not change', async () => {
    const index = indexName()
    await request('PUT', `/${index}`, { mappings: vector({ space_type: 'cosinesimil' }) })
    const put = async (more: object) => (await request('PUT', `/${index}/_mapping`, vector(more)))[0]
    expect(await put({ space_type: 'l2' })).toBe(400)
    expect(await put({})).toBe(400)
    expect(await put({ space_type: 'cosinesimil', dimension: 3 })).toBe(400)
    expect(await put({ method: { name: 'hnsw', space_type: 'cosinesimil' } })).toBe(200)
  })

  it('is shown where its mapping does not say it', async () => {
    const name = indexName()
    // As an index was kept when a vector without a space was measured by its angle.
    const fields = [{ name: 'v', type: 'float[]', num_dim: 2, vec_dist: 'cosine', optional: true }]
    const metadata = { opensearch: { settings: {}, dynamic: true, ...vector({}) } }
    expect((await call('POST', '/collections', { body: { name, fields, metadata } }))[0]).toBe(201)
    const [, shown] = await request('GET', `/${name}/_mapping`)
    expect(shown[name].mappings.properties.v).toEqual({
      type: 'knn_vector',
      dimension: 2,
      space_type: 'cosinesimil',
    })
  })
})
