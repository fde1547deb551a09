/** A search whose reply may be cached (kept-replies.ts). */
import { changesOf } from '../changes'
import type { SearchParameters, SearchResult, SearchScope } from '../types'
import type { SearchContext } from './context'
import { hasJoins } from './joins'
import { readNamedSets } from './named-sets'
import { executeSearch, type Sharing } from './search'

/**
 * `executeSearch`, or the reply that it gave to the same key's filter and parameters, as it was. Replies that depend on chance
 * or on other collections are not cached, nor those that lack something because of a failure or a time limit.
 */
export async function search(
  context: SearchContext,
  params: SearchParameters,
  scope: SearchScope,
  sharing: Sharing,
): Promise<SearchResult> {
  const { replies, sql } = context
  const seconds = scope.cacheSeconds
  if (!seconds || replies === undefined || hasJoins(params) || params.sort_by?.includes('_rand')) {
    return executeSearch(context, params, scope, sharing)
  }
  context.requireOpen()
  const { synonyms, curations, dictionaries } = await readNamedSets(context, params)
  const on = [context.schema, ...synonyms, ...curations, ...dictionaries.values()]
  const key = JSON.stringify([scope.history, scope.filter, Object.entries(params).sort()])
  const known = replies.find(sql, key, on)
  if (known !== undefined) return known
  const changes = changesOf(sql)
  let lacks = false
  const missing = () => {
    lacks = true
  }
  const result = await executeSearch(context, params, scope, { ...sharing, missing })
  if (!lacks && !result.search_cutoff && result.rerank?.error === undefined) {
    replies.keep(sql, key, changes, { result, on, seconds })
  }
  return result
}
