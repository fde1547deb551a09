/**
 * The same requests of Typesense's API, to a collection of a cluster directly and through Parley's pass-through. Every reply has to be
 * the same but for times and the collection's name. Another collection of the same Parley plays the cluster.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { popular, rule, stage } from './analytics-stage'
import { client, disconnect, KEY, query, request, unique, url } from './harness'

const FIELDS = [
  { name: 'title', type: 'string', infix: true },
  { name: 'tags', type: 'string[]', facet: true },
  { name: 'price', type: 'float', facet: true },
  { name: 'stock', type: 'int32', sort: true, optional: true },
  { name: 'place', type: 'geopoint', optional: true },
  { name: 'vec', type: 'float[]', num_dim: 3, optional: true },
  { name: 'maker', type: 'object', optional: true },
]

const PRODUCTS = [
  { id: '1', title: 'Red running shoe', tags: ['sport', 'red'], price: 59.5, stock: 3, vec: [1, 0, 0] },
  { id: '2', title: 'Blue running shoe', tags: ['sport'], price: 49, stock: 0, vec: [0.9, 0.1, 0] },
  { id: '3', title: 'Leather boot', tags: ['winter'], price: 120, place: [48.1, 11.5], vec: [0, 1, 0] },
  { id: '4', title: "Child's sandal", tags: [], price: 15, stock: 9, maker: { name: 'Ada' } },
]

let direct: string
let through: string

beforeAll(async () => {
  direct = unique('direct')
  through = unique('through')
  await client()
    .collections()
    .create({ name: direct, enable_nested_fields: true, fields: FIELDS } as never)
  await client()
    .collections(direct)
    .documents()
    .import(PRODUCTS as never)
  const engine = { type: 'typesense', nodes: [url], credentials: { api_key: KEY }, collection: direct }
  const reply = await request('POST', '/collections', { name: through, engine })
  if (reply.status !== 201) throw new Error(reply.text)
})

afterAll(() => disconnect([through]))

/** A reply without what differs from one call to the next: times, and the collection's name. */
function plain(body: unknown, name: string): unknown {
  return JSON.parse(
    JSON.stringify(body, (key, value) => (key === 'search_time_ms' ? 0 : value)).replaceAll(name, 'NAME'),
  )
}

/** Asks both. */
async function both(
  method: string,
  path: (name: string) => string,
  body?: (name: string) => unknown,
): Promise<[unknown, unknown]> {
  const replies = []
  for (const name of [direct, through]) {
    const reply = await request(method, path(name), body?.(name))
    replies.push([reply.status, plain(reply.body ?? reply.text, name)])
  }
  return replies as [unknown, unknown]
}

