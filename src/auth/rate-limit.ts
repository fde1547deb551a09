/**
 * Requests and turns per key, counted by the platform's Rate Limiting binding: at each location by itself, without
 * a call over the network. By key and never by address, since an address can be a whole school or one thousandth of
 * an attacker. Where no such binding is configured nothing is limited.
 */
import { ApiError } from '../errors'
import type { Access } from './access'

/** The `period` of each limit in wrangler.toml, in seconds: the binding does not tell it. */
const PERIODS = { RATE_LIMIT: 10, RATE_LIMIT_TURNS: 60 } as const

/** @throws ApiError 429, in Typesense's words */
export async function requireRate(
  env: Cloudflare.Env,
  limit: keyof typeof PERIODS,
  access: Pick<Access, 'digest'>,
): Promise<void> {
  const binding: RateLimit | undefined = env[limit]
  if (binding === undefined || env.RATE_LIMITS === 'off') return
  const { success } = await binding.limit({ key: access.digest })
  if (!success) throw new ApiError(429, 'Rate limit exceeded or blocked', PERIODS[limit])
}
