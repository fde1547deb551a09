/**
 * Searches by vector in an OpenSearch cluster, alone and with words. The cluster's replies were recorded from OpenSearch 3 and from
 * Elasticsearch 8.19.21 (ELASTICSEARCH_8_URL), as those of engines-opensearch.test.ts.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { client, disconnect, query, request, unique } from './harness'
import { Recorded } from './recorded'

/** A fixed name: it is part of the recorded requests. */
const INDEX = 'parley_shoes'

const SHOES = [
  { id: 'red', title: 'Red shoe', price: 40, vec: [1, 0, 0] },
  { id: 'blue', title: 'Blue shoe', price: 50, vec: [0, 1, 0] },
  { id: 'hat', title: 'Green hat', price: 20, vec: [0.9, 0.1, 0] },
]

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'price', type: 'int32' },
  { name: 'vec', type: 'float[]', num_dim: 3 },
]

/** Elasticsearch has another name for vectors, so its index is there before. */
const MAPPING = {
  title: { type: 'text' },
  price: { type: 'integer' },
  vec: { type: 'dense_vector', dims: 3, similarity: 'cosine' },
}

interface Kind {
  fixture: string
  target: string | undefined
  mapping?: object
}

const KINDS: [string, Kind][] = [
  ['OpenSearch', { fixture: 'opensearch-vectors.json', target: process.env.OPENSEARCH_URL }],
  [
    'Elasticsearch',
    { fixture: 'elasticsearch-vectors.json', target: process.env.ELASTICSEARCH_8_URL, mapping: MAPPING },
  ],
]

describe.each(KINDS)('in %s', (_, { fixture, target, mapping }) => {
  const cluster = new Recorded(join(import.meta.dirname, '../fixtures', fixture), target)
  let shoes: string

  beforeAll(async () => {
    await cluster.open()
    shoes = unique('shoes')
    if (mapping !== undefined) {
      const body = JSON.stringify({ mappings: { properties: mapping } })
      const headers = { 'content-type': 'application/json' }
      await fetch(`${cluster.url}/${INDEX}`, { method: 'PUT', headers, body })
    }
    const reply = await request('POST', '/collections', {
      name: shoes,
      engine: { type: 'opensearch', nodes: [cluster.url], index: INDEX, timeout_ms: 30_000 },
      ...(mapping === undefined && { fields: FIELDS }),
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
})
