/** Analytics rules and events through the official client: what is counted, what is logged, and who may do it. */
import { beforeAll, describe, expect, test } from 'vitest'
import { client, FORBIDDEN, KEY, request, unique } from './harness'

const PRODUCTS = [
  { id: '1', name: 'Red shoe', popularity: 5 },
  { id: '2', name: 'Blue shoe', popularity: 0 },
  { id: '3', name: 'Hat', popularity: 0 },
]

interface Stage {
  products: string
  queries: string
}

/** A collection to search, and one for its queries. */
async function stage(fields: { name: string; type: 'string' }[] = []): Promise<Stage> {
  const products = unique('products')
  const queries = unique('queries')
  await client()
    .collections()
    .create({
      name: products,
      fields: [
        { name: 'name', type: 'string' },
        { name: 'popularity', type: 'int32', optional: true },
      ],
    })
  await client().collections(products).documents().import(PRODUCTS)
  await client()
    .collections()
    .create({
      name: queries,
      fields: [{ name: 'q', type: 'string' }, { name: 'count', type: 'int32' }, ...fields],
    })
  return { products, queries }
}

const rule = (given: object, key = KEY) =>
  client(key)
    .analytics.rules()
    .create(given as never) as Promise<Record<string, unknown>>

const popular = ({ products, queries }: Stage, params: object = {}, more: object = {}) => ({
  name: unique('rule'),
  type: 'popular_queries',
  collection: products,
  event_type: 'search',
  params: { destination_collection: queries, limit: 100, ...params },
  ...more,
})

const search = (collection: string, q: string, parameters: object = {}, user = 'somebody') =>
  client(KEY, { additionalHeaders: { 'X-TYPESENSE-USER-ID': user } })
    .collections(collection)
    .documents()
    .search({ q, query_by: 'name', ...parameters } as never)

const flush = () => request('POST', '/analytics/flush')

/** Capturing begins after a search was answered: waits until so many wait in all, or have been counted. */
async function captured(type: 'popular' | 'nohits' | 'log', least: number): Promise<void> {
  await expect
    .poll(
      async () => {
        const { body } = await request('GET', '/analytics/status')
        return body[`${type}_prefix_queries`] + body.query_counter_events
      },
      { timeout: 20_000 },
    )
    .toBeGreaterThanOrEqual(least)
}

const documentsOf = async (collection: string) => {
  const { text } = await request('GET', `/collections/${collection}/documents/export`)
  return text === '' ? [] : text.split('\n').map((line) => JSON.parse(line))
}

const counted = async (collection: string) =>
  Object.fromEntries((await documentsOf(collection)).map(({ q, count }) => [q, count]))

