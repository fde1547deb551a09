/** The one gate: every route of every protocol asks here whether a key may do what it asks for. */
import { ApiError } from '../errors'
import { matchesOrigin } from '../origins'
import { type Access, forbidden } from './access'
import { authenticate } from './authenticate'
import { requireRate } from './rate-limit'

/**
 * Where a request came from, and what the log learns of its key. A refusal has one message outside; its reason is for
 * the operator.
 */
export interface Note {
  /** IP address; '' where it is not known. Never logged */
  readonly address: string
  /** of the page that asks, unless it is one of Parley's own; undefined where none does */
  readonly origin?: string | undefined
  key?: string
  /** true as soon as one of the request's keys is made for pages: errors tell it nothing that is the operator's */
  plain?: boolean
  denied?: 'no key' | 'unknown or expired key' | 'action' | 'collection' | 'origin'
}

/**
 * Lets a request pass, or not.
 *
 * @param presented the key as it was sent
 * @param actions one of these has to be allowed
 * @param collection its name as the request gave it; absent where the route has none
 * @throws ApiError 401, 403, 429
 */
export async function admit(
  env: Cloudflare.Env,
  presented: string | undefined,
  actions: string | readonly string[],
  collection: string | undefined,
  note: Note,
): Promise<Access> {
  const access = await authenticate(env, presented, note.address)
  const admitted = requireAccess(access, presented, actions, collection, note)
  await requireRate(env, 'RATE_LIMIT', admitted)
  return admitted
}

/**
 * Checks the collections that a request leads to by what it stores: an alias, an assistant or a model is used by others
 * later, whose keys are not asked for the collection behind it.
 * @param action that the request was let in for
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

/** The check of `admit` by itself: for a key that was looked up and counted already. @throws ApiError 401, 403 */
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
  throw forbidden()
}

/**
 * Lets only pages of some origins use what is limited to them. Programs outside of browsers send no origin, or any.
 * @param what is limited, as a sentence begins
 * @param allowed its `allowed_origins`; undefined for every origin
 * @throws ApiError 403
 */
export function requireOrigin(what: string, allowed: readonly string[] | undefined, note: Note): void {
  const { origin } = note
  if (allowed === undefined || origin === undefined || matchesOrigin(allowed, origin)) return
  note.denied = 'origin'
  const page = origin === 'null' ? 'a page that does not tell its origin' : `pages of ${origin}`
  throw new ApiError(403, `${what} may not be used by ${page}: \`allowed_origins\` does not list it.`)
}