const SEARCHES: Record<string, Record<string, string | number>> = {
  words: { q: 'running shoe', query_by: 'title' },
  all: { q: '*' },
  'a typo': { q: 'runing', query_by: 'title' },
  'a prefix': { q: 'lea', query_by: 'title' },
  'no prefix': { q: 'lea', query_by: 'title', prefix: 'false' },
  infix: { q: 'nnin', query_by: 'title', infix: 'always' },
  'a phrase': { q: '"running shoe"', query_by: 'title' },
  'an excluded word': { q: 'shoe -red', query_by: 'title' },
  'several fields with weights': { q: 'sport', query_by: 'title,tags', query_by_weights: '1,3' },
  'dropped tokens': { q: 'red boot', query_by: 'title', drop_tokens_threshold: 5 },
  'a filter': { q: '*', filter_by: 'price:[40..60] && tags:=sport' },
  'a filter with quotes': { q: '*', filter_by: "title:=`Child's sandal`" },
  'a filter of ids': { q: '*', filter_by: 'id:[1,3]' },
  'a nested filter': { q: '*', filter_by: 'maker.name:=Ada' },
  sorted: { q: '*', sort_by: 'price:desc,stock(missing_values: first):asc' },
  'sorted by place': { q: '*', filter_by: 'place:(48,11,100 km)', sort_by: 'place(48,11):asc' },
  'sorted by a condition': { q: '*', sort_by: '_eval(tags:=sport):desc,price:asc' },
  facets: { q: '*', facet_by: 'tags,price', max_facet_values: 2 },
  'ranges of facets': { q: '*', facet_by: 'price(low:[0,50], high:[50,500])' },
  'a facet query': { q: '*', facet_by: 'tags', facet_query: 'tags:sp' },
  groups: { q: '*', group_by: 'tags', group_limit: 1 },
  'a page': { q: '*', per_page: 1, page: 2, sort_by: 'price:asc' },
  'an offset': { q: '*', offset: 1, limit: 2, sort_by: 'price:asc' },
  'no hits': { q: '*', per_page: 0 },
  highlights: { q: 'shoe', query_by: 'title', highlight_full_fields: 'title', highlight_start_tag: '<b>' },
  'fields shown': { q: '*', include_fields: 'title' },
  'fields hidden': { q: '*', exclude_fields: 'vec,tags' },
  pinned: { q: 'shoe', query_by: 'title', pinned_hits: '3:1', hidden_hits: '1' },
  'a vector': { q: '*', vector_query: 'vec:([1,0,0], k: 2)' },
  'the vector of a document': { q: '*', vector_query: 'vec:([], id: 1)' },
  'words and a vector': { q: 'shoe', query_by: 'title', vector_query: 'vec:([0,1,0], alpha: 0.5)' },
  'scores by ranks': { q: 'shoe', query_by: 'title', prioritize_exact_match: 'false' },
  'an unknown field': { q: 'a', query_by: 'nothing' },
  'an unknown field of a filter': { q: '*', filter_by: 'nothing:1' },
  'a broken filter': { q: '*', filter_by: 'price:[1..' },
  'an unknown order': { q: '*', sort_by: 'title:asc' },
  'an unknown facet': { q: '*', facet_by: 'title' },
  'a page that is none': { q: '*', page: 'x' },
  'a page that is too large': { q: '*', per_page: 300 },
  'a vector of another length': { q: '*', vector_query: 'vec:([1,0])' },
}

describe('a search has the same reply', () => {
  test.each(Object.entries(SEARCHES))('%s', async (_, parameters) => {
    const [there, here] = await both('GET', (name) =>
      query(`/collections/${name}/documents/search`, parameters),
    )
    expect(here).toEqual(there)
  })

  test('all of them in one multi_search', async () => {
    const searches = Object.values(SEARCHES)
    const [there, here] = await both(
      'POST',
      () => '/multi_search',
      (collection) => ({ searches: searches.map((each) => ({ ...each, collection })) }),
    )
    expect(here).toEqual(there)
  })
})

/** Requests that change documents, in this order. */
const WRITES: [string, string, (name: string) => string, unknown?][] = [
  ['a document is created', 'POST', () => '', { id: 'x', title: 'Slipper', tags: ['home'], price: 9 }],
  ['it is there already', 'POST', () => '', { id: 'x', title: 'Slipper', tags: ['home'], price: 9 }],
  ['it is read', 'GET', () => '/x'],
  ['a part of it is read', 'GET', () => '/x?include_fields=title'],
  ['it is changed', 'PATCH', () => '/x', { price: 8 }],
  ['it is replaced', 'POST', () => '?action=upsert', { id: 'x', title: 'Mule', tags: [], price: 7 }],
  ['it is emplaced', 'POST', () => '?action=emplace', { id: 'x', stock: 4 }],
  ['a field is missing', 'POST', () => '', { id: 'y', title: 'No price' }],
  ['a type is wrong', 'POST', () => '', { id: 'y', title: 1, tags: 'a', price: 'b' }],
  [
    'a type is coerced',
    'POST',
    () => '?dirty_values=coerce_or_drop',
    { id: 'z', title: 2, tags: [], price: '3' },
  ],
  ['no JSON', 'POST', () => '', '{"id":'],
  ['an id that is none', 'POST', () => '', { id: 5, title: 'a', tags: [], price: 1 }],
  [
    'lines are imported',
    'POST',
    () => '/import?action=upsert&return_id=true',
    '{"id":"l","title":"L","tags":[],"price":1}\n{"id":"m"}\nnothing',
  ],
  [
    'documents are asked for back',
    'POST',
    () => '/import?action=upsert&return_doc=true',
    '{"id":"l","title":"L","tags":[],"price":2}',
  ],
  ['an action that is none', 'POST', () => '/import?action=replace', '{"id":"l"}'],
  ['a filter updates', 'PATCH', () => '?filter_by=id:[l,x]', { stock: 1 }],
  ['an export', 'GET', () => '/export?filter_by=stock:=1&exclude_fields=vec'],
  ['a document is deleted', 'DELETE', () => '/x'],
  ['it is gone', 'DELETE', () => '/x'],
  ['gone, and nobody minds', 'DELETE', () => '/x?ignore_not_found=true'],
  ['a filter deletes, and tells what', 'DELETE', () => '?filter_by=id:l&return_id=true&return_doc=true'],
  ['a filter deletes', 'DELETE', () => '?filter_by=id:z'],
  ['a filter that is none', 'DELETE', () => '?filter_by=nothing:1'],
  ['no filter', 'DELETE', () => ''],
]

