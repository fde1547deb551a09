/**
 * Limits requests and turns per key. The platform's Rate Limiting binding counts them, at each location separately
 * and without a network call. Limits are per key rather than per address, since a whole school can share one address,
 * and one attacker can have thousands. Only unknown keys are limited by address. Without the binding, nothing is
 * limited.
 */

import {
  type Budget,
  dayOf,
  isLimited,
  KEY_BUDGET,
  MODEL_BUDGET,
  overBudget,
  type Spent,
  spentByOwner,
  spentOnModel,
  usedUp,
} from '../db/usage'
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

// Daily budgets of tokens and turns, for keys and models. Days are UTC.
//
// Tokens are written when a turn ends, and read before a turn begins, from a sum that may be seconds old. So turns that are
// already running can overrun a budget of tokens. A turn is counted before it runs (db/usage.ts, `reserveTurn`), after this check,
// which refuses most of those that are too many.

/**
 * @param accesses the keys of the request: each needs some budget left
 * @param now unix milliseconds
 * @throws ApiError 429 naming the spent budget and when it renews
 */
export async function requireBudget(
  env: Cloudflare.Env,
  accesses: readonly Access[],
  model: Budget & { id: string },
  now = Date.now(),
): Promise<void> {
  const day = dayOf(now)
  const limits = new Map(accesses.map((access) => [access.owner, access.limits]))
  const checks = [...limits]
    .filter(([, budget]) => isLimited(budget))
    .map(async ([owner, budget]) => requireLeft(KEY_BUDGET, budget, await spentByOwner(env, day, owner), now))
  if (isLimited(model)) {
    const spent = spentOnModel(env, day, model.id)
    checks.push(spent.then((sum) => requireLeft(MODEL_BUDGET, model, sum, now)))
  }
  await Promise.all(checks)
}

function requireLeft(whose: string, budget: Budget, spent: Spent, now: number): void {
  const used = usedUp(budget, spent)
  if (used) throw overBudget(whose, used, now)
}

/**
 * Checks a budget in the body of a request.
 * @throws ApiError 400
 */
export function checkBudget(budget: Budget, wrong: (name: string) => ApiError): void {
  for (const name of ['tokens_per_day', 'turns_per_day'] as const) {
    const value = budget[name]
    if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) > 0)) throw wrong(name)
  }
}

// How many searches a request may contain, and how they count towards rate limits. Each is work for a collection.

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
