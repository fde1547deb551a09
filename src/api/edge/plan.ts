/** From a request's parameters to a search that can be run. */
import type { SearchReply } from '../../conversation/events'
import type { PlannedSearch } from '../../conversation/request'
import { collectionObject, findCollection } from '../../search/catalog'
import type { SearchParameters } from '../../search/types'

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

/** A search of a collection. @throws ApiError 404 when the collection is unknown */
export async function planSearch(
  env: Cloudflare.Env,
  collection: string,
  parameters: SearchParameters,
): Promise<PlannedSearch> {
  const params = { ...parameters }
  for (const name of REQUEST_ONLY) delete params[name]
  const { objectId } = await findCollection(env, collection)
  return { collection, objectId, params }
}

/** Runs a search. What its caller did wrong becomes its reply. */
export async function runSearch(env: Cloudflare.Env, search: PlannedSearch): Promise<SearchReply> {
  if (search.error) return { error: search.error.message, code: search.error.status }
  if (!search.objectId) return { error: 'Collection not found', code: 404 }
  const outcome = await collectionObject(env, search.objectId).search(search.params)
  return outcome.ok ? { result: outcome.value } : { error: outcome.error.message, code: outcome.error.status }
}
