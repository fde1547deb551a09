/**
 * Limits requests and turns per key. The platform's Rate Limiting binding counts them, at each location separately
 * and without a network call. Limits are per key rather than per address, since a whole school can share one address,
 * and one attacker can have thousands. Only unknown keys are limited by address. Without the binding, nothing is
 * limited.
 */
import { ApiError } from '../errors'
import type { Access } from './access'

/** The `period` of each limit in wrangler.toml, in seconds. The binding does not expose it. */
const PERIODS = { RATE_LIMIT: 10, RATE_LIMIT_TURNS: 60, RATE_LIMIT_EVENTS: 60 } as const

/**
 * All scoped keys of one parent together have this many times the limit of one key. Whoever has the parent, which may
 * be public in a page, can sign any number of them. A binding has only one limit, so the parent has this many
 * counters, and each request uses a random one.
 */
const FAMILY = 20

/**
 * @param times how often the request counts: once for each search in it
 * @throws ApiError 429, in Typesense's words
 */
export async function requireRate(
  env: Cloudflare.Env,
  limit: keyof typeof PERIODS,
  { digest, parentDigest }: Pick<Access, 'digest' | 'parentDigest'>,
  times = 1,
): Promise<void> {
  await countTimes(times, () => count(env, limit, digest))
  if (parentDigest === undefined) return
  await countTimes(times, () => count(env, limit, `${parentDigest}/${Math.floor(Math.random() * FAMILY)}`))
}

/** The binding counts by ones. */
const countTimes = (times: number, once: () => Promise<void>): Promise<unknown> =>
  Promise.all(Array.from({ length: times }, once))

/** Counts a key that has to be looked up. @param address where it came from @throws ApiError 429 */
export const requireLookUps = (env: Cloudflare.Env, address: string): Promise<void> =>
  count(env, 'RATE_LIMIT', `address ${networkOf(address)}`)

/**
 * Counts an analytics event. The visitors of a page share its key, and each address has a limit of its own, so that one
 * visitor alone cannot make a document popular.
 * @param address where the event came from @throws ApiError 429
 */
export const requireEvents = (
  env: Cloudflare.Env,
  { digest }: Pick<Access, 'digest'>,
  address: string,
): Promise<void> => count(env, 'RATE_LIMIT_EVENTS', `${digest} ${networkOf(address)}`)

async function count(env: Cloudflare.Env, limit: keyof typeof PERIODS, key: string): Promise<void> {
  const binding: RateLimit | undefined = env[limit]
  if (binding === undefined || env.RATE_LIMITS === 'off') return
  const { success } = await binding.limit({ key })
  if (!success) throw new ApiError(429, 'Rate limit exceeded or blocked', PERIODS[limit])
}

/** The first 64 bits of an IPv6 address, since its holder controls the others. Other addresses stay whole. */
function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const v4 = /^::ffff:([\d.]+)$/i.exec(address)?.[1]
  if (v4 !== undefined) return v4
  const [before = '', after] = address.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const left = groups(before)
  const right = groups(after ?? '')
  const zeros = after === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  return [...left, ...Array<string>(zeros).fill('0'), ...right]
    .slice(0, 4)
    .map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
    .join(':')
}
