/** Who calls, how often, and what for: limits of requests and turns, what a presented key may do, and the gate of all routes. */
import { type ApiKeyRecord, apiKeyByHash, findApiKeysByPrefix, keyIn } from '../db/api-keys'
import { open, sameDigest, sha256, sha256Bytes } from '../db/sealing'
import {
  type Budget,
  dayOf,
  isLimited,
  KEY_BUDGET,
  MODEL_BUDGET,
  overBudget,
  readingSpent,
  type Spent,
  spentByHash,
  spentByOwner,
  spentOnModel,
  usedUp,
} from '../db/turns'
import { ApiError, badRequest, forbidden } from '../errors'
import { parseExact, tryJson } from '../lib/json'
import { matchesOrigin } from '../lib/origins'
import { type Access, ADMIN, accessOf, canSignScopedKeys, maySign } from './access'

// =============================================================================
// Limits requests and turns per key. The platform's Rate Limiting binding counts them, at each location separately
// and without a network call. Limits are per key rather than per address, since a whole school can share one address,
// and one attacker can have thousands. Only unknown keys are limited by address. Without the binding, nothing is
// limited.

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
const requireLookUps = (env: Cloudflare.Env, address: string): Promise<void> =>
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
// already running can overrun a budget of tokens. A turn is counted before it runs (db/turns.ts, `reserveTurn`), after this check,
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
  if (count > most) throw badRequest(`A request with this key takes at most ${most} searches.`)
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

// =============================================================================
// Finds out what a presented key may do.
//
// Results are cached in the isolate for a few seconds. So a key that was revoked in another isolate works that much
// longer, and a key that was tried before its creation is refused that much longer. A key that is not in the cache is
// counted before it is looked up. Otherwise anyone could try keys without limit, and each try would cost a query of
// D1.

/** A map of limited size: a new entry evicts the one that was set longest ago. */
export class Latest<Value> {
  readonly #entries = new Map<string, Value>()

  constructor(private readonly most: number) {}

  get(key: string): Value | undefined {
    return this.#entries.get(key)
  }

