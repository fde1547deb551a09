/** An OpenSearch cluster that has lost shards: it answers from the others alone, and its counts are too low. */
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { type Served, serve } from '../serve'
import { disconnect, KEY, query, request, unique, url } from './harness'

const MAPPING = () => ({
  lamps: { mappings: { properties: { title: { type: 'text' }, year: { type: 'integer' }, ...later } } },
})
const LAMP = { _id: 'argand', _score: 1, _source: { title: 'The Argand lamp', year: 1780 } }

/** How many of its three shards answer, by node. */
let shards: [number, number]
let asked: number
/** requests for the mapping */
let mapped = 0
/** what shards that failed say */
let failures: object[]
/** fields that the index has got */
let later: Record<string, object>
let nodes: Served[] = []
const connected: string[] = []

beforeEach(async () => {
  shards = [3, 3]
  asked = 0
  failures = []
  later = {}
  nodes = await Promise.all(
    [0, 1].map((node) =>
      serve(async (incoming, outgoing) => {
        for await (const _ of incoming);
        const _shards = {
          total: 3,
          successful: shards[node as 0 | 1],
          skipped: 0,
          failed: failures.length,
          failures,
        }
        const path = new URL(incoming.url ?? '/', 'http://node').pathname
        if (path.endsWith('_search')) asked++
        if (path.endsWith('_mapping')) mapped++
        const hits = { total: { value: _shards.successful, relation: 'eq' }, hits: [LAMP] }
        const reply = path.endsWith('_mapping')
          ? MAPPING()
          : path.endsWith('_count')
            ? { count: _shards.successful, _shards }
            : path === '/_search/scroll'
              ? { took: 1, timed_out: false, _scroll_id: 's', _shards: { ..._shards, successful: 2 }, hits }
              : { took: 1, timed_out: false, _scroll_id: 's', _shards, hits }
        outgoing.writeHead(200, { 'content-type': 'application/json' })
        outgoing.end(JSON.stringify(reply))
      }),
    ),
  )
})

afterEach(async () => {
  for (const node of nodes) await node.stop()
})
afterAll(() => disconnect(connected))

async function connect(): Promise<string> {
  const name = unique('lamps')
  connected.push(name)
  const engine = { type: 'opensearch', nodes: nodes.map((node) => node.url), index: 'lamps' }
  const reply = await request('POST', '/collections', { name, engine })
  if (reply.status !== 201) throw new Error(reply.text)
  return name
}

const search = (name: string) =>
  request('GET', query(`/collections/${name}/documents/search`, { q: 'lamp', query_by: 'title' }))

test('is asked at another node, whose answer is whole', async () => {
  const name = await connect()
  shards = [2, 3]
  for (let round = 0; round < 4; round++) expect((await search(name)).body).toMatchObject({ found: 3 })
})

test('gives no count and no hits that are not whole', async () => {
  const name = await connect()
  shards = [2, 2]
  asked = 0
  const response = await fetch(
    url + query(`/collections/${name}/documents/search`, { q: 'lamp', query_by: 'title' }),
    { headers: { 'X-TYPESENSE-API-KEY': KEY } },
  )
  expect(response.status).toBe(503)
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(((await response.json()) as { message: string }).message).toContain('shards')
  expect(asked).toBe(2)
  expect((await request('GET', `/collections/${name}`)).status).toBe(503)
})

test('says at the end of an export that it is not whole', async () => {
  const name = await connect()
  const { text } = await request('GET', `/collections/${name}/documents/export`)
  const lines = text.split('\n').map((line) => JSON.parse(line))
  expect(lines[0]).toMatchObject({ id: 'argand' })
  expect(lines.at(-1)).toMatchObject({ code: 503, error: expect.stringContaining('shards') })
})

test('whose index refuses the request says so, and is not asked again', async () => {
  const name = await connect()
  shards = [2, 2]
  const reason = { type: 'query_shard_exception', reason: 'No mapping found for [year] in order to sort on' }
  failures = [{ shard: 2, index: 'lamps-2', node: 'n', reason }]
  const reply = await search(name)
  expect([reply.status, reply.body.message]).toEqual([400, reason.reason])
  expect(asked).toBe(1)
})

test('finds by a field that a new document has just brought', async () => {
  const name = await connect()
  expect((await search(name)).status).toBe(200)
  const path = query(`/collections/${name}/documents/search`, { q: 'brass', query_by: 'metal' })
  mapped = 0
  for (let round = 0; round < 4; round++) expect((await request('GET', path)).status).toBe(404)
  // Whoever asks for what is not there makes no request of each search.
  expect(mapped).toBeLessThan(4)
  later = { metal: { type: 'keyword' } }
  await expect.poll(async () => (await request('GET', path)).status, { timeout: 5_000 }).toBe(200)
})
