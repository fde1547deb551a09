import { beforeAll, describe, expect, it } from 'vitest'
import { call, FORBIDDEN, noCollection, queryString, send } from './api'

const docs = (count: number, tenant: number, from = 0) =>
  Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      id: `${from + index}`,
      title: `Apple number ${from + index}`,
      tenant,
      points: from + index,
    }),
  ).join('\n')

beforeAll(async () => {
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'tenant', type: 'int32' },
    { name: 'points', type: 'int32' },
  ]
  for (const name of ['a', 'b']) await call('POST', '/collections', { body: { name, fields } })
  const load = (name: string, body: string) =>
    send('POST', `/collections/${name}/documents/import`, { body }).then((response) => response.text())
  await load('a', `${docs(3, 1)}\n${docs(2, 2, 3)}`)
  await load('b', docs(2, 1, 10))
})

const search = (parameters: Record<string, unknown>, key?: string, collection = 'a') =>
  call('GET', `/collections/${collection}/documents/search${queryString(parameters)}`, { key })

const multi = (query: Record<string, unknown>, body: unknown, key?: string | null) =>
  call('POST', `/multi_search${queryString(query)}`, { body, key })

const APPLES = { q: 'apple', query_by: 'title' }
const ids = (result: { hits: { document: { id: string } }[] }) => result.hits.map((hit) => hit.document.id)

describe('a single search', () => {
  it('answers with hits', async () => {
    const [status, result] = await search({ ...APPLES, filter_by: 'tenant:2' })
    expect(status).toBe(200)
    expect(result).toMatchObject({
      found: 2,
      out_of: 5,
      page: 1,
      request_params: { collection_name: 'a', q: 'apple', first_q: 'apple', per_page: 10 },
    })
    expect(result).not.toHaveProperty('conversation')
  })

  it.each([
    [{ q: 'apple' }, 400, 'No search fields specified for the query.'],
    [{ q: 'x', query_by: 'nope' }, 404, 'Could not find a field named `nope` in the schema.'],
    [{ ...APPLES, per_page: 251 }, 422, 'Only upto 250 hits can be fetched per page.'],
    [
      { ...APPLES, conversation_id: 'x' },
      400,
      'Conversation ID provided but conversation is not enabled for this collection.',
    ],
    [
      { ...APPLES, conversation: true },
      400,
      'Conversation is enabled but no conversation model ID is provided.',
    ],
    [{ ...APPLES, conversation: true, conversation_model_id: 'none' }, 400, 'Model not found'],
    [
      { q: 'x'.repeat(4_000), query_by: 'title' },
      400,
      'Query string exceeds max allowed length of 4000. Use the /multi_search end-point for larger payloads.',
    ],
  ])('with %j is refused', async (parameters, status, message) => {
    expect(await search(parameters)).toEqual([status, { message }])
  })

  it('of an unknown collection is not found', async () => {
    expect(await search(APPLES, 'xyz', 'none')).toEqual([404, noCollection('none')])
  })

  it('is plain JSON when only a stream is asked for', async () => {
    const response = await send(
      'GET',
      `/collections/a/documents/search${queryString({ ...APPLES, conversation_stream: true })}`,
    )
    expect(response.headers.get('content-type')).toContain('application/json')
    expect(await response.json()).toMatchObject({ found: 5 })
  })
})

