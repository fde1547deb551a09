import { expect, it } from 'vitest'
import { requireRate } from '../../src/auth/rate-limit'

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

it('is off where it is turned off, or where nothing is bound', async () => {
  await requireRate(limited(false, { RATE_LIMITS: 'off' }).env, 'RATE_LIMIT', { digest: 'd' })
  await requireRate({} as Cloudflare.Env, 'RATE_LIMIT', { digest: 'd' })
})
