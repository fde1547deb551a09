/**
 * Requests and turns per key, counted by the platform's Rate Limiting binding: at each location by itself, without
 * a call over the network. By key and not by address, since an address can be a whole school or one thousandth of an
 * attacker. Only keys that nobody knows yet have nothing but their address. Where no such binding is configured nothing
 * is limited.
 */
import { ApiError } from '../errors'
import type { Access } from './access'

/** The `period` of each limit in wrangler.toml, in seconds: the binding does not tell it. */
const PERIODS = { RATE_LIMIT: 10, RATE_LIMIT_TURNS: 60 } as const

/**
 * How many times the limit of one key all scoped keys of a parent have together. Whoever holds the parent, which may
 * lie open in a page, can sign as many as they like. A binding has one limit, so the parent has this many counters,
 * one of which is drawn for each request.
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

async function count(env: Cloudflare.Env, limit: keyof typeof PERIODS, key: string): Promise<void> {
  const binding: RateLimit | undefined = env[limit]
  if (binding === undefined || env.RATE_LIMITS === 'off') return
  const { success } = await binding.limit({ key })
  if (!success) throw new ApiError(429, 'Rate limit exceeded or blocked', PERIODS[limit])
}

/** The first 64 bits of an IPv6 address, which its holder fills up at will; any other as it is. */
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