describe('a multi_search', () => {
  it('answers each search in its place', async () => {
    const searches = [
      { collection: 'a', ...APPLES },
      { collection: 'none', ...APPLES },
      { collection: 'b', ...APPLES },
      { collection: 'a', query_by: 'title' },
      { collection: 'a', ...APPLES, query_by: 'nope' },
    ]
    const [status, { results }] = await multi({}, { searches })
    expect(status).toBe(200)
    expect(results[0].found).toBe(5)
    const { message: error, detail } = noCollection('none')
    expect(results[1]).toEqual({ code: 404, error, detail })
    expect(results[2].found).toBe(2)
    expect(results[3]).toEqual({ code: 400, error: 'Parameter `q` is required.' })
    expect(results[4]).toEqual({ code: 404, error: 'Could not find a field named `nope` in the schema.' })
  })

  it('prefers the query string, and keeps both filters', async () => {
    const searches = [
      { collection: 'a', q: 'nothing', query_by: 'title', per_page: 1, filter_by: 'tenant:1 || points:3' },
    ]
    const [, { results }] = await multi({ q: 'apple', per_page: 3, filter_by: 'points:>0' }, { searches })
    expect(ids(results[0]).sort()).toEqual(['1', '2', '3'])
    expect(results[0].request_params).toMatchObject({ per_page: 3, q: 'apple' })
  })

  it('takes its key from the query and its body as text', async () => {
    const response = await send('POST', '/multi_search?x-typesense-api-key=xyz', {
      key: null,
      headers: { 'content-type': 'text/plain' },
      body: { searches: [{ collection: 'a', ...APPLES }] },
    })
    expect(await response.json()).toMatchObject({ results: [{ found: 5 }] })
  })

  const one = { collection: 'a', ...APPLES }
  const asking = { q: 'apple', conversation: true }
  const refused = (name: string, condition = '') =>
    `\`${name}\`${condition} cannot be used in POST body. Please set \`${name}\` as a query parameter in the request, instead of inside the POST body`

  it.each([
    [{}, [], 'Missing `searches` array.'],
    [{}, { searches: {} }, 'Missing `searches` array.'],
    [{}, { searches: [] }, 'The `searches` array is empty.'],
    [
      {},
      { searches: Array(51).fill(one) },
      'Number of multi searches exceeds `limit_multi_searches` parameter.',
    ],
    [
      { limit_multi_searches: 1 },
      { searches: [one, one] },
      'Number of multi searches exceeds `limit_multi_searches` parameter.',
    ],
    [{}, { searches: [1] }, 'The value of `searches` must be an array of objects.'],
    [{}, { searches: [{ ...one, q: ['a'] }] }, 'One or more search parameters are malformed.'],
    [{}, { searches: [{ ...one, q: null }] }, 'One or more search parameters are malformed.'],
    [{}, { searches: [{ ...one, conversation: false }] }, refused('conversation')],
    [
      { conversation_id: '' },
      { searches: [one] },
      '`conversation_id` can only be used if `conversation` is enabled.',
    ],
    [
      { ...asking, conversation_id: 'x' },
      { searches: [one], union: true },
      '`conversation_id` can only be used if `conversation` is enabled.',
    ],
    [
      { conversation: true },
      { searches: [one] },
      '`q` parameter has to be common for all searches if conversation is enabled. Please set `q` as a query parameter in the request, instead of inside the POST body',
    ],
    [asking, { searches: [one] }, '`conversation_model_id` is needed if conversation is enabled.'],
    [
      { ...asking, conversation_model_id: 'none' },
      { searches: [one] },
      '`conversation_model_id` is invalid.',
    ],
  ])('with %j and %j is refused', async (query, body, message) => {
    expect(await multi(query, body)).toEqual([400, { message }])
  })
})

