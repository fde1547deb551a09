/**
 * Searches by vector in an OpenSearch cluster, alone and with words. The cluster's replies were recorded from OpenSearch 3, as those of
 * engines-opensearch.test.ts.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { client, disconnect, query, request, unique } from './harness'
import { Recorded } from './recorded'

const cluster = new Recorded(
  join(import.meta.dirname, '../fixtures/opensearch-vectors.json'),
  process.env.OPENSEARCH_URL,
)
/** A fixed name: it is part of the recorded requests. */
const INDEX = 'parley_shoes'

const SHOES = [
  { id: 'red', title: 'Red shoe', price: 40, vec: [1, 0, 0] },
  { id: 'blue', title: 'Blue shoe', price: 50, vec: [0, 1, 0] },
  { id: 'hat', title: 'Green hat', price: 20, vec: [0.9, 0.1, 0] },
]

let shoes: string

beforeAll(async () => {
  await cluster.open()
  shoes = unique('shoes')
  const reply = await request('POST', '/collections', {
    name: shoes,
    engine: { type: 'opensearch', nodes: [cluster.url], index: INDEX, timeout_ms: 30_000 },
    fields: [
      { name: 'title', type: 'string' },
      { name: 'price', type: 'int32' },
      { name: 'vec', type: 'float[]', num_dim: 3 },
    ],
  })
  if (reply.status !== 201) throw new Error(reply.text)
  for (const shoe of SHOES) {
    await client()
      .collections(shoes)
      .documents()
      .upsert(shoe as never)
  }
})

afterAll(async () => {
  await disconnect([shoes])
  await cluster.close()
})

test.each([
  ['the nearest by vector', { q: '*', vector_query: 'vec:([1,0,0], k:2)' }, ['red', 'hat']],
  [
    'the nearest within a filter',
    { q: '*', vector_query: 'vec:([1,0,0], k:2)', filter_by: 'price:>30' },
    ['red', 'blue'],
  ],
  [
    'words and a vector, joined by rank',
    { q: 'shoe', query_by: 'title', vector_query: 'vec:([1,0,0], k:3, alpha:0.5)' },
    ['red', 'blue', 'hat'],
  ],
])('finds %s', async (_, parameters, expected) => {
  const path = `/collections/${shoes}/documents/search`
  const { body } = await request('GET', query(path, parameters as Record<string, string>))
  expect(body.hits.map(({ document }: { document: { id: string } }) => document.id)).toEqual(expected)
  const { hits } = body
  expect(hits[0].vector_distance).toBe(0)
})
