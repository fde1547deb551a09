/** What a presented key may do. */
import type { ApiKeyRecord, KeyLimits } from '../db/api-keys'
import { collectionPattern, fitsAnyName } from './pattern'

export { forbidden } from '../errors'

export const SEARCH_ACTION = 'documents:search'

/** Asking an assistant: what a key has that is bound to one. Other keys ask where they may search or converse. */
export const ASSISTANT_ACTION = 'assistants:ask'
const CONVERSE_ACTION = 'conversations:create'

/** One of these is what asking an assistant takes. */
export const ASK_ACTIONS = [ASSISTANT_ACTION, SEARCH_ACTION, CONVERSE_ACTION] as const

/** All that a key bound to an assistant may do. What else its actions allow would lead past the assistant. */
const BOUND_ACTIONS: readonly string[] = [
  ASSISTANT_ACTION,
  'conversations:get',
  'conversations:list',
  'conversations:stop',
  'conversations:delete',
]

/** All that a key can do as a visitor. A key with any other action is one of a server's. */
const VISITOR_ACTIONS: readonly string[] = [SEARCH_ACTION, CONVERSE_ACTION, ...BOUND_ACTIONS]

export interface Access {
  /** id of the API key (a scoped key has its parent's); undefined for the admin key */
  readonly keyId?: number
  /** the key in one word, as owner of conversations and in logs: `admin`, or its id */
  readonly owner: string
  /** tells keys apart where the key itself has no business: rate limits, fingerprints of requests */
  readonly digest: string
  /** of a scoped key: the digest of the key that signed it */
  readonly parentDigest?: string
  /** what the key, or a scoped key's parent, fixes */
  readonly limits: KeyLimits
  /** parameters embedded in a scoped key: they override the request's; {} for any other key */
  readonly embedded: Readonly<Record<string, string>>
  /** true of a scoped key: one of many that speak for the same parent */
  readonly scoped?: boolean
  /**
   * Whether the key is made for a page, where visitors hold it: a scoped key, or one with `limits`, such as a key that is
   * bound to an assistant. Such a key is told no detail that is the operator's, and gets fewer searches a request.
   */
  readonly forPages: boolean
  /**
   * @param action `resource:verb`
   * @param collection its name as the request gave it; absent where the route has none
   */
  allows(action: string, collection?: string): boolean
  /**
   * Whether a key that this one makes may have a pattern of collections: one of its own, or a plain name that it allows.
   * Whether another expression stays within its own cannot be told.
   */
  covers(pattern: string): boolean
  /**
   * Whether a search by this key may read what was said in a history collection. A key that may do no more than search
   * has to name it: `*` does not open everybody's conversations.
   * @param collection its name as the request gave it
   */
  readsHistory(collection: string): boolean
  /**
   * How far the key reaches among conversations: those that its holder is shown to have begun, all that were begun with
   * the key, or those of every key.
   * @param action one that it has to be given by name; what a search key may do besides does not count
   */
  reach(action: string): Reach
}

/** Whose conversations a key opens. `own`: only its holder's. */
export type Reach = 'own' | 'key' | 'all'

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

const matchesAction = (granted: string, action: string): boolean =>
  granted === '*' || granted === action || (granted.endsWith(':*') && action.startsWith(granted.slice(0, -1)))

/** The access of an ordinary key. Its patterns are compiled once. */
export function accessOf(
  key: Pick<ApiKeyRecord, 'id' | 'actions' | 'collections' | 'hash' | 'limits'>,
): Access {
  const patterns = key.collections.map(collectionPattern)
  // Worked out for keys that can only search, and once for each.
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
    covers: (pattern) =>
      key.collections.some((own) => [pattern, '*', '.*'].includes(own)) ||
      (/^[\w-]+$/.test(pattern) && patterns.some((matches) => matches(pattern))),
    // A bound key searches what its assistant names, and nothing else.
    readsHistory: (collection) => bound || !onlyVisits || names(collection),
    allows: (action, collection) =>
      bound
        ? asks && collection === undefined && BOUND_ACTIONS.includes(action)
        : may(action) && (!collection || patterns.some((matches) => matches(collection))),
    // A bound key lies in a page: its actions give it no more than the assistant does.
    reach: (action) => (!bound && may(action) ? reach : 'own'),
  }
}

/**
 * Whether a key may ask an assistant: the one that it is bound to, or any whose collections are all open to it.
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
 * What a scoped key may fix whose parent is bound to an assistant. The parent may lie open in a page, so that anybody
 * signs with it: any other parameter could show more of documents than the assistant does.
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