describe('a union', () => {
  it('merges searches into one list', async () => {
    const searches = [
      { collection: 'a', q: '*', sort_by: 'points:desc', filter_by: 'tenant:1' },
      { collection: 'b', q: '*', sort_by: 'points:desc', include_fields: 'title', per_page: 1 },
    ]
    const [status, result] = await multi({ per_page: 2, page: 2 }, { union: true, searches })
    expect(status).toBe(200)
    expect(result).toMatchObject({ found: 5, out_of: 7, page: 2, search_cutoff: false })
    expect(result.hits).toMatchObject([
      { document: { id: '2' }, collection: 'a', search_index: 0 },
      { document: { id: '1' }, collection: 'a', search_index: 0 },
    ])
    expect(result.union_request_params).toMatchObject([{ per_page: 2 }, { per_page: 2 }])

    const [, first] = await multi({ per_page: 2 }, { union: true, searches })
    // Sorted by a field that it does not show.
    expect(first.hits.map((hit: { document: unknown }) => hit.document)).toEqual([
      { title: 'Apple number 11' },
      { title: 'Apple number 10' },
    ])
  })

  describe('sorted by what it may not show', () => {
    const fields = [
      { name: 'title', type: 'string', sort: true },
      { name: 'pay', type: 'object' },
      { name: 'pay.amount', type: 'int32' },
    ]
    const people = [
      { id: '1', title: 'Ann', pay: { amount: 30, since: 1999 } },
      { id: '2', title: 'Bob', pay: { amount: 10, since: 2001 } },
      { id: '3', title: 'Cid', pay: { amount: 20, since: 2003 } },
    ]

    beforeAll(async () => {
      await call('POST', '/collections', { body: { name: 'people', fields, enable_nested_fields: true } })
      for (const body of people) await call('POST', '/collections/people/documents', { body })
    })

    const united = async (parameters: Record<string, unknown>) => {
      const search = { collection: 'people', q: '*', sort_by: 'pay.amount:asc', ...parameters }
      const half = { ...search, filter_by: 'id:[2,3]' }
      const [, { hits }] = await multi(
        {},
        { union: true, searches: [{ ...search, filter_by: 'id:1' }, half] },
      )
      return hits as { document: Record<string, unknown> }[]
    }

    it.each([
      ['pay.amount', { title: 'Bob', pay: { since: 2001 } }],
      ['pay', { title: 'Bob' }],
      ['pa*', { title: 'Bob' }],
      ['pay.a*', { title: 'Bob', pay: { since: 2001 } }],
      ['title,pay.amount', { pay: { since: 2001 } }],
    ])('keeps %s to itself', async (exclude_fields, document) => {
      const hits = await united({ exclude_fields })
      expect(ids({ hits: hits as never })).toEqual(['2', '3', '1'])
      expect(hits[0]!.document).toEqual({ id: '2', ...document })
    })

    it('shows no more than was asked for', async () => {
      const hits = await united({ include_fields: 'title', exclude_fields: 'id' })
      expect(hits.map(({ document }) => document)).toEqual([
        { title: 'Bob' },
        { title: 'Cid' },
        { title: 'Ann' },
      ])
    })

    it('highlights nothing of it either', async () => {
      const found = { q: 'bob', query_by: 'title', sort_by: 'title:asc', exclude_fields: 'title' }
      const [hit] = await united(found)
      expect(hit).toMatchObject({ highlight: {}, highlights: [] })
      const [named] = await united({ ...found, highlight_fields: 'title' })
      expect(named).toMatchObject({ highlights: [{ field: 'title' }] })
    })
  })

  it('has no conversation', async () => {
    const searches = [{ collection: 'a', q: '*' }]
    const query = { q: '*', conversation: true, conversation_model_id: 'none' }
    const [status, result] = await multi(query, { union: true, searches })
    expect(status).toBe(200)
    expect(result).not.toHaveProperty('conversation')
    expect(result.found).toBe(5)
  })

  it('shows duplicates once unless told otherwise', async () => {
    const searches = [
      { collection: 'a', q: '*', filter_by: 'tenant:2' },
      { collection: 'a', q: '*', filter_by: 'tenant:2' },
    ]
    expect((await multi({}, { union: true, searches }))[1]).toMatchObject({ found: 2, out_of: 5 })
    const [, all] = await multi({}, { union: true, searches, remove_duplicates: false })
    expect(all.hits).toHaveLength(4)
  })

  it('is no deeper than all of its searches together may be', async () => {
    const many = Array.from({ length: 50 }, () => ({ collection: 'a', q: '*', per_page: 1 }))
    expect((await multi({ per_page: 100, page: 2 }, { union: true, searches: many }))[1].found).toBe(5)
    const message =
      'Only upto 200 hits can be fetched. Ensure that `page` and `per_page` parameters are within this range.'
    expect(await multi({ per_page: 100, page: 3 }, { union: true, searches: many })).toEqual([
      200,
      { error: message, code: 422 },
    ])
    const deep = { per_page: 250, page: 20 }
    expect((await multi(deep, { union: true, searches: many.slice(0, 2) }))[1].found).toBe(5)
  })
})

