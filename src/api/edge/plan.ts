/** From a request's parameters to a search that can be run. */
import type { Access } from '../../auth/access'
import type { SearchReply } from '../../conversation/events'
import type { PlannedSearch } from '../../conversation/request'
import { replyOf } from '../../conversation/retrieval'
import { collectionObject, findCollection } from '../../search/catalog'
import type { SearchParameters, SearchScope } from '../../search/types'

/** Parameters that are the request's and not the search's. */
const REQUEST_ONLY = [
  'x-typesense-api-key',
  'x-typesense-user-id',
  'user_id',
  'collection',
  'conversation',
  'conversation_id',
  'conversation_model_id',
  'conversation_stream',
  'limit_multi_searches',
  'cache_ttl',
  'use_cache',
]

/**
 * A search of a collection.
 * @param access the key that searches
 * @param collection its name as the key was checked for it
 * @throws ApiError 404 when the collection is unknown
 */
export async function planSearch(
  env: Cloudflare.Env,
  access: Access,
  collection: string,
  parameters: SearchParameters,
): Promise<PlannedSearch> {
  const params = { ...parameters }
  for (const name of REQUEST_ONLY) delete params[name]
  const { objectId } = await findCollection(env, collection)
  return { collection, objectId, params, scope: scopeOf(access, collection), plain: access.forPages }
}

const scopeOf = ({ embedded, readsHistory }: Access, collection: string): SearchScope => ({
  history: readsHistory(collection),
  ...(embedded.filter_by && { filter: embedded.filter_by }),
})

/** Runs a search. What its caller did wrong becomes its reply. */
export async function runSearch(env: Cloudflare.Env, search: PlannedSearch): Promise<SearchReply> {
  if (search.error) return { error: search.error.message, code: search.error.status }
  if (!search.objectId) return { error: 'Collection not found', code: 404 }
  return replyOf(search, await collectionObject(env, search.objectId).search(search.params, search.scope))
}