describe('rules', () => {
  let place: Stage
  beforeAll(async () => {
    place = await stage()
  })

  test('are made, listed, changed, read and deleted', async () => {
    const given = popular(place, {}, { rule_tag: unique('tag') })
    const made = await rule(given)
    expect(made).toEqual({
      ...given,
      params: { ...given.params, expand_query: false, capture_search_requests: true },
    })
    const rules = client().analytics.rules()
    expect(await rules.retrieve(given.rule_tag as never)).toEqual([made])
    expect(await rules.retrieve()).toContainEqual(made)
    const changed = await rules.upsert(given.name, { params: { limit: 50 } } as never)
    expect(changed).toEqual({ ...made, params: { ...(made.params as object), limit: 50 } })
    expect(await client().analytics.rules(given.name).retrieve()).toEqual(changed)
    expect(await client().analytics.rules(given.name).delete()).toMatchObject({ name: given.name })
    await expect(client().analytics.rules(given.name).retrieve()).rejects.toMatchObject({
      httpStatus: 400,
      message: expect.stringContaining('Rule not found'),
    })
  })

  test('of a list are each made or refused', async () => {
    const made = await client()
      .analytics.rules()
      .create([popular(place), popular(place, { limit: 0 })] as never)
    expect(made).toEqual([
      expect.objectContaining({ type: 'popular_queries' }),
      { error: 'Limit should be a number greater than 0' },
    ])
  })

  test.each<[object, string]>([
    [{ name: '' }, 'Name is required when creating an analytics rule'],
    [{ event_type: 5 }, 'Event type is required when creating a new analytics rule'],
    [{ type: undefined }, 'Type is required when creating a new analytics rule'],
    [{ collection: undefined }, 'Collection is required when creating a new analytics rule'],
    [{ collection: 'nowhere' }, 'Collection nowhere does not exist'],
    [{ rule_tag: 5 }, 'Rule tag should be a string'],
    [{ event_type: 'click' }, 'Event type or type is invalid (or) combination of both is invalid'],
    [{ type: 'clicks' }, 'Event type or type is invalid (or) combination of both is invalid'],
    [
      { params: {} },
      'Destination collection is required when creating a no hit queries or popular queries type rule',
    ],
    [{ params: { destination_collection: 'nowhere', limit: 5 } }, 'Destination collection does not exist'],
    [{ params: { destination_collection: 'x', limit: 20_000 } }, 'Limit should be at most 10000'],
    [{ params: { expand_query: 'yes' } }, 'Expand query should be a boolean'],
    [{ params: { capture_search_requests: 1 } }, 'Capture search requests should be a boolean'],
    [{ params: { meta_fields: ['q'] } }, 'Meta field should be either filter_by or analytics_tag'],
    [
      { type: 'counter', event_type: 'click', params: { weight: 1 } },
      'Counter field is required when creating a counter type rule',
    ],
    [
      { type: 'counter', event_type: 'click', params: { counter_field: 'n', weight: 0 } },
      'Weight should be a number greater than 0',
    ],
    [
      { type: 'counter', event_type: 'click', params: { counter_field: 'name', weight: 1 } },
      'The destination collection needs a field `name` of the type int32, int64 or float.',
    ],
  ])('%j is refused', async (wrong, message) => {
    const { status, body } = await request('POST', '/analytics/rules', { ...popular(place), ...wrong })
    expect([status, body.message]).toEqual([400, message])
  })

  test('keep their type, collection and event', async () => {
    const { name } = (await rule(popular(place))) as { name: string }
    for (const [change, message] of [
      [{ type: 'log' }, 'Rule type cannot be changed'],
      [{ collection: 'x' }, 'Rule collection cannot be changed'],
      [{ event_type: 'click' }, 'Rule event type cannot be changed'],
    ]) {
      const { status, body } = await request('PUT', `/analytics/rules/${name}`, change)
      expect([status, body.message]).toEqual([400, message])
    }
    const { status, body } = await request('POST', '/analytics/rules', { ...popular(place), name })
    expect([status, body.message]).toEqual([400, 'Rule already exists'])
  })

  test('of release 29 become rules of release 30', async () => {
    const name = unique('rule')
    const events = [
      { type: 'click', name: `${name}-click`, weight: 1 },
      { type: 'conversion', name: `${name}-buy`, weight: 4 },
    ]
    const params = {
      source: { collections: [place.products], events },
      destination: { collection: place.products, counter_field: 'popularity' },
    }
    const { status, body } = await request('PUT', `/analytics/rules/${name}`, { type: 'counter', params })
    expect([status, body]).toEqual([200, { name, type: 'counter', params }])
    expect((await request('GET', `/analytics/rules?rule_tag=${name}`)).body).toMatchObject([
      { name: `${name}-click`, event_type: 'click', params: { weight: 1, counter_field: 'popularity' } },
      { name: `${name}-buy`, event_type: 'conversion', params: { weight: 4 } },
    ])
  })
})

