/** What a presented key may do. */
import type { ApiKeyRecord, KeyLimits } from '../db/api-keys'
import { sha256 } from '../db/sealing'
import { ApiError, badRequest, forbidden } from '../errors'
import { collectionPattern, fitsAnyName } from './pattern'

export const SEARCH_ACTION = 'documents:search'

/**
 * The action of keys that are bound to an assistant. Other keys ask assistants by their right to search or converse.
 */
const ASSISTANT_ACTION = 'assistants:ask'
const CONVERSE_ACTION = 'conversations:create'

/** Rating answers. Whoever may read a conversation may do it, too. */
export const FEEDBACK_ACTION = 'conversations:feedback'

/** Asking an assistant takes one of these. */
export const ASK_ACTIONS = [ASSISTANT_ACTION, SEARCH_ACTION, CONVERSE_ACTION] as const

/** All that a bound key may do. Any other action would bypass the assistant. */
const BOUND_ACTIONS: readonly string[] = [
  ASSISTANT_ACTION,
  'conversations:get',
  'conversations:list',
  'conversations:stop',
  'conversations:delete',
  FEEDBACK_ACTION,
]

/** All actions that a visitor's key can have. A key with any other action belongs to a server. */
const VISITOR_ACTIONS: readonly string[] = [SEARCH_ACTION, CONVERSE_ACTION, ...BOUND_ACTIONS]

export interface Access {
  /** id of the API key (of the parent, for a scoped key); undefined for the admin key */
  readonly keyId?: number
  /** the key's name as owner of conversations and in logs: `admin`, or its id */
  readonly owner: string
  /** identifies the key where the key itself must not appear: rate limits, fingerprints of requests */
  readonly digest: string
  /** of a scoped key: the digest of its parent */
  readonly parentDigest?: string
  /** limits of the key, or of a scoped key's parent */
  readonly limits: KeyLimits
  /** parameters embedded in a scoped key, which override the request's; {} for other keys */
  readonly embedded: Readonly<Record<string, string>>
  /** a scoped key: one of many with the same parent */
  readonly scoped?: boolean
  /**
   * Whether the key is made for pages, where visitors can read it: a scoped key, or one with `limits`, such as a
   * bound key. It learns no details of the operation, and gets fewer searches a request.
   */
  readonly forPages: boolean
  /** the rights that error messages may name to its holder; absent for the admin key and for keys for pages */
  readonly grants?: { actions: readonly string[]; collections: readonly string[] }
  /**
   * @param action `resource:verb`
   * @param collection its name as the request gave it; absent for routes without one
   */
  allows(action: string, collection?: string): boolean
  /**
   * Whether this key may give another key a collection pattern: one of its own, or a plain name that it allows. Other
   * expressions are refused: whether one regular expression covers another is not checked.
   */
  covers(pattern: string): boolean
  /**
   * Whether a search with this key may read messages of a history collection. A key that can only search has to name
   * the collection: `*` must not open everybody's conversations.
   * @param collection its name as the request gave it
   */
  readsHistory(collection: string): boolean
  /**
   * Which conversations the key reaches: those that its holder provably began, all that were begun with the key, or
   * those of every key.
   * @param action the key must have it explicitly. The right that every search key has does not count
   */
  reach(action: string): Reach
}

/** Whose conversations a key can open. `own`: only its holder's. */
type Reach = 'own' | 'key' | 'all'

export const ADMIN: Access = {
  owner: 'admin',
  digest: 'admin',
  limits: {},
  embedded: {},
  forPages: false,
  allows: () => true,
  covers: () => true,
  readsHistory: () => true,
  reach: () => 'all',
}

/**
 * For what shows everybody's conversations. No other key has it, `*` included.
 * @param does what only the admin key does
 * @throws ApiError 401
 */
export function requireAdmin({ owner }: Access, does: string): void {
  if (owner !== ADMIN.owner) throw new ApiError(401, `Forbidden - only the admin key ${does}.`)
}

const matchesAction = (granted: string, action: string): boolean =>
  granted === '*' || granted === action || (granted.endsWith(':*') && action.startsWith(granted.slice(0, -1)))

