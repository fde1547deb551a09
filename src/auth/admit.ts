/** The one gate: the routes of every protocol check here whether a key allows the request. */
import { ApiError, forbidden } from '../errors'
import { matchesOrigin } from '../lib/origins'
import type { Access } from './access'
import { authenticate, requireRate } from './authenticate'

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
