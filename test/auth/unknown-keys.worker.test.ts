/** What it costs to try keys: a look-up each at first, then nothing, and past a limit a refusal. */
import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { authenticate, forgetKeys } from '../../src/auth/authenticate'
import { createKey } from '../../src/auth/keys'

beforeEach(forgetKeys)

/** An env that counts the queries to D1, and lets an address look so many keys up. */
function watched(allowed = 1_000) {
  const seen = { queries: 0, counted: [] as string[] }
  const DB = new Proxy(env.DB, {
    get: (db, name) => {
      if (name === 'prepare') seen.queries += 1
      const value = Reflect.get(db, name)
      return typeof value === 'function' ? value.bind(db) : value
    },
  })
  const limit = async ({ key }: { key: string }) => ({ success: seen.counted.push(key) <= allowed })
  return { seen, env: { ...env, DB, RATE_LIMITS: 'on', RATE_LIMIT: { limit } } as Cloudflare.Env }
}

const wrong = () => `wrong-${crypto.randomUUID()}`
const makeKey = async (value?: string): Promise<string> => {
  const key = { description: '', actions: ['documents:search', 'documents:get'], collections: ['*'] }
  return (await createKey(env, { ...key, ...(value !== undefined && { value }) })).value!
}

describe('an unknown key', () => {
  it('is looked up once, and refused without a look for a while', async () => {
    const { seen, env } = watched()
    const key = wrong()
    for (let n = 0; n < 5; n++) expect(await authenticate(env, key, '192.0.2.1')).toBeUndefined()
    expect(seen.counted).toEqual(['address 192.0.2.1'])
    const once = seen.queries
    expect(await authenticate(env, wrong(), '192.0.2.1')).toBeUndefined()
    expect(seen.queries).toBe(2 * once)
  })

  it('works as soon as it is made', async () => {
    const { env } = watched()
    const value = wrong()
    expect(await authenticate(env, value, '192.0.2.1')).toBeUndefined()
    await makeKey(value)
    expect(await authenticate(env, value, '192.0.2.1')).toBeDefined()
  })

  it('costs no look past the limit of its address, while known keys go on', async () => {
    const { seen, env } = watched(4)
    const known = await makeKey()
    expect(await authenticate(env, known, '192.0.2.1')).toBeDefined()
    for (let n = 0; n < 3; n++) await authenticate(env, wrong(), '192.0.2.1')
    const { queries } = seen
    const refused = { status: 429, message: 'Rate limit exceeded or blocked', retryAfter: 10 }
    await expect(authenticate(env, wrong(), '192.0.2.1')).rejects.toMatchObject(refused)
    expect(seen.queries).toBe(queries)
    expect(await authenticate(env, known, '192.0.2.1')).toBeDefined()
    expect(await authenticate(env, 'xyz', '192.0.2.1')).toBeDefined()
  })
})

it('keys that are known are not forgotten, however many unknown ones are tried', async () => {
  const { seen, env } = watched(100_000)
  const known = await makeKey()
  // However long the tries take: a known key is looked up again after some seconds.
  const now = Date.now()
  vi.spyOn(Date, 'now').mockReturnValue(now)
  await authenticate(env, known, '192.0.2.1')
  for (let n = 0; n < 1_100; n++) await authenticate(env, wrong(), '192.0.2.1')
  const { queries } = seen
  const counted = seen.counted.length
  expect(await authenticate(env, known, '192.0.2.1')).toBeDefined()
  expect(seen.queries).toBe(queries)
  expect(seen.counted).toHaveLength(counted)
  vi.restoreAllMocks()
})

it.each([
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::6', '2001:db8:0:0'],
  ['2001:0db8:0001::', '2001:db8:1:0'],
  ['::1', '0:0:0:0'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['', ''],
])('an address counts with its network: %s', async (address, network) => {
  const { seen, env } = watched()
  await authenticate(env, wrong(), address)
  expect(seen.counted).toEqual([`address ${network}`])
})