describe('searches', () => {
  test('are counted once for each pause in typing, and counts add up', async () => {
    const place = await stage()
    await rule(popular(place))
    for (const q of ['s', 'sh', ' Shoe ']) await search(place.products, q)
    await search(place.products, 'hat', {}, 'somebody else')
    await captured('popular', 2)
    await flush()
    expect(await counted(place.queries)).toEqual({ shoe: 1, hat: 1 })
    await search(place.products, 'shoe')
    await captured('popular', 1)
    await flush()
    expect(await counted(place.queries)).toEqual({ shoe: 2, hat: 1 })
  })

  test('without hits are counted by their own rule', async () => {
    const place = await stage()
    await rule({ ...popular(place), type: 'nohits_queries' })
    await search(place.products, 'sunglasses')
    await captured('nohits', 1)
    // Somebody who goes on and finds something has not gone without.
    await search(place.products, 'umbrella', {}, 'typist')
    await captured('nohits', 2)
    await search(place.products, 'hat', {}, 'typist')
    await expect
      .poll(async () => (await request('GET', '/analytics/status')).body.nohits_prefix_queries, {
        timeout: 20_000,
      })
      .toBeLessThan(2)
    await flush()
    expect(await counted(place.queries)).toEqual({ sunglasses: 1 })
  })

  test('count with what `meta_fields` names, and as they were completed', async () => {
    const place = await stage([
      { name: 'analytics_tag', type: 'string' },
      { name: 'filter_by', type: 'string' },
    ])
    await rule(popular(place, { meta_fields: ['analytics_tag', 'filter_by'], expand_query: true }))
    await search(place.products, 'red sho', { analytics_tag: 'shop', filter_by: 'popularity:>1' })
    await captured('popular', 1)
    await flush()
    const [document] = await documentsOf(place.queries)
    const { id, ...shown } = document
    expect(id).toMatch(/^[0-9a-f]{20}$/)
    expect(shown).toEqual({ q: 'red shoe', count: 1, analytics_tag: 'shop', filter_by: 'popularity:>1' })
  })

  test('are left out when they, or the rule, say so', async () => {
    const place = await stage()
    await rule(popular(place, { capture_search_requests: false }))
    const watched = await stage()
    await rule(popular(watched))
    await search(watched.products, 'hat', { enable_analytics: false })
    await search(watched.products, 'blue', { page: 2 })
    await search(watched.products, '*')
    await search(place.products, 'hat')
    await search(watched.products, 'shoe', {}, 'last')
    await captured('popular', 1)
    await flush()
    expect([await counted(place.queries), await counted(watched.queries)]).toEqual([{}, { shoe: 1 }])
  })

  test('of a multi_search, and by an alias, are counted too', async () => {
    const place = await stage()
    const alias = unique('alias')
    await client().aliases().upsert(alias, { collection_name: place.products })
    await rule(popular(place))
    await client().multiSearch.perform({ searches: [{ collection: alias, q: 'hat', query_by: 'name' }] })
    await captured('popular', 1)
    await flush()
    expect(await counted(place.queries)).toEqual({ hat: 1 })
  })

  test('keep the most frequent ones when there are too many', async () => {
    const place = await stage()
    const { name } = (await rule(popular(place, { limit: 2 }))) as { name: string }
    for (const q of ['a', 'b', 'b', 'c', 'c', 'c']) {
      await client()
        .analytics.events()
        .create({ name, data: { q, user_id: 'u' } } as never)
    }
    await flush()
    expect(await counted(place.queries)).toEqual({ b: 2, c: 3 })
  })
})

