/** Searches and events through the official client: what is counted, what is logged, and who may do it. */
import { beforeAll, describe, expect, test } from 'vitest'
import { popular, rule, type Stage, stage } from './analytics-stage'
import { client, FORBIDDEN, KEY, request, unique } from './harness'

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

  test('count with what `meta_fields` names where the schema does not', async () => {
    const place = await stage()
    await rule(popular(place, { meta_fields: ['analytics_tag'] }))
    await search(place.products, 'shoe', { analytics_tag: 'shop' })
    await captured('popular', 1)
    await flush()
    expect(await documentsOf(place.queries)).toMatchObject([{ q: 'shoe', count: 1, analytics_tag: 'shop' }])
  })

  test('show nothing of what a key fixes, nor of what it hides', async () => {
    const place = await stage([{ name: 'filter_by', type: 'string', optional: true }])
    await rule(popular(place, { meta_fields: ['filter_by'], expand_query: true }))
    const preset = unique('preset')
    await client()
      .presets()
      .upsert(preset, { value: { filter_by: 'popularity:=5' } } as never)
    const { value } = await client()
      .keys()
      .create({ description: 'search', actions: ['documents:search'], collections: ['*'] })
    const fixed = [{ filter_by: 'popularity:=5' }, { preset }, { preset, filter_by: 'popularity:>4' }]
    for (const [number, embedded] of fixed.entries()) {
      const key = client()
        .keys()
        .generateScopedSearchKey(value!, embedded as never)
      const { found } = await client(key, { additionalHeaders: { 'X-TYPESENSE-USER-ID': `${number}` } })
        .collections(place.products)
        .documents()
        .search({ q: 'sho', query_by: 'name', filter_by: 'popularity:>=0' })
      expect(found).toBe(1)
    }
    await captured('popular', 3)
    await flush()
    const shown = (await documentsOf(place.queries)).map(({ id: _, ...document }) => document)
    expect(shown).toEqual([{ q: 'sho', count: 3 }])
  })

  test('are left out when what a rule would keep of them is long', async () => {
    const place = await stage([{ name: 'analytics_tag', type: 'string' }])
    await rule(popular(place, { meta_fields: ['analytics_tag'] }))
    const long = 'x'.repeat(1_025)
    const multi = (more: object, user: string) =>
      client(KEY, { additionalHeaders: { 'X-TYPESENSE-USER-ID': user } }).multiSearch.perform({
        searches: [{ collection: place.products, query_by: 'name', ...more } as never],
      })
    await multi({ q: 'hat', analytics_tag: long }, 'ann')
    await multi({ q: long }, 'bob')
    // The rule does not keep the filter.
    await multi({ q: 'shoe', analytics_tag: 'shop', filter_by: `name:!=${long}` }, 'cid')
    await captured('popular', 1)
    await flush()
    expect(await counted(place.queries)).toEqual({ shoe: 1 })
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
    const { name } = await rule(popular(place, { limit: 2 }))
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

  test('that are long are refused', async () => {
    const { name } = await rule(popular(await stage()))
    const long = 'x'.repeat(1_025)
    for (const field of ['q', 'filter_by', 'analytics_tag']) {
      const { status, body } = await send(String(name), { q: 'shoe', [field]: long })
      expect([status, body.message]).toEqual([400, `'${field}' has more than 1024 characters`])
    }
    const named = await send(String(name), { q: 'shoe', user_id: 'x'.repeat(257) })
    expect(named.status).toBe(400)
    expect((await send(clicks, { doc_id: '1', more: 'x'.repeat(8 * 1024) })).status).toBe(413)
  })

  test('that an alias brought elsewhere are erased there, too', async () => {
    const [first, second] = [await stage(), await stage()]
    const alias = unique('alias')
    await client().aliases().upsert(alias, { collection_name: first.products })
    const name = unique('log')
    await rule({ name, type: 'log', collection: alias, event_type: 'click' })
    const ann = { doc_id: '1', user_id: 'ann' }
    expect((await send(name, ann)).status).toBe(200)
    await client().aliases().upsert(alias, { collection_name: second.products })
    await expect
      .poll(async () => {
        await send(name, ann)
        const { body } = await request('GET', `/analytics/events?user_id=ann&name=${name}&n=9`)
        return body.events.length
      })
      .toBeGreaterThan(0)
    const erased = await request('DELETE', `/analytics/events?user_id=ann&name=${name}`)
    expect(erased.body.num_deleted).toBeGreaterThanOrEqual(2)
    await client().aliases().upsert(alias, { collection_name: first.products })
    await expect
      .poll(async () => (await client().aliases(alias).retrieve()).collection_name)
      .toBe(first.products)
    expect((await request('DELETE', `/analytics/events?user_id=ann&name=${name}`)).body).toEqual({
      num_deleted: 0,
    })
    await client().analytics.rules(name).delete()
  })

  test("go with a user's conversations, if the key may erase events", async () => {
    const name = unique('log')
    const user = unique('user')
    await rule({ name, type: 'log', collection: place.products, event_type: 'click' })
    await send(name, { doc_id: '1', user_id: user })
    await send(name, { doc_id: '1', user_id: 'bob' })
    const logged = async (whose: string) =>
      (await request('GET', `/analytics/events?user_id=${whose}&name=${name}&n=9`)).body.events.length
    const { body } = await request('POST', '/keys', {
      description: 'conversations alone',
      actions: ['conversations:delete'],
      collections: ['*'],
    })
    expect((await request('DELETE', `/users/${user}/conversations`, undefined, body.value)).status).toBe(200)
    expect(await logged(user)).toBe(1)
    expect((await request('DELETE', `/users/${user}/conversations`)).body).toEqual({ deleted: 0, done: true })
    expect([await logged(user), await logged('bob')]).toEqual([0, 1])
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