  set(key: string, value: Value): void {
    this.#entries.delete(key)
    if (this.#entries.size >= this.most) this.#entries.delete(this.#entries.keys().next().value!)
    this.#entries.set(key, value)
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }
}

const REMEMBERED_MS = 5_000
/**
 * Size of the cache of known keys, and of that of unknown keys. They are separate, so that trying keys cannot evict
 * working ones.
 */
const REMEMBERED_KEYS = 1_000
/** Longer keys are refused unread. A scoped key has a few hundred characters. */
const LONGEST_KEY = 8_192

interface Found {
  access: Access
  /** unix seconds */
  expiresAt: number
  /** when to look it up again, in unix milliseconds */
  until: number
}

/** By SHA-256 of the presented key. */
const found = new Latest<Found>(REMEMBERED_KEYS)
/** Keys that were not found, and when to look them up again, in unix milliseconds. */
const unknown = new Latest<number>(REMEMBERED_KEYS)
let warned = false

/** Clears the cache, after a key was created or deleted here. */
export function forgetKeys(): void {
  found.clear()
  unknown.clear()
}

/**
 * @param presented the key as it was sent
 * @param address where it came from
 * @param meanwhile begins to read something else at the same time, unless the key is refused without a look-up. Must not throw
 * @throws ApiError 429 when too many keys were tried from there
 * @returns undefined for a missing, unknown, expired or wrongly signed key
 */
export async function authenticate(
  env: Cloudflare.Env,
  presented: string | undefined,
  address: string,
  meanwhile: () => void = () => {},
): Promise<Access | undefined> {
  if (!env.ADMIN_API_KEY) {
    if (!warned) console.error('ADMIN_API_KEY is not set: every request that needs a key is refused.')
    warned = true
    return undefined
  }
  if (!presented || presented.length > LONGEST_KEY) return undefined
  const hash = await sha256(presented)
  if (sameDigest(hash, await adminDigest(env.ADMIN_API_KEY))) {
    meanwhile()
    return ADMIN
  }

  const now = Date.now()
  let entry = found.get(hash)
  if (!entry || entry.until <= now) {
    if ((unknown.get(hash) ?? 0) > now) return undefined
    // A key that worked a moment ago is not an attempt: its entry has only expired.
    if (!entry) await requireLookUps(env, address)
    const finding = findKey(env, presented, hash)
    meanwhile()
    const fresh = await finding
    if (!fresh) {
      found.delete(hash)
      unknown.set(hash, now + REMEMBERED_MS)
      return undefined
    }
    entry = { ...fresh, until: now + REMEMBERED_MS }
    found.set(hash, entry)
  } else meanwhile()
  return now / 1000 > entry.expiresAt ? undefined : entry.access
}

let admin: { key: string; digest: Promise<string> } | undefined

function adminDigest(key: string): Promise<string> {
  if (admin?.key !== key) admin = { key, digest: sha256(key) }
  return admin.digest
}

const findKey = async (env: Cloudflare.Env, presented: string, hash: string) =>
  (await findScoped(env, presented)) ?? (await findOrdinary(env, hash))

/** Finds a key, and reads what it has spent in the same query, if it has a budget. */
async function findOrdinary(env: Cloudflare.Env, hash: string): Promise<Omit<Found, 'until'> | undefined> {
  const day = dayOf(Date.now())
  const { byOwner } = readingSpent()
  const [keys, sums] = await env.DB.batch([apiKeyByHash(env.DB, hash), spentByHash(env.DB, day, hash)])
  const key = keyIn(keys?.results ?? [])
  if (!key) return undefined
  const access = accessOf(key)
  if (isLimited(access.limits)) byOwner(day, access.owner, sums?.results[0] as Spent)
  return { access, expiresAt: key.expiresAt }
}

async function findScoped(env: Cloudflare.Env, presented: string): Promise<Omit<Found, 'until'> | undefined> {
  const scoped = parseScopedKey(presented)
  if (!scoped) return undefined
  const parent = await findParent(env, scoped, await findApiKeysByPrefix(env.DB, scoped.prefix))
  const parameters = parent && embeddedParameters(scoped)
  if (!parameters || !maySign(parent, parameters.values)) return undefined
  const access = accessOf(parent)
  // The same bytes have several encodings in base64. The digest covers the signed bytes, so one limit holds for all
  // of them.
  const digest = `${access.digest}:${(await sha256Bytes(scoped.parameters)).slice(0, 32)}`
  return {
    access: {
      ...access,
      digest,
      parentDigest: access.digest,
      embedded: parameters.values,
      scoped: true,
      forPages: true,
    },
    expiresAt: Math.min(parent.expiresAt, parameters.expiresAt ?? Number.POSITIVE_INFINITY),
  }
}

async function findParent(
  env: Cloudflare.Env,
  scoped: NonNullable<ReturnType<typeof parseScopedKey>>,
  keys: ApiKeyRecord[],
): Promise<ApiKeyRecord | undefined> {
  for (const key of keys) {
    if (!canSignScopedKeys(key) || key.sealedValue === null) continue
    const value = await openValue(env, key)
    if (value !== undefined && (await isSignedBy(scoped, value))) return key
  }
  return undefined
}

/** Opens the parent's value. If it was sealed under another ENCRYPTION_KEY, its scoped keys stop working. */
async function openValue(env: Cloudflare.Env, key: ApiKeyRecord): Promise<string | undefined> {
  try {
    return await open(key.sealedValue!, env)
  } catch {
    console.error(`The value of API key ${key.id} cannot be opened: its scoped keys are refused.`)
    return undefined
  }
}

// Scoped search keys: search parameters signed with a search-only key. Its owner makes them without asking the
// server.
//
//     base64( base64(HMAC-SHA256(parent, parameters)) + first 4 characters of parent + parameters )

const DIGEST_LENGTH = 44
export const PREFIX_LENGTH = 4

interface ScopedKey {
  digest: string
  prefix: string
  /** the signed JSON, byte for byte */
  parameters: Uint8Array
}

/** Search parameters in a scoped key, as the strings that a request would send. */
interface EmbeddedParameters {
  values: Record<string, string>
  /** unix seconds */
  expiresAt?: number
}

/** Splits a presented key. @returns undefined when it cannot be a scoped key */
export function parseScopedKey(key: string): ScopedKey | undefined {
  if (key.length < DIGEST_LENGTH + PREFIX_LENGTH || !/^[A-Za-z0-9+/]+={0,2}$/.test(key)) return undefined
  let binary: string
  try {
    binary = atob(key)
  } catch {
    return undefined
  }
  const start = DIGEST_LENGTH + PREFIX_LENGTH
  if (binary[start] !== '{') return undefined
  return {
    digest: binary.slice(0, DIGEST_LENGTH),
    prefix: binary.slice(DIGEST_LENGTH, start),
    parameters: Uint8Array.from(binary.slice(start), (character) => character.charCodeAt(0)),
  }
}

/** Whether `parent` signed this key. The platform compares in constant time. */
export async function isSignedBy(key: ScopedKey, parent: string): Promise<boolean> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const secret = await crypto.subtle.importKey('raw', new TextEncoder().encode(parent), algorithm, false, [
    'verify',
  ])
  let digest: string
  try {
    digest = atob(key.digest)
  } catch {
    return false
  }
  const signature = Uint8Array.from(digest, (character) => character.charCodeAt(0))
  return crypto.subtle.verify('HMAC', secret, signature, key.parameters)
}

/**
 * Reads the signed parameters. A value that no request parameter can have makes the key invalid: ignoring it could
 * lift a restriction.
 *
 * @returns undefined when the key is invalid
 */
