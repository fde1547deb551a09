/** Replies that clients act on, as a real OpenSearch 2.19 gives them (`npm run reference:opensearch -- compare`). */
import { expect, test } from 'vitest'
import { fill, indexName, request } from './api'

const MEMORY = '/_plugins/_ml/memory'

const PHASE = { type: 'search_phase_execution_exception', reason: 'all shards failed', phase: 'query' }

test('a search that does not fit its index fails on its shards, with the cause at the root', async () => {
  const index = indexName()
  await fill(index, { 1: { year: 1999, kind: 'novel' } })
  await request('PUT', `/${index}/_mapping`, { properties: { v: { type: 'knn_vector', dimension: 2 } } })
  const faults: [Record<string, unknown>, string, RegExp][] = [
    [{ query: { term: { year: 'many' } } }, 'query_shard_exception', /For input string: "many"/],
    [{ query: { range: { year: { gte: 'x' } } } }, 'query_shard_exception', /failed to create query/],
    [{ sort: ['foo'] }, 'query_shard_exception', /No mapping found for \[foo\]/],
    [{ size: 10_001 }, 'illegal_argument_exception', /Result window is too large/],
    [{ aggs: { k: { terms: { field: 'kind' } } } }, 'illegal_argument_exception', /Text fields/],
    [{ query: { knn: { kind: { vector: [1, 2], k: 1 } } } }, 'query_shard_exception', /not knn_vector/],
    [{ query: { knn: { v: { vector: [1], k: 1 } } } }, 'query_shard_exception', /invalid dimension: 1/],
  ]
  for (const [body, type, reason] of faults) {
    const [status, { error }] = await request('POST', `/${index}/_search`, body)
    expect([status, error.root_cause[0].type], JSON.stringify(body)).toEqual([400, type])
    expect(error).toMatchObject({ ...PHASE, failed_shards: [{ shard: 0, reason: { type } }] })
    expect(error.root_cause[0].reason).toMatch(reason)
  }
  const [, { responses }] = await request('POST', `/${index}/_msearch`, [{}, { sort: ['foo'] }])
  expect(responses).toMatchObject([{ status: 400, error: PHASE }])
})

test('a request that cannot be read is told by the type of its fault', async () => {
  const index = indexName()
  await fill(index, { 1: { n: 1 } })
  const faults: [string, string, unknown, number, string][] = [
    ['PUT', `/${index}/_doc/2`, '{"n":', 400, 'mapper_parsing_exception'],
    ['PUT', `/${index}/_doc/2`, '[1]', 400, 'mapper_parsing_exception'],
    ['PUT', `/${index}/_doc/2?refresh=maybe`, { n: 2 }, 400, 'illegal_argument_exception'],
    ['POST', `/${index}/_bulk?refresh=maybe`, [{ index: {} }, { n: 2 }], 400, 'illegal_argument_exception'],
    ['POST', `/${index}/_bulk`, '\n', 400, 'action_request_validation_exception'],
    ['POST', `/${index}/_count`, { size: 1 }, 400, 'parsing_exception'],
    ['POST', `/${index}/_search`, { query: {} }, 400, 'illegal_argument_exception'],
    ['GET', `/${index}/_search?size=x`, undefined, 400, 'illegal_argument_exception'],
    ['POST', `/${index}/_search`, { size: 'x' }, 400, 'number_format_exception'],
    ['POST', '/_msearch', undefined, 400, 'parse_exception'],
    ['PUT', `/${indexName()}`, { mapping: {} }, 400, 'parse_exception'],
    ['GET', `/${index},other/_search`, undefined, 404, 'index_not_found_exception'],
    ['DELETE', '/_plugins/_ml/models/none', undefined, 404, 'status_exception'],
  ]
  for (const [method, path, body, expected, type] of faults) {
    const [status, { error }] = await request(method, path, body)
    expect([status, error.type], `${method} ${path}`).toEqual([expected, type])
  }
  expect(await request('PUT', '/_name')).toEqual([
    400,
    { error: 'no handler found for uri [/_name] and method [PUT]' },
  ])
})

test('a conflict and a missing document name their index', async () => {
  const index = indexName()
  await fill(index, { 1: { n: 1 } })
  const place = { index, shard: '0', index_uuid: '_na_' }
  const [, conflict] = await request('PUT', `/${index}/_create/1`, { n: 1 })
  expect(conflict.error).toMatchObject({ type: 'version_conflict_engine_exception', ...place })
  const [, missing] = await request('POST', `/${index}/_update/2`, { doc: { n: 1 } })
  expect(missing.error).toMatchObject({ type: 'document_missing_exception', ...place })
  const lines = [{ create: { _id: '1' } }, { n: 1 }, { update: { _id: '2' } }, { doc: { n: 1 } }]
  const [, { items }] = await request('POST', `/${index}/_bulk`, lines)
  expect(items).toMatchObject([{ create: { error: place } }, { update: { error: place } }])
})

test('a refresh that was asked for is confirmed', async () => {
  const index = indexName()
  const [, forced] = await request('PUT', `/${index}/_doc/1?refresh=true`, { n: 1 })
  expect(forced.forced_refresh).toBe(true)
  const [, bulk] = await request('POST', `/${index}/_bulk?refresh`, [{ index: { _id: '2' } }, { n: 2 }])
  expect(bulk.items[0].index.forced_refresh).toBe(true)
  for (const query of ['', '?refresh=false', '?refresh=wait_for']) {
    const [status, body] = await request('PUT', `/${index}/_doc/1${query}`, { n: 3 })
    expect([status, body.forced_refresh], query).toEqual([200, undefined])
  }
})

