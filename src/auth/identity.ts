/**
 * What keys fix in a conversation: its model and its user. Typesense reads conversation parameters before it looks at
 * keys, so there a search key can spend on any model. Here the key decides.
 *
 * A request may bring several keys, one for each search. All of them have to agree.
 */
import { ApiError, forbidden } from '../errors'
import type { Access } from './access'
import { sha256 } from './digest'

/** Characters of a user's id, a label that is stored with every conversation. */
const LONGEST_USER_ID = 256

/** Who asks. */
export interface Identity {
  owner: string
  /** '' for nobody */
  userId: string
  /** the owner's key fixes the user; otherwise the name is only the caller's claim */
  proven: boolean
}

/**
 * The one value that keys fix, undefined if none does.
 * @throws ApiError 401 when two keys fix different ones: the request cannot obey both
 */
function agreed(values: (string | undefined)[]): string | undefined {
  const fixed = new Set(values.filter((value) => value !== undefined))
  if (fixed.size > 1) throw forbidden()
  return [...fixed][0]
}

/** The conversation model that keys fix, undefined if none does. @throws ApiError 401 */
export const pinnedModel = (accesses: readonly Access[]): string | undefined =>
  agreed(
    accesses.map(({ limits, embedded }) => limits.conversation_model_id ?? embedded.conversation_model_id),
  )

/**
 * Whether the keys allow this model. Answer a forbidden one like an unknown one, so that a key cannot be used to find
 * out which models exist.
 */
export const mayAsk = (accesses: readonly Access[], modelId: string): boolean =>
  accesses.every(({ limits }) => (limits.conversation_model_id ?? modelId) === modelId)

/** The user that a key fixes. A scoped key may use either of the names that requests use. */
const fixedUser = ({ limits, embedded }: Access): string | undefined =>
  limits.user_id ?? embedded.user_id ?? embedded['x-typesense-user-id']

/**
 * Who asks. The owner is the first key. The user is the one that a key fixes, or else the one that the request names;
 * a name that contradicts the key's is ignored. Only the owner's key proves a user: other keys of the request say
 * nothing about the owner's users.
 *
 * @param named `x-typesense-user-id` of the request
 * @throws ApiError 400 for an overlong name, 401 when the keys fix different users
 */
export function identify(accesses: readonly Access[], named: string | undefined): Identity {
  const pinned = agreed(accesses.map(fixedUser))
  const userId = pinned ?? named ?? ''
  if (userId.length > LONGEST_USER_ID) {
    throw new ApiError(400, `\`x-typesense-user-id\` is longer than ${LONGEST_USER_ID} characters.`)
  }
  const [first] = accesses
  if (!first) throw forbidden()
  return { owner: first.owner, userId, proven: userId !== '' && fixedUser(first) === userId }
}

// A visitor's secret: a random value that a browser creates and sends with each request, so that visitors who share a
// page's key can be told apart. Only a digest of it is stored.

export const VISITOR_HEADER = 'x-parley-visitor'

/** At least as many characters as 24 random bytes have in base64. */
const SECRET = /^[A-Za-z0-9_-]{32,256}$/

/**
 * The stored digest of a secret. It differs for each key, so that visitors cannot be tracked from page to page.
 * @param owner the key of the request
 * @throws ApiError 400 for a secret that is too short
 */
export async function visitorDigest(owner: string, secret: string): Promise<string> {
  if (!SECRET.test(secret)) {
    throw new ApiError(
      400,
      '`X-Parley-Visitor` must be a random value of 32 to 256 letters, digits, dashes and underscores, such as two of `crypto.randomUUID()` in a row.',
    )
  }
  return sha256(JSON.stringify(['visitor', owner, secret]))
}

/**
 * The secret of a request: its header or its query parameter, since an EventSource and a browser's WebSocket send no headers of the
 * page's. It counts on every route, so that nothing that a visitor asks is left without an owner.
 * @throws ApiError 400 if there are two
 */
export function presentedVisitor(request: Request): string | undefined {
  const at = request.url.indexOf('?')
  const given = new Set(at < 0 ? [] : inQuery(request.url.slice(at)))
  const header = request.headers.get(VISITOR_HEADER)
  if (header !== null) given.add(header)
  if (given.size > 1) throw new ApiError(400, 'The request has two secrets in `X-Parley-Visitor`. Send one.')
  return [...given][0]
}

const inQuery = (query: string): string[] =>
  [...new URLSearchParams(query)].flatMap(([name, value]) =>
    name.toLowerCase() === VISITOR_HEADER ? [value] : [],
  )