describe('scoped keys', () => {
  let parent: string

  async function scoped(parameters: Record<string, unknown>, from = parent): Promise<string> {
    const encoder = new TextEncoder()
    const algorithm = { name: 'HMAC', hash: 'SHA-256' }
    const key = await crypto.subtle.importKey('raw', encoder.encode(from), algorithm, false, ['sign'])
    const text = JSON.stringify(parameters)
    const signature = await crypto.subtle.sign('HMAC', key, encoder.encode(text))
    return btoa(btoa(String.fromCharCode(...new Uint8Array(signature))) + from.slice(0, 4) + text)
  }

  const newKey = async (body: Record<string, unknown>): Promise<string> =>
    (await call('POST', '/keys', { body: { description: '', collections: ['*'], ...body } }))[1].value

  beforeAll(async () => {
    parent = await newKey({ actions: ['documents:search'], collections: ['a', 'none'] })
  })

  it('narrow every search', async () => {
    const key = await scoped({ filter_by: 'tenant:2' })
    expect((await search(APPLES, key))[1].found).toBe(2)
    expect((await search({ ...APPLES, filter_by: 'points:3 || points:1' }, key))[1].found).toBe(1)
    const searches = [{ collection: 'a', ...APPLES, filter_by: 'points:3 || points:1' }]
    expect((await multi({}, { searches }, key))[1].results[0].found).toBe(1)
    const [, { results }] = await multi({}, { searches: [{ ...searches[0], filter_by: 'points:`1' }] }, key)
    expect(results[0].code).toBe(400)
  })

  it('let no document be pinned into a search that their filter keeps out', async () => {
    const key = await scoped({ filter_by: 'tenant:2' })
    const pinning = { ...APPLES, pinned_hits: '0:1,4:1', filter_curated_hits: false }
    expect(ids((await search(pinning, key))[1])).toEqual(['4', '3'])
    const searches = [{ collection: 'a', ...pinning }]
    expect(ids((await multi({}, { searches }, key))[1].results[0])).toEqual(['4', '3'])
    const [, united] = await multi({}, { searches, union: true }, key)
    expect(ids(united)).not.toContain('0')
    // Its owner may want it otherwise.
    const open = await scoped({ filter_by: 'tenant:2', filter_curated_hits: false })
    expect(ids((await search(pinning, open))[1])).toContain('0')
  })

  it('override what the request asks for', async () => {
    const key = await scoped({ per_page: 1, exclude_fields: 'points' })
    const [, result] = await search({ ...APPLES, per_page: 5, exclude_fields: 'title' }, key)
    expect(result.hits).toHaveLength(1)
    expect(Object.keys(result.hits[0].document).sort()).toEqual(['id', 'tenant', 'title'])
  })

  it('may search, in the collections of their parent, and nothing else', async () => {
    const key = await scoped({})
    expect((await search(APPLES, key))[0]).toBe(200)
    expect(await search(APPLES, key, 'b')).toEqual([401, FORBIDDEN])
    expect(await call('GET', '/collections/a', { key })).toEqual([401, FORBIDDEN])
    expect(await call('GET', '/collections/a/documents/0', { key })).toEqual([401, FORBIDDEN])
    const searches = [
      { collection: 'a', ...APPLES },
      { collection: 'b', ...APPLES },
    ]
    expect(await multi({}, { searches }, key)).toEqual([401, FORBIDDEN])
    // Each search by its own key.
    const [, { results }] = await multi(
      {},
      {
        searches: [
          { ...searches[0], 'x-typesense-api-key': key },
          { ...searches[1], 'x-typesense-api-key': 'xyz' },
        ],
      },
      null,
    )
    expect(results.map((result: { found: number }) => result.found)).toEqual([5, 2])
  })

  it('are limited in time, in searches, and to a collection', async () => {
    expect(await search(APPLES, await scoped({ expires_at: 1_000_000_000 }))).toEqual([401, FORBIDDEN])
    const limited = await scoped({ limit_multi_searches: 1 })
    const one = { collection: 'a', ...APPLES }
    expect((await multi({}, { searches: [one] }, limited))[0]).toBe(200)
    expect((await multi({ limit_multi_searches: 9 }, { searches: [one, one] }, limited))[0]).toBe(400)
    const pinned = await scoped({ collection: 'a' })
    expect((await multi({}, { searches: [APPLES] }, pinned))[1].results[0].found).toBe(5)
    expect(await search(APPLES, pinned, 'none')).toEqual([401, FORBIDDEN])
  })

  it('cannot pin two models in one request', async () => {
    const searches = await Promise.all(
      ['one', 'another'].map(async (model) => ({
        collection: 'a',
        query_by: 'title',
        'x-typesense-api-key': await scoped({ conversation_model_id: model }),
      })),
    )
    const asking = { q: 'x', conversation: true, conversation_model_id: 'one' }
    expect(await multi(asking, { searches }, null)).toEqual([401, FORBIDDEN])
  })

  it('need a parent that may only search', async () => {
    const wide = await newKey({ actions: ['documents:search', 'documents:get'] })
    expect((await search(APPLES, wide))[0]).toBe(200)
    expect(await search(APPLES, await scoped({}, wide))).toEqual([401, FORBIDDEN])
    expect(await search(APPLES, await scoped({}, 'xyz'))).toEqual([401, FORBIDDEN])
  })
})