test('documents are written, read and refused with the same replies', async () => {
  // One after the other, each side in whole: both begin with the same documents and leave none behind.
  const sides: unknown[] = []
  for (const name of [direct, through]) {
    const replies = []
    for (const [what, method, rest, body] of WRITES) {
      const {
        status,
        body: read,
        text,
      } = await request(method, `/collections/${name}/documents${rest(name)}`, body)
      replies.push([what, status, plain(read ?? text, name)])
    }
    sides.push(replies)
  }
  expect(sides[1]).toEqual(sides[0])
})

test('the schema is read and changed with the same replies', async () => {
  const added = { fields: [{ name: 'colour', type: 'string', optional: true, facet: true }] }
  const dropped = { fields: [{ name: 'colour', drop: true }] }
  const sides = []
  for (const name of [direct, through]) {
    const replies = []
    for (const body of [added, dropped, dropped]) {
      const reply = await request('PATCH', `/collections/${name}`, body)
      replies.push([reply.status, plain(reply.body, name)])
    }
    const { engine: _, ...schema } = (await request('GET', `/collections/${name}`)).body
    sides.push([...replies, plain(schema, name)])
  }
  expect(sides[1]).toEqual(sides[0])
})

describe('what Parley keeps itself', () => {
  test.each([
    ['GET', 'synonyms'],
    ['GET', 'overrides'],
    ['PUT', 'synonyms/shoes'],
    ['PUT', 'overrides/shoes'],
  ])('is refused by name: %s %s', async (method, path) => {
    const body = method === 'PUT' ? { synonyms: ['a', 'b'] } : undefined
    const reply = await request(method, `/collections/${through}/${path}`, body)
    expect(reply.status).toBe(400)
    expect(reply.body.message).toContain('cluster')
  })

  test('queries of a cluster are counted in a collection of Parley', async () => {
    const place = await stage()
    await rule({ ...popular(place), collection: through })
    await request('GET', query(`/collections/${through}/documents/search`, { q: 'boot', query_by: 'title' }))
    await expect
      .poll(
        async () => {
          await request('POST', '/analytics/flush')
          return (await request('GET', `/collections/${place.queries}/documents/export`)).text
        },
        { timeout: 60_000, interval: 500 },
      )
      .toContain('"q":"boot"')
  })

  test('no rule keeps its counts or events in a cluster', async () => {
    const place = await stage()
    const counting = popular(place) as { params: object }
    for (const given of [
      { ...counting, params: { ...counting.params, destination_collection: through } },
      { name: unique('log'), type: 'log', collection: through, event_type: 'click' },
    ]) {
      const reply = await request('POST', '/analytics/rules', { ...given, name: unique('refused') })
      expect(reply.status).toBe(400)
      expect(JSON.stringify(reply.body)).toContain('lives in a cluster')
    }
  })
})
