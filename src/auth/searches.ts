/** How many searches a request may contain, and how they count towards rate limits. Each is work for a collection. */
import { ApiError } from '../errors'
import type { Access } from './access'
import { requireRate } from './rate-limit'

/** For keys that do not set a number, as in Typesense. */
const DEFAULT_SEARCHES = 50
/** The highest number that the admin key can ask for. */
export const MOST_SEARCHES = 250
/** For keys in pages: a search box or a chat needs no more. */
const MOST_OF_PAGES = 10

/**
 * How many searches a request may contain. A scoped key's embedded number and the request's own can lower the key's
 * number; only the admin key can raise it.
 * @param asked `limit_multi_searches` of the request; not a number: the default
 */
export function mostSearches({ owner, forPages, embedded }: Access, asked?: string): number {
  const most = forPages ? MOST_OF_PAGES : owner === 'admin' ? MOST_SEARCHES : DEFAULT_SEARCHES
  const given = [embedded.limit_multi_searches, asked].filter((limit) => limit !== undefined)
  const limits = given.length > 0 ? given : ['']
  return Math.min(most, ...limits.map((limit) => (/^\d+$/.test(limit) ? Number(limit) : DEFAULT_SEARCHES)))
}

/** @throws ApiError 400 for more searches in a request than the key allows */
export function requireFewSearches(access: Access, count: number): void {
  const most = mostSearches(access)
  if (count > most) throw new ApiError(400, `A request with this key takes at most ${most} searches.`)
}

/**
 * Counts searches towards the rate limits of their keys.
 * @param accesses one key for each search; the first search of an admitted request has been counted already
 * @throws ApiError 429
 */
export async function countSearches(env: Cloudflare.Env, accesses: readonly Access[]): Promise<void> {
  const counts = new Map<string, { access: Access; times: number }>()
  for (const access of accesses) {
    const { times = 0 } = counts.get(access.digest) ?? {}
    counts.set(access.digest, { access, times: times + 1 })
  }
  await Promise.all(
    [...counts.values()].map(({ access, times }) => requireRate(env, 'RATE_LIMIT', access, times)),
  )
}