/** The access of an ordinary key. Its patterns are compiled once. */
export function accessOf(
  key: Pick<ApiKeyRecord, 'id' | 'actions' | 'collections' | 'hash' | 'limits'>,
): Access {
  const patterns = key.collections.map(collectionPattern)
  // Computed once, and only for keys that can only search.
  let naming: typeof patterns | undefined
  const names = (collection: string): boolean => {
    naming ??= patterns.filter((_, index) => !fitsAnyName(key.collections[index]!))
    return naming.some((matches) => matches(collection))
  }
  const onlyVisits = key.actions.every((granted) => VISITOR_ACTIONS.includes(granted))
  const may = (action: string) => key.actions.some((granted) => matchesAction(granted, action))
  const bound = key.limits.assistant !== undefined
  const asks = ASK_ACTIONS.some(may)
  const reach = key.collections.includes('*') ? 'all' : 'key'
  return {
    keyId: key.id,
    owner: String(key.id),
    digest: key.hash.slice(0, 32),
    limits: key.limits,
    embedded: {},
    forPages: Object.keys(key.limits).length > 0,
    grants: { actions: key.actions, collections: key.collections },
    covers: (pattern) =>
      key.collections.some((own) => [pattern, '*', '.*'].includes(own)) ||
      (/^[\w-]+$/.test(pattern) && patterns.some((matches) => matches(pattern))),
    // A bound key searches what its assistant names, and nothing else.
    readsHistory: (collection) => bound || !onlyVisits || names(collection),
    allows: (action, collection) =>
      bound
        ? asks && collection === undefined && BOUND_ACTIONS.includes(action)
        : may(action) && (!collection || patterns.some((matches) => matches(collection))),
    // A bound key is public in a page, so its actions extend no further than the assistant.
    reach: (action) => (!bound && may(action) ? reach : 'own'),
  }
}

/**
 * Whether a key may ask an assistant: the one it is bound to, or any whose collections are all open to it.
 * @param collections those that are searched for this key
 */
export function mayAskAssistant(
  { limits, allows }: Access,
  name: string,
  collections: readonly string[],
): boolean {
  if (limits.assistant !== undefined) return limits.assistant === name
  return collections.every((each) => allows(SEARCH_ACTION, each) || allows(CONVERSE_ACTION, each))
}

/**
 * What a scoped key may fix if its parent is bound to an assistant. The parent may be public in a page, so anybody
 * can sign with it, and other parameters could reveal more of documents than the assistant does.
 */
const NARROWING: readonly string[] = [
  'filter_by',
  'collection',
  'q',
  'user_id',
  'x-typesense-user-id',
  'conversation_id',
  'conversation_model_id',
  'limit_multi_searches',
]

/** Whether a key may have signed these parameters. */
export const maySign = (
  { limits }: Pick<ApiKeyRecord, 'limits'>,
  parameters: Readonly<Record<string, string>>,
): boolean =>
  limits.assistant === undefined || Object.keys(parameters).every((name) => NARROWING.includes(name))

/** Whether a key can be the parent of scoped keys. */
export const canSignScopedKeys = (key: Pick<ApiKeyRecord, 'actions'>): boolean =>
  key.actions.length === 1 && key.actions[0] === SEARCH_ACTION

// =============================================================================
// What keys fix in a conversation: its model and its user. Typesense reads conversation parameters before it looks at
// keys, so there a search key can spend on any model. Here the key decides.
//
// A request may bring several keys, one for each search. All of them have to agree.

/** Characters of a user's id, a label that is stored with every conversation. */
const LONGEST_USER_ID = 256

/** Who asks. */
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
 * @returns the user, '' for nobody, and whether the owner's key fixes it: otherwise the name is only the caller's claim
 * @throws ApiError 400 for an overlong name, 401 when the keys fix different users
 */
export function identify(accesses: readonly Access[], named: string | undefined) {
  const pinned = agreed(accesses.map(fixedUser))
  const userId = pinned ?? named ?? ''
  if (userId.length > LONGEST_USER_ID) {
    throw badRequest(`\`x-typesense-user-id\` is longer than ${LONGEST_USER_ID} characters.`)
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
    throw badRequest(
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
  if (given.size > 1) throw badRequest('The request has two secrets in `X-Parley-Visitor`. Send one.')
  return [...given][0]
}

const inQuery = (query: string): string[] =>
  [...new URLSearchParams(query)].flatMap(([name, value]) =>
    name.toLowerCase() === VISITOR_HEADER ? [value] : [],
  )
