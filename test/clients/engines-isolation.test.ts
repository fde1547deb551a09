/**
 * What a scoped key fixes, on every engine. Another collection of the same Parley plays the Typesense cluster. An OpenSearch
 * cluster and AI Search are played by a server that gives all documents whatever it is asked, and notes what it was asked.
 */
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Served, serve } from '../serve'
import { client, disconnect, KEY, query, request, SHOWS, unique, url } from './harness'

const ENGINES = ['object', 'typesense', 'opensearch', 'ai-search'] as const
type Engine = (typeof ENGINES)[number]

/** the collection of each engine */
const names: Record<string, string> = {}
/** bodies of searches that reached the server which plays a cluster */
let asked: string[] = []
let server: Served

const MAPPINGS = {
  index: {
    mappings: {
      properties: {
        title: { type: 'text' },
        overview: { type: 'text' },
        points: { type: 'integer' },
      },
    },
  },
}

const openHits = SHOWS.map(({ id, ...source }) => ({ _id: id, _score: 1, _source: source }))
const chunks = SHOWS.map(({ id, overview, points }) => ({
  id,
  score: 0.5,
  text: overview,
  item: { key: id, metadata: { points, overview } },
}))

beforeAll(async () => {
  server = await serve(async (incoming, outgoing) => {
    const body = await text(incoming)
    const path = incoming.url ?? ''
    if (path.includes('search')) asked.push(body)
    const reply = () => {
      if (path.endsWith('/_mapping')) return MAPPINGS
      if (path.endsWith('/_count')) return { count: SHOWS.length }
      if (path.includes('/_search')) {
        return { took: 1, timed_out: false, hits: { total: { value: SHOWS.length }, hits: openHits } }
      }
      if (path.endsWith('/stats')) return { success: true, result: { completed: SHOWS.length } }
      return { success: true, result: { search_query: 'q', chunks } }
    }
    outgoing.writeHead(200, { 'content-type': 'application/json' })
    outgoing.end(JSON.stringify(reply()))
  })
  names.object = unique('shows')
  await client()
    .collections()
    .create({
      name: names.object,
      fields: [
        { name: 'title', type: 'string' },
        { name: 'overview', type: 'string' },
        { name: 'points', type: 'int32', facet: true },
      ],
    })
  await client().collections(names.object).documents().import(SHOWS)
  const engines = {
    typesense: { nodes: [url], credentials: { api_key: KEY }, collection: names.object },
    opensearch: { nodes: [server.url], index: 'shows' },
    'ai-search': {
      nodes: [server.url],
      credentials: { api_token: 'a-token' },
      account_id: 'account',
      instance: 'shows',
    },
  }
  for (const [type, engine] of Object.entries(engines)) {
    names[type] = unique(type)
    const reply = await request('POST', '/collections', { name: names[type], engine: { type, ...engine } })
    if (reply.status !== 201) throw new Error(reply.text)
  }
})

afterAll(async () => {
  await disconnect(Object.values(names))
  await server.stop()
})

async function scoped(engine: Engine, embedded: object): Promise<string> {
  const { value } = await client()
    .keys()
    .create({
      description: 'a page',
      actions: ['documents:search'],
      collections: [names[engine]!],
    } as never)
  return client().keys().generateScopedSearchKey(value!, embedded)
}

async function search(engine: Engine, embedded: object, parameters: Record<string, string | number>) {
  asked = []
  const key = await scoped(engine, embedded)
  const path = `/collections/${names[engine]}/documents/search`
  return request('GET', query(path, { q: 'series', query_by: 'title', ...parameters }), undefined, key)
}

/** Documents that a filter would let through, by what the cluster was asked: it decides, and plays no part here. */
function expectFiltered(engine: Engine): void {
  expect(asked).not.toEqual([])
  for (const body of asked.map((one) => JSON.parse(one))) {
    if (engine === 'ai-search') {
      expect(body.ai_search_options.retrieval.filters).toMatchObject({ points: { $gt: 75 } })
    } else {
      expect(body.query.bool.filter).toContainEqual({ range: { points: { gt: 75 } } })
      expect(Object.keys(body.query)).toEqual(['bool'])
    }
  }
}

describe.each(ENGINES)('%s: a scoped key', (engine) => {
  test.each([
    ['no filter', {}],
    ['a condition', { filter_by: 'title:=x' }],
    ['an or', { filter_by: 'points:>0 || points:<1000' }],
    ['an or that closes the bracket', { filter_by: 'points:>0) || (points:>0' }],
    ['the same in a quote', { filter_by: 'title:=`a`) || (points:>0' }],
    ['an open quote', { filter_by: 'title:=`a' }],
    ['a join', { filter_by: '$others(id:*)' }],
    ['a pin', { pinned_hits: 'reef:1' }],
    ['a filter on the same field', { filter_by: 'points:>0' }],
  ])('holds its filter against %s', async (_, parameters) => {
    const reply = await search(engine, { filter_by: 'points:>75' }, parameters)
    if (reply.status !== 200) {
      expect([400, 404]).toContain(reply.status)
      expect(asked).toEqual([])
    } else if (engine === 'object' || engine === 'typesense') {
      const found = reply.body.hits.map(({ document }: { document: { id: string } }) => document.id)
      for (const id of found) expect(['quest', 'salvage']).toContain(id)
    } else expectFiltered(engine)
  })

  test('holds what it pins', async () => {
    const reply = await search(engine, { per_page: 1, query_by: 'title' }, { per_page: 250 })
    expect(reply.status).toBe(200)
    if (engine === 'opensearch') expect(JSON.parse(asked[0]!).size).toBe(1)
    else if (engine === 'ai-search') {
      expect(JSON.parse(asked[0]!).ai_search_options.retrieval.max_num_results).toBe(1)
    } else expect(reply.body.hits.length).toBeLessThanOrEqual(1)
  })

  test.each([
    ['nothing', {}],
    ['include_fields', { include_fields: 'overview,title' }],
    ['a pattern', { include_fields: '*' }],
    ['another exclude_fields', { exclude_fields: 'title' }],
  ])('hides a field from %s', async (_, parameters) => {
    const reply = await search(
      engine,
      { exclude_fields: 'overview' },
      { query_by: 'title,overview', ...parameters },
    )
    expect(reply.status).toBe(200)
    expect(reply.body.hits.length).toBeGreaterThan(0)
    for (const { document, highlights } of reply.body.hits) {
      expect(Object.keys(document)).not.toContain('overview')
      expect(highlights.map(({ field }: { field: string }) => field)).not.toContain('overview')
    }
    if (engine === 'opensearch') {
      expect(Object.keys(JSON.parse(asked[0]!).highlight.fields)).not.toContain('overview')
    }
  })
})

/** Facets, filters and highlights that name a hidden field reveal its values (docs/security.md). So they do there, and not more. */
test.each([
  ['facet_by', { facet_by: 'points' }],
  ['sort_by', { sort_by: 'points:asc' }],
  ['filter_by', { filter_by: 'points:<80' }],
  ['highlight_fields', { highlight_fields: 'overview' }],
  ['highlight_full_fields', { highlight_full_fields: 'overview' }],
])('a hidden field in %s is treated in a Typesense cluster as in an object', async (_, parameters) => {
  const asked = { query_by: 'overview', ...parameters }
  const hidden = { exclude_fields: 'overview,points' }
  const [own, theirs] = [await search('object', hidden, asked), await search('typesense', hidden, asked)]
  const shown = ({ status, body }: typeof own) => [status, body.found, body.hits, body.facet_counts]
  expect(shown(theirs)).toEqual(shown(own))
  expect(own.status).toBe(200)
})