export function embeddedParameters(key: ScopedKey): EmbeddedParameters | undefined {
  const parsed = tryJson(new TextDecoder().decode(key.parameters), parseExact)
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined
  const { expires_at: expiresAt, ...rest } = parsed as Record<string, unknown>
  if (expiresAt !== undefined && !(Number.isSafeInteger(expiresAt) && (expiresAt as number) >= 0)) {
    return undefined
  }
  const values: Record<string, string> = {}
  for (const [name, value] of Object.entries(rest)) {
    if (!['string', 'number', 'bigint', 'boolean'].includes(typeof value)) return undefined
    values[name] = String(value)
  }
  return expiresAt === undefined ? { values } : { values, expiresAt: expiresAt as number }
}

// =============================================================================
// The one gate: the routes of every protocol check here whether a key allows the request.

/**
 * Where a request came from, and what the log records about its key. Callers get the same message for every refusal; the
 * reason is only for the operator.
 */
export interface Note {
  /** IP address; '' if unknown. Never logged */
  readonly address: string
  /** origin of the page that asks; undefined if there is none, or if the page is one of Parley's own */
  readonly origin?: string | undefined
  key?: string
  /** true once any key of the request is one for pages. Its errors then reveal no details of the operation */
  plain?: boolean
  denied?: 'no key' | 'unknown or expired key' | 'action' | 'collection' | 'origin'
}

/**
 * Admits a request or refuses it.
 *
 * @param presented the key as it was sent
 * @param actions one of these has to be allowed
 * @param collection its name as the request gave it; absent for routes without one
 * @param prefetch begins while the key is looked up
 * @throws ApiError 401, 403, 429
 */
export async function admit(
  env: Cloudflare.Env,
  presented: string | undefined,
  actions: string | readonly string[],
  collection: string | undefined,
  note: Note,
  prefetch?: { begin: () => void },
): Promise<Access> {
  const access = await authenticate(env, presented, note.address, prefetch?.begin)
  const admitted = requireAccess(access, presented, actions, collection, note)
  await requireRate(env, 'RATE_LIMIT', admitted)
  return admitted
}

/** A name that no collection has: it stands for the right to all of them. */
const EVERY_COLLECTION = '*'

/**
 * Checks that a key has the right to all collections: for what acts with the server's own rights or secrets.
 * @throws ApiError 401
 */
export const requireAllCollections = ({
  access,
  record,
}: {
  access: Access
  record: Note & { action?: string }
}): void => requireCollections(access, record.action!, [EVERY_COLLECTION], record)

/**
 * Checks the collections that a stored alias, assistant or model leads to. Others use it later, and their keys are
 * not checked against the collection behind it.
 * @param action that the request was admitted for
 * @throws ApiError 401
 */
export function requireCollections(
  access: Access,
  action: string,
  collections: readonly string[],
  note: Note,
): void {
  for (const collection of collections) requireAccess(access, undefined, action, collection, note)
}

/** The check of `admit` alone, for a key that was already looked up and counted. @throws ApiError 401, 403 */
export function requireAccess(
  access: Access | undefined,
  presented: string | undefined,
  actions: string | readonly string[],
  collection: string | undefined,
  note: Note,
): Access {
  note.key ??= access?.owner
  if (access?.forPages) note.plain = true
  const wanted = typeof actions === 'string' ? [actions] : actions
  if (access !== undefined && wanted.some((action) => access.allows(action, collection))) {
    requireOrigin('This API key', access.limits.allowed_origins, note)
    return access
  }
  if (access === undefined) note.denied = presented ? 'unknown or expired key' : 'no key'
  else note.denied = wanted.some((action) => access.allows(action)) ? 'collection' : 'action'
  throw forbidden(access && whyNot(access, wanted, collection, note.denied === 'action'))
}

/**
 * Says what a key lacks, in words for its holder. @returns undefined for a key for pages, since visitors are told
 * nothing
 */
function whyNot(
  { forPages, grants }: Access,
  wanted: readonly string[],
  collection: string | undefined,
  lacksAction: boolean,
): string | undefined {
  if (forPages || grants === undefined) return undefined
  const actions = listed(wanted, ' or ')
  if (lacksAction) return `This key may not ${actions}. It may ${listed(grants.actions, ', ')}.`
  return `This key may not ${actions} in \`${collection}\`. Its collections are ${listed(grants.collections, ', ')}.`
}

const listed = (names: readonly string[], separator: string): string =>
  names.map((name) => `\`${name}\``).join(separator)

/**
 * Enforces `allowed_origins`. Programs other than browsers send no origin, or any they like.
 * @param what names the thing that is limited; a sentence begins with it
 * @param allowed its `allowed_origins`; undefined: all
 * @throws ApiError 403
 */
export function requireOrigin(what: string, allowed: readonly string[] | undefined, note: Note): void {
  const { origin } = note
  if (allowed === undefined || origin === undefined || matchesOrigin(allowed, origin)) return
  note.denied = 'origin'
  const page = origin === 'null' ? 'a page that does not tell its origin' : `pages of ${origin}`
  throw new ApiError(403, `${what} may not be used by ${page}: \`allowed_origins\` does not list it.`)
}
