import { expect, it } from 'vitest'
import { requireEvents, requireRate } from '../../src/auth/authenticate'

const limited = (success: boolean, more: Partial<Cloudflare.Env> = {}) => {
  const keys: string[] = []
  const limit = async ({ key }: { key: string }) => {
    keys.push(key)
    return { success }
  }
  return { keys, env: { RATE_LIMIT: { limit }, RATE_LIMIT_TURNS: { limit }, ...more } as Cloudflare.Env }
}

it('counts by key, and refuses as Typesense does', async () => {
  const open = limited(true)
  await requireRate(open.env, 'RATE_LIMIT', { digest: 'd' })
  expect(open.keys).toEqual(['d'])
  const { env } = limited(false)
  const refused = { status: 429, message: 'Rate limit exceeded or blocked' }
  await expect(requireRate(env, 'RATE_LIMIT', { digest: 'd' })).rejects.toMatchObject({
    ...refused,
    retryAfter: 10,
  })
  await expect(requireRate(env, 'RATE_LIMIT_TURNS', { digest: 'd' })).rejects.toMatchObject({
    ...refused,
    retryAfter: 60,
  })
})

it('counts events by key and address, an IPv6 network as one', async () => {
  const { keys, env } = limited(true)
  const events = { ...env, RATE_LIMIT_EVENTS: env.RATE_LIMIT } as Cloudflare.Env
  await requireEvents(events, { digest: 'd' }, '192.0.2.1')
  await requireEvents(events, { digest: 'd' }, '2001:db8:1:2:3::4')
  expect(keys).toEqual(['d 192.0.2.1', 'd 2001:db8:1:2'])
})

it('is off where it is turned off, or where nothing is bound', async () => {
  await requireRate(limited(false, { RATE_LIMITS: 'off' }).env, 'RATE_LIMIT', { digest: 'd' })
  await requireRate({} as Cloudflare.Env, 'RATE_LIMIT', { digest: 'd' })
})

it('counts the scoped keys of a parent together too, however many are signed', async () => {
  const counts = new Map<string, number>()
  const limit = async ({ key }: { key: string }) => {
    counts.set(key, (counts.get(key) ?? 0) + 1)
    return { success: counts.get(key)! <= 5 }
  }
  const env = { RATE_LIMIT: { limit }, RATE_LIMIT_TURNS: { limit } } as unknown as Cloudflare.Env
  const passed = async (digest: string, parentDigest: string) =>
    requireRate(env, 'RATE_LIMIT_TURNS', { digest, parentDigest }).then(
      () => 1,
      (error) => {
        expect(error).toMatchObject({ status: 429, retryAfter: 60 })
        return 0
      },
    )
  let forged = 0
  for (let key = 0; key < 2_000; key++) forged += await passed(`parent:${key}`, 'parent')
  expect(forged).toBe(20 * 5)
  // Another parent's keys, and the parent itself, have counters of their own.
  expect(await passed('other:1', 'other')).toBe(1)
  await requireRate(env, 'RATE_LIMIT_TURNS', { digest: 'parent' })
})