describe('events', () => {
  let place: Stage
  let clicks: string
  let buys: string
  beforeAll(async () => {
    place = await stage()
    const counter = (event_type: string, weight: number) =>
      rule({
        ...popular(place),
        type: 'counter',
        event_type,
        params: { counter_field: 'popularity', weight },
      })
    clicks = String((await counter('click', 1)).name)
    buys = String((await counter('conversion', 10)).name)
  })

  const send = (name: string, data: object, key = KEY) =>
    request('POST', '/analytics/events', { name, event_type: 'click', data }, key)

  test('count in the documents that they name', async () => {
    expect(
      await client()
        .analytics.events()
        .create({ name: clicks, data: { doc_id: '1', user_id: 'u' } } as never),
    ).toEqual({ ok: true })
    await send(clicks, { doc_ids: ['1', '2', 'unknown'], user_id: 'u' })
    await send(buys, { doc_id: '2', user_id: 'u' })
    await flush()
    expect((await documentsOf(place.products)).map(({ popularity }) => popularity)).toEqual([7, 11, 0])
  })

  test.each<[object, string]>([
    [{ data: {} }, 'name is required'],
    [{ name: 'CLICKS' }, 'data is required'],
    [{ name: 'CLICKS', data: { user_id: 5 } }, 'user_id should be a string'],
    [{ name: 'nobody', data: {} }, 'Rule not found'],
    [{ name: 'CLICKS', data: {} }, 'doc_ids or doc_id is required'],
    [{ name: 'CLICKS', data: { doc_id: 5 } }, 'doc_id should be a string'],
    [{ name: 'CLICKS', data: { doc_ids: '5' } }, 'doc_ids should be an array'],
    [{ name: 'CLICKS', data: { doc_ids: [], doc_id: '1' } }, 'doc_ids and doc_id cannot both be present'],
    [{ name: 'CLICKS', data: { doc_ids: Array(101).fill('1') } }, 'doc_ids should have at most 100 entries'],
  ])('%j is refused', async (event, message) => {
    const named = JSON.parse(JSON.stringify(event).replace('CLICKS', clicks))
    const { status, body } = await request('POST', '/analytics/events', named)
    expect([status, body.message]).toEqual([400, message])
  })

  test('are logged, read by user, and erased', async () => {
    const name = unique('log')
    await rule({ name, type: 'log', collection: place.products, event_type: 'click' })
    await send(name, { doc_id: '1', user_id: 'ann' })
    await send(name, { doc_ids: ['1', '2'], user_id: 'ann', query: 'shoe' })
    await send(name, { doc_id: '3', user_id: 'bob' })
    const { events } = await client().analytics.events().retrieve({ user_id: 'ann', name, n: 10 })
    expect(events).toEqual([
      expect.objectContaining({
        name,
        event_type: 'click',
        collection: place.products,
        user_id: 'ann',
        doc_ids: ['1', '2'],
        query: 'shoe',
        timestamp: expect.any(Number),
      }),
      expect.objectContaining({ doc_id: '1' }),
    ])
    expect((await client().analytics.events().retrieve({ user_id: 'ann', name, n: 1 })).events).toHaveLength(
      1,
    )
    const tooMany = await request('GET', `/analytics/events?user_id=ann&name=${name}&n=1001`)
    expect([tooMany.status, tooMany.body.message]).toEqual([400, 'N cannot be greater than 1000'])
    expect((await request('DELETE', '/analytics/events?user_id=ann')).body).toEqual({ num_deleted: 2 })
    expect((await client().analytics.events().retrieve({ user_id: 'ann', name, n: 10 })).events).toEqual([])
    // The log of a rule goes with it.
    await client().analytics.rules(name).delete()
    await rule({ name, type: 'log', collection: place.products, event_type: 'click' })
    expect((await client().analytics.events().retrieve({ user_id: 'bob', name, n: 10 })).events).toEqual([])
  })

  test('of searches are logged with the user that was named', async () => {
    const name = unique('log')
    const params = { meta_fields: ['analytics_tag'] }
    await rule({ name, type: 'log', collection: place.products, event_type: 'search', params })
    for (const q of ['h', 'hat']) await search(place.products, q, { analytics_tag: 'shop' }, 'ann')
    await captured('log', 1)
    await flush()
    const { events } = await client().analytics.events().retrieve({ user_id: 'ann', name, n: 10 })
    expect(events).toEqual([
      expect.objectContaining({ query: 'hat', event_type: 'search', analytics_tag: 'shop', user_id: 'ann' }),
    ])
  })

  test("a key writes no counters of collections that are not its own, nor another's rules", async () => {
    const key = async (collections: string[], actions: string[], limits?: object) => {
      const { body } = await request('POST', '/keys', { description: 'x', actions, collections, limits })
      return body.value as string
    }
    const own = await key([place.products], ['analytics/events:create'])
    const other = await key(['other'], ['analytics/*', 'analytics/events:create', 'analytics/rules:*'])
    expect((await send(clicks, { doc_id: '3' }, own)).body).toEqual({ ok: true })
    const refused = [
      await send(clicks, { doc_id: '3' }, other),
      await request('GET', `/analytics/rules/${clicks}`, undefined, other),
      await request('DELETE', `/analytics/rules/${clicks}`, undefined, other),
      await request('PUT', `/analytics/rules/${clicks}`, { rule_tag: 'x' }, other),
      await request('POST', '/analytics/rules', popular(place), other),
      await request('GET', '/analytics/rules', undefined, own),
    ]
    expect(refused.map(({ status, body }) => [status, body.message])).toEqual(
      refused.map(() => [401, FORBIDDEN]),
    )
    expect((await request('GET', '/analytics/rules', undefined, other)).body).toEqual([])

    // The user that a page's key fixes is the one of its events, and reads no other one's.
    const name = unique('log')
    await rule({ name, type: 'log', collection: place.products, event_type: 'click' })
    const actions = ['analytics/events:create', 'analytics/events:list', 'analytics/events:delete']
    const ann = await key([place.products], actions, { user_id: 'ann' })
    await send(name, { doc_id: '1', user_id: 'bob' }, ann)
    const read = (user: string) =>
      request('GET', `/analytics/events?user_id=${user}&name=${name}&n=5`, undefined, ann)
    expect((await read('ann')).body.events).toHaveLength(1)
    expect((await read('bob')).status).toBe(401)
    expect((await request('DELETE', '/analytics/events?user_id=bob', undefined, ann)).status).toBe(401)
  })
})
