/** What a presented key may do. */
import type { ApiKeyRecord } from '../db/api-keys'
import { collectionPattern } from './pattern'

export const SEARCH_ACTION = 'documents:search'

export interface Access {
  /** id of the API key (a scoped key has its parent's); undefined for the admin key */
  readonly keyId?: number
  /** parameters embedded in a scoped key: they override the request's; {} for any other key */
  readonly embedded: Readonly<Record<string, string>>
  /**
   * @param action `resource:verb`
   * @param collection its name as the request gave it; absent where the route has none
   */
  allows(action: string, collection?: string): boolean
}

export const ADMIN: Access = { embedded: {}, allows: () => true }

const matchesAction = (granted: string, action: string): boolean =>
  granted === '*' || granted === action || (granted.endsWith(':*') && action.startsWith(granted.slice(0, -1)))

/** The access of an ordinary key. Its patterns are compiled once. */
export function accessOf(key: Pick<ApiKeyRecord, 'id' | 'actions' | 'collections'>): Access {
  const patterns = key.collections.map(collectionPattern)
  return {
    keyId: key.id,
    embedded: {},
    allows: (action, collection) =>
      key.actions.some((granted) => matchesAction(granted, action)) &&
      (!collection || patterns.some((matches) => matches(collection))),
  }
}

/** Whether a key can be the parent of scoped keys. */
export const canSignScopedKeys = (key: Pick<ApiKeyRecord, 'actions'>): boolean =>
  key.actions.length === 1 && key.actions[0] === SEARCH_ACTION
