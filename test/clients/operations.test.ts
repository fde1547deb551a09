/** The server's figures and the operations of a cluster, through the official client. */
import { beforeAll, expect, test } from 'vitest'
import { client, request, unique } from './harness'

let films: string
beforeAll(async () => {
  films = unique('films')
  await client()
    .collections()
    .create({ name: films, fields: [{ name: 'title', type: 'string' }] })
})

/** Milliseconds that one request of these tests may have taken. */
const isTime = (value: unknown) => Number(value) >= 0 && Number(value) < 60_000

test('stats tell of the last requests', async () => {
  const documents = client().collections(films).documents()
  await documents.create({ id: '1', title: 'Rain' })
  await documents.import([{ id: '2', title: 'Sun' }])
  await documents.search({ q: 'rain', query_by: 'title' })
  await client().collections(films).documents('2').delete()
  const stats = (await client().stats.retrieve()) as Record<string, number> & {
    latency_ms: Record<string, number>
    requests_per_second: Record<string, number>
  }
  for (const label of ['search', 'import', 'write', 'delete']) {
    expect(stats[`${label}_requests_per_second`]).toBeGreaterThanOrEqual(0.1)
    expect(stats[`${label}_latency_ms`]).toSatisfy(isTime)
  }
  const endpoint = `GET /collections/${films}/documents/search`
  expect(stats.requests_per_second[endpoint]).toBe(0.1)
  expect(stats.latency_ms[endpoint]).toSatisfy(isTime)
  expect(stats.total_requests_per_second).toBeGreaterThanOrEqual(0.4)
  // Other tests may have been refused for asking too often in the last ten seconds.
  expect(stats.overloaded_requests_per_second).toEqual(expect.any(Number))
  expect(stats.pending_write_batches).toBe(0)
})

test('metrics have the documented keys, as text', async () => {
  const metrics = await client().metrics.retrieve()
  for (const name of [
    'system_cpu_active_percentage',
    'system_cpu1_active_percentage',
    'system_disk_total_bytes',
    'system_disk_used_bytes',
    'system_memory_total_bytes',
    'system_memory_used_bytes',
    'system_network_received_bytes',
    'system_network_sent_bytes',
    'typesense_memory_active_bytes',
    'typesense_memory_allocated_bytes',
    'typesense_memory_fragmentation_ratio',
    'typesense_memory_mapped_bytes',
    'typesense_memory_metadata_bytes',
    'typesense_memory_resident_bytes',
    'typesense_memory_retained_bytes',
  ]) {
    expect([name, (metrics as unknown as Record<string, string>)[name]]).toEqual([
      name,
      expect.stringMatching(/^\d+(\.\d+)?$/),
    ])
  }
  expect(Number(metrics.system_disk_used_bytes)).toBeGreaterThan(4_096)
})

test.each(['cache/clear', 'vote', 'db/compact', 'reset_peers'])(
  'there is nothing left to do for %s',
  async (operation) => {
    expect(await client().operations.perform(operation)).toEqual({ success: true })
  },
)

test('a snapshot is durable as it is, and none is said to be where no file was written', async () => {
  expect(await client().operations.perform('snapshot')).toEqual({ success: true })
  await expect(
    client().operations.perform('snapshot', { snapshot_path: '/tmp/snapshot' }),
  ).rejects.toMatchObject({ httpStatus: 400, message: expect.stringContaining('Use `parley backup`') })
})

test('an operation that there is not is not said to be done', async () => {
  await expect(client().operations.perform('db/shrink')).rejects.toMatchObject({ httpStatus: 404 })
})

test.each([
  [{ 'log-slow-requests-time-ms': -1 }, 201, undefined],
  [
    { 'log-slow-requests-time-ms': 2_000 },
    400,
    expect.stringContaining('`LOG_REQUESTS` logs the milliseconds'),
  ],
  [{ 'cache-num-entries': 5 }, 400, expect.stringContaining('`cache-num-entries` cannot be set')],
])('POST /config %j is answered with %i', async (settings, status, message) => {
  const reply = await request('POST', '/config', settings)
  expect([reply.status, reply.body.message]).toEqual([status, message])
})

test('no change of a schema is under way', async () => {
  expect(await client().operations.getSchemaChanges()).toEqual([])
})

test('a monitor of a cluster finds the node alive and caught up', async () => {
  const { body } = await request(
    'GET',
    '/health_with_rusage?cpu_threshold=90&pending_write_batches_threshold=10',
  )
  expect(body).toEqual({ ok: true })
  expect((await request('GET', '/status')).body).toMatchObject({ state: 'LEADER', queued_writes: 0 })
})

test.each(['limits', 'limits/active', 'limits/exceeds'])('GET /%s lists none', async (path) => {
  expect(await request('GET', `/${path}`)).toMatchObject({ status: 200, body: [] })
})

test('a rule of a rate limit is refused with the place where rates are set', async () => {
  const rule = { action: 'throttle', api_keys: ['k'], max_requests: { minute_threshold: 5 } }
  for (const [method, path] of [
    ['POST', '/limits'],
    ['PUT', '/limits/1'],
  ] as const) {
    const { status, body } = await request(method, path, rule)
    expect([status, body.message]).toEqual([400, expect.stringContaining('`RATE_LIMIT`')])
  }
  expect((await request('DELETE', '/limits/1')).status).toBe(405)
})

test.each([
  ['GET', '/personalization/models', 'does not personalize'],
  ['POST', '/personalization/models', 'does not personalize'],
  ['PUT', '/personalization/models/one', 'does not personalize'],
  ['DELETE', '/personalization/models/one', 'does not personalize'],
  ['POST', '/proxy', 'passes no requests on'],
] as const)('%s %s says why it is not there, and what to do', async (method, path, why) => {
  const { status, body } = await request(method, path, method === 'GET' ? undefined : {})
  expect([status, body.message]).toEqual([501, expect.stringContaining(why)])
})