test('a document of a bulk that is no JSON fails alone', async () => {
  const index = indexName()
  const text =
    '{"index":{"_id":"1"}}\n{"n":1}\n{"index":{"_id":"2"}}\n{"n":\n{"index":{"_id":"3"}}\n{"n":3}\n'
  const [status, { errors, items }] = await request('POST', `/${index}/_bulk`, text)
  expect([status, errors]).toEqual([200, true])
  expect(items).toMatchObject([
    { index: { _id: '1', status: 201 } },
    { index: { _id: '2', status: 400, error: { type: 'mapper_parsing_exception' } } },
    { index: { _id: '3', status: 201 } },
  ])
  expect((await request('GET', `/${index}/_count`))[1].count).toBe(2)
})

test('settings of an index change, and are taken back by null', async () => {
  const index = indexName()
  await request('PUT', `/${index}`, { mappings: { properties: { kind: { type: 'keyword' } } } })
  const set = (body: unknown) => request('PUT', `/${index}/_settings`, body)
  const shown = async () => (await request('GET', `/${index}/_settings`))[1][index].settings.index
  expect(await set({ 'index.search.default_pipeline': 'nope' })).toEqual([200, { acknowledged: true }])
  expect(await set({ index: { refresh_interval: '5s' } })).toEqual([200, { acknowledged: true }])
  expect(await shown()).toMatchObject({ 'search.default_pipeline': 'nope', refresh_interval: '5s' })
  const [status, { error }] = await request('GET', `/${index}/_search`)
  expect([status, error.reason]).toEqual([400, 'Pipeline nope is not defined'])
  await set({ settings: { index: { search: { default_pipeline: null } } } })
  expect(await shown()).not.toHaveProperty('search.default_pipeline')
  expect((await request('GET', `/${index}/_search`))[0]).toBe(200)
  // The mapping, which is kept beside the settings, is as before.
  expect((await request('GET', `/${index}/_mapping`))[1][index].mappings.properties.kind.type).toBe('keyword')
  for (const body of [{}, { number_of_shards: 2 }, { foo: 1 }]) expect((await set(body))[0]).toBe(400)
  expect((await request('PUT', `/${indexName()}/_settings`, { refresh_interval: '1s' }))[0]).toBe(404)
})

test('an alias that is missing is named', async () => {
  const index = indexName()
  await request('PUT', `/${index}`)
  const actions = [{ remove: { index, alias: 'gone' } }]
  const [status, { error }] = await request('POST', '/_aliases', { actions })
  expect([status, error.type]).toEqual([404, 'aliases_not_found_exception'])
  expect(error).toMatchObject({ reason: 'aliases [gone] missing', 'resource.id': 'gone' })
})

test('an alias is made, found and deleted by its own path', async () => {
  const [index, alias] = [indexName(), indexName('alias')]
  await request('PUT', `/${index}`)
  expect(await request('PUT', `/${index}/_alias/${alias}`)).toEqual([200, { acknowledged: true }])
  const shown = { [index]: { aliases: { [alias]: {} } } }
  for (const path of [`/_alias/${alias}`, `/_alias/${alias}*`, `/${index}/_alias/${alias}`]) {
    expect(await request('GET', path), path).toEqual([200, shown])
  }
  expect((await request('HEAD', `/_alias/${alias}`))[0]).toBe(200)
  expect((await request('GET', `/${alias}/_count`))[0]).toBe(200)
  expect(await request('DELETE', `/${index}/_alias/${alias}`)).toEqual([200, { acknowledged: true }])
  expect((await request('DELETE', `/${index}/_alias/${alias}`))[1].error.type).toBe(
    'aliases_not_found_exception',
  )
  expect(await request('GET', `/_alias/${alias}`)).toEqual([
    404,
    { error: `alias [${alias}] missing`, status: 404 },
  ])
  expect(await request('GET', `/_alias/${alias}*`)).toEqual([200, {}])
  expect((await request('PUT', `/${index}/_alias/${alias}`, { filter: {} }))[0]).toBe(400)
  expect((await request('PUT', `/${indexName()}/_alias/${alias}`))[0]).toBe(404)
})

test('a memory shows what 2.19 shows of it', async () => {
  const given = { name: 'Chat', application_type: 'chat', additional_info: { a: 'b' } }
  const [, { memory_id }] = await request('POST', MEMORY, given)
  const [, memory] = await request('GET', `${MEMORY}/${memory_id}`)
  expect(Object.keys(memory).sort()).toEqual([
    'additional_info',
    'create_time',
    'memory_id',
    'name',
    'updated_time',
  ])
  const [status, { error }] = await request('POST', `${MEMORY}/${memory_id}/messages`)
  expect([status, error.type]).toEqual([400, 'parse_exception'])
  const [, { error: unknown }] = await request('GET', `${MEMORY}/coffee`)
  const { root_cause, ...cause } = unknown
  expect(cause).toEqual({ type: 'resource_not_found_exception', reason: 'Memory [coffee] not found' })
  const [, found] = await request('POST', `${MEMORY}/_search`, { query: { match: { name: 'chat' } } })
  const { _source } = found.hits.hits.find(({ _id }: { _id: string }) => _id === memory_id)
  expect(_source).toMatchObject(given)
  await request('POST', `${MEMORY}/${memory_id}/messages`, { input: 'q', response: 'a' })
  const sorted = { query: { match_all: {} }, sort: [{ create_time: { order: 'desc' } }] }
  const [, { hits }] = await request('POST', `${MEMORY}/${memory_id}/_search`, sorted)
  expect(hits.hits[0].sort).toEqual([Date.parse(hits.hits[0]._source.create_time)])
})
