/**
 * Requests and turns per key, counted by the platform's Rate Limiting binding: at each location by itself, without
 * a call over the network. By key and never by address, since an address can be a whole school or one thousandth of
 * an attacker. Where no such binding is configured nothing is limited.
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

/** @throws ApiError 429, in Typesense's words */
export async function requireRate(
  env: Cloudflare.Env,
  limit: keyof typeof PERIODS,
  { digest, parentDigest }: Pick<Access, 'digest' | 'parentDigest'>,
): Promise<void> {
  const binding: RateLimit | undefined = env[limit]
  if (binding === undefined || env.RATE_LIMITS === 'off') return
  const counters = [digest]
  if (parentDigest !== undefined) counters.push(`${parentDigest}/${Math.floor(Math.random() * FAMILY)}`)
  for (const key of counters) {
    const { success } = await binding.limit({ key })
    if (!success) throw new ApiError(429, 'Rate limit exceeded or blocked', PERIODS[limit])
  }
}
