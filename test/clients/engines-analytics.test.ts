/**
 * The steps of Typesense's own tests of its analytics API, for a collection in a cluster: rules, events and counts that name the
 * collection as it is called here. Another collection of the same Parley plays the cluster.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { popular, rule, stage } from './analytics-stage'
import { client, disconnect, KEY, query, request, unique, url } from './harness'

const COMPANIES = [
  { id: '1', name: 'Typesense', popularity: 0 },
  { id: '2', name: 'ACME', popularity: 0 },
]

/** in the cluster, and its name here */
let there: string
let here: string
/** a collection of Parley with the same documents and a counter, and one for queries */
let own: string
let queries: string

beforeAll(async () => {
  const place = await stage()
  there = place.products
  queries = place.queries
  own = (await stage()).products
  for (const name of [there, own])
    await client().collections(name).documents().import(COMPANIES, { action: 'upsert' })
  here = unique('linked')
  const engine = { type: 'typesense', nodes: [url], credentials: { api_key: KEY }, collection: there }
  const reply = await request('POST', '/collections', { name: here, engine })
  if (reply.status !== 201) throw new Error(reply.text)
})

afterAll(() => disconnect([here]))

const RULES = '/analytics/rules'
const inCluster = (type: string, event_type: string, params?: object) => ({
  name: unique('rule'),
  type,
  collection: here,
  event_type,
  ...(params && { params }),
})

const search = (q: string, user: string, collection = here) =>
  fetch(url + query(`/collections/${collection}/documents/search`, { q, query_by: 'name' }), {
    headers: { 'x-typesense-api-key': KEY, 'x-typesense-user-id': user },
  }).then((response) => response.text())

const documentsOf = async (collection: string) => {
  const { text } = await request('GET', `/collections/${collection}/documents/export`)
  return text === '' ? [] : text.split('\n').map((line) => JSON.parse(line))
}

const counted = async (collection: string): Promise<Record<string, number>> => {
  await request('POST', '/analytics/flush')
  return Object.fromEntries((await documentsOf(collection)).map(({ q, count }) => [q, count]))
}

const event = (name: string, event_type: string, data: object) =>
  request('POST', '/analytics/events', { name, event_type, data })

describe('what is kept with the documents is refused by name', () => {
  test.each([
    ['clicks in a log', 'log', 'click', undefined],
    ['searches in a log', 'log', 'search', { meta_fields: ['analytics_tag'], expand_query: true }],
    ['clicks in the documents', 'counter', 'click', { counter_field: 'popularity', weight: 1 }],
    ['conversions in the documents', 'counter', 'conversion', { counter_field: 'popularity', weight: 2 }],
  ])('%s', async (_, type, event_type, params) => {
    const given = inCluster(type, event_type, params)
    for (const [method, path] of [
      ['POST', RULES],
      ['PUT', `${RULES}/${given.name}`],
    ] as const) {
      const { status, body } = await request(method, path, given)
      expect([status, body.message]).toEqual([400, expect.stringContaining(`\`${here}\` lives in a cluster`)])
    }
    const sent = await event(given.name, event_type, { doc_id: '1', user_id: 'user1' })
    expect([sent.status, sent.body.message]).toEqual([400, 'Rule not found'])
  })
})

describe('what is kept in a collection of Parley', () => {
  test('rules are made, read, listed, changed and deleted', async () => {
    const made = await rule({ ...popular({ products: here, queries }), rule_tag: 'tag1' })
    expect(made).toMatchObject({ collection: here, params: { destination_collection: queries } })
    const path = `${RULES}/${made.name}`
    const shown = (await request('GET', path)).body
    // The reply to a new rule has no defaults.
    expect(shown).toMatchObject(made)
    expect((await request('GET', RULES)).body).toContainEqual(shown)
    expect((await request('PUT', path, { rule_tag: 'tag2' })).body).toEqual({ ...shown, rule_tag: 'tag2' })
    expect((await request('DELETE', path)).body).toMatchObject({ name: made.name })
    expect((await request('GET', path)).body.message).toBe('Rule not found')
  })

  test('searches are counted as they were typed to the end, and those without hits by their own rule', async () => {
    const found = (await stage()).queries
    const missed = (await stage()).queries
    await rule(popular({ products: here, queries: found }))
    await rule({ ...popular({ products: here, queries: missed }), type: 'nohits_queries' })
    for (const q of ['type', 'typesen', 'typesense']) await search(q, 'user1')
    await search('acme', 'user2')
    await search('nothing like it', 'user3')
    await expect.poll(() => counted(found), { timeout: 20_000 }).toMatchObject({ typesense: 1, acme: 1 })
    await expect.poll(() => counted(missed), { timeout: 20_000 }).toEqual({ 'nothing like it': 1 })
    expect(await counted(found)).not.toHaveProperty('type')
  })

  test('queries that are sent as events are counted', async () => {
    const counts = (await stage()).queries
    const { name } = await rule(
      popular({ products: here, queries: counts }, { capture_search_requests: false }),
    )
    for (let sent = 0; sent < 2; sent++) {
      expect((await event(String(name), 'search', { q: 'product', user_id: 'user1' })).body).toEqual({
        ok: true,
      })
    }
    expect(await counted(counts)).toEqual({ product: 2 })
  })

  test('clicks and conversions count in the documents of that collection', async () => {
    const counter = (event_type: string, weight: number) =>
      rule(
        inCluster('counter', event_type, {
          destination_collection: own,
          counter_field: 'popularity',
          weight,
        }),
      )
    const { name: clicks } = await counter('click', 1)
    const { name: conversions } = await counter('conversion', 2)
    await event(String(clicks), 'click', { doc_id: '1', user_id: 'user1' })
    await event(String(conversions), 'conversion', { doc_id: '1', user_id: 'user1' })
    await request('POST', '/analytics/flush')
    const popularity = async (name: string) =>
      (await request('GET', `/collections/${name}/documents/1`)).body.popularity
    expect([await popularity(own), await popularity(here)]).toEqual([3, 0])
  })
})

test("the cluster's own rules count what passes through, as searches of one user", async () => {
  const counts = (await stage()).queries
  await rule(popular({ products: there, queries: counts }))
  // Who searched stays with Parley: to the cluster the second search is the first one, typed on.
  await search('acme', 'ann')
  await search('typesense', 'bob')
  await expect.poll(() => counted(counts), { timeout: 20_000 }).toEqual({ typesense: 1 })
})
