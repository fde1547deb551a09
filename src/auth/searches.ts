/** How many searches a request may have, and how they count. Each is work for a collection, whatever brought it here. */
import { ApiError } from '../errors'
import type { Access } from './access'
import { requireRate } from './rate-limit'

/** Of a key that says nothing else, as in Typesense. */
const DEFAULT_SEARCHES = 50
/** The admin key raises the number this far. */
const MOST_SEARCHES = 250
/** A page has a search box or a chat, and no use for more. */
const MOST_OF_PAGES = 10

/**
 * The searches that a request may have. A key's own number is lowered by what a scoped key embeds and by what the request
 * asks for; only the admin key raises it.
 * @param asked `limit_multi_searches` of the request; what is no number counts as the default
 */
export function mostSearches({ owner, forPages, embedded }: Access, asked?: string): number {
  const most = forPages ? MOST_OF_PAGES : owner === 'admin' ? MOST_SEARCHES : DEFAULT_SEARCHES
  const given = [embedded.limit_multi_searches, asked].filter((limit) => limit !== undefined)
  const limits = given.length > 0 ? given : ['']
  return Math.min(most, ...limits.map((limit) => (/^\d+$/.test(limit) ? Number(limit) : DEFAULT_SEARCHES)))
}

/** @throws ApiError 400 for more searches than a key has in one request */
export function requireFewSearches(access: Access, count: number): void {
  const most = mostSearches(access)
  if (count > most) throw new ApiError(400, `A request with this key takes at most ${most} searches.`)
}

/**
 * Counts searches against the rate of their keys.
 * @param accesses a key a search; the first search of a request that was let in by its key has been counted
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
