/** How many searches a request may have, that each counts, and what a key of a page may spend. */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { ask, makeKey, setStage } from '../api/parley/stage'
import { call, queryString } from '../api/typesense/api'
import { scopedKey } from '../api/typesense/conversing'

const SEARCH = { actions: ['documents:search'] }
const TOO_MANY = [400, { message: 'Number of multi searches exceeds `limit_multi_searches` parameter.' }]
const keys: Record<string, string> = {}

beforeAll(async () => {
  await setStage()
  keys.server = await makeKey(SEARCH)
  keys.page = await makeKey({ ...SEARCH, limits: { user_id: 'ann' } })
  keys.scoped = await scopedKey(keys.server, { user_id: 'ann' })
  keys.asking = await scopedKey(keys.server, { limit_multi_searches: 200 })
  keys.two = await scopedKey(keys.server, { limit_multi_searches: 2 })
  keys.admin = 'xyz'
})

const searches = (count: number) =>
  Array.from({ length: count }, () => ({ collection: 'facts', q: 'tower', query_by: 'text', per_page: 1 }))

const multi = (key: string, count: number, parameters: Record<string, unknown> = {}, union = false) =>
  call('POST', `/multi_search${queryString(parameters)}`, { key, body: { searches: searches(count), union } })

describe('the searches of a request', () => {
  it.each([
    ['page', 10],
    ['scoped', 10],
    ['asking', 10],
    ['two', 2],
    ['server', 50],
  ])('of a %s key are at most %i, whatever it asks for', async (kind, most) => {
    const key = keys[kind]!
    for (const parameters of [{}, { limit_multi_searches: 250 }, { limit_multi_searches: 'many' }]) {
      expect((await multi(key, most, parameters))[0]).toBe(200)
      expect(await multi(key, most + 1, parameters)).toEqual(TOO_MANY)
    }
    expect(await multi(key, most + 1, { limit_multi_searches: 250 }, true)).toEqual(TOO_MANY)
    expect(await multi(key, 2, { limit_multi_searches: 1 })).toEqual(TOO_MANY)
  })

  it('of the admin key are as many as it asks for, to 250', async () => {
    expect(await multi('xyz', 51)).toEqual(TOO_MANY)
    expect((await multi('xyz', 51, { limit_multi_searches: 60 }))[0]).toBe(200)
    expect(await multi('xyz', 251, { limit_multi_searches: 1_000 })).toEqual(TOO_MANY)
  })

  it('are those of the narrowest key among several', async () => {
    const each = searches(11).map((search, index) => ({
      ...search,
      'x-typesense-api-key': index === 0 ? keys.page : keys.server,
    }))
    expect(await call('POST', '/multi_search', { key: null, body: { searches: each } })).toEqual(TOO_MANY)
  })

  it.each(['page', 'scoped'])('of a question by a %s key are at most 10', async (kind) => {
    const asking = (count: number) =>
      ask(
        { collections: undefined, searches: searches(count).map(({ q: _, ...rest }) => rest) },
        { key: keys[kind]! },
      )
    expect((await asking(10))[0]).toBe(200)
    const message = 'A request with this key takes at most 10 searches.'
    expect(await asking(11)).toEqual([400, { message, code: 'bad_request' }])
  })
})

describe('the rate of a key', () => {
  let counted: string[] = []
  const before = { RATE_LIMIT: env.RATE_LIMIT, RATE_LIMITS: env.RATE_LIMITS }

  const limit = (most = Number.POSITIVE_INFINITY): void => {
    counted = []
    const binding = { limit: async ({ key }: { key: string }) => ({ success: counted.push(key) <= most }) }
    Object.assign(env, { RATE_LIMIT: binding, RATE_LIMITS: 'on' })
  }
  afterEach(() => void Object.assign(env, before))

  /** How often each key was counted, look-ups of keys aside. */
  const counts = (): number[] => {
    const times = new Map<string, number>()
    for (const key of counted) if (!key.startsWith('address')) times.set(key, (times.get(key) ?? 0) + 1)
    return [...times.values()].sort((a, b) => a - b)
  }

  it('counts each search of a request', async () => {
    limit()
    await multi(keys.server!, 7)
    expect(counts()).toEqual([7])
    limit()
    await multi(keys.server!, 7, {}, true)
    expect(counts()).toEqual([7])
    limit()
    await call('GET', '/collections/facts/documents/search?q=*', { key: keys.server! })
    expect(counts()).toEqual([1])
    limit()
    const three = searches(3).map(({ q: _, ...rest }) => rest)
    expect((await ask({ collections: undefined, searches: three }, { key: keys.server! }))[0]).toBe(200)
    expect(counts()).toEqual([3])
  })

  it('counts each for the key that runs it, and for the parent of a scoped key', async () => {
    limit()
    const own = [keys.server!, keys.page!, keys.page!]
    const each = searches(3).map((search, index) => ({ ...search, 'x-typesense-api-key': own[index] }))
    await call('POST', '/multi_search', { key: null, body: { searches: each } })
    expect(counts()).toEqual([1, 2])
    limit()
    await multi(keys.scoped!, 5)
    const family = counted.filter((key) => key.includes('/'))
    expect([family.length, counts().reduce((sum, times) => sum + times, 0)]).toEqual([5, 10])
  })

  it('refuses a request whose searches pass it, and counts no more of a request than it may have', async () => {
    limit(5)
    expect((await multi(keys.server!, 6))[0]).toBe(429)
    limit()
    expect((await multi(keys.server!, 5_000))[0]).toBe(400)
    expect(counts()).toEqual([50])
  })
})

describe('the budget of a key that is bound to an assistant', () => {
  const limits = async (given: Record<string, unknown>) => {
    const body = { description: '', ...SEARCH, collections: ['*'], limits: given }
    const [status, key] = await call('POST', '/keys', { body })
    expect(status).toBe(201)
    expect((await call('GET', `/keys/${key.id}`))[1].limits).toEqual(key.limits)
    return key.limits
  }
  const bound = { assistant: 'help' }
  const BUDGET = { turns_per_day: 1_000, tokens_per_day: 5_000_000 }

  it.each([
    ['there unless another one is given', {}, BUDGET],
    ['the one that is given', { turns_per_day: 5 }, { turns_per_day: 5 }],
    ['that of tokens, where one is given', { tokens_per_day: 7 }, { tokens_per_day: 7 }],
    ['taken away in part', { turns_per_day: null }, { tokens_per_day: 5_000_000 }],
    ['taken away', { turns_per_day: null, tokens_per_day: null }, {}],
  ])('is %s', async (_, given, expected) => {
    expect(await limits({ ...bound, ...given })).toEqual({ ...bound, ...expected })
  })

  it('is none of another key', async () => {
    expect(await limits({ user_id: 'ann' })).toEqual({ user_id: 'ann' })
    expect(await limits({ user_id: 'ann', turns_per_day: null })).toEqual({ user_id: 'ann' })
  })
})
