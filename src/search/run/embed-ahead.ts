/** Embeds a question before its search comes. */
import type { SearchParameters } from '../types'
import type { SearchContext } from './context'
import { queryOf } from './keyword'
import { applyNamedSets, readNamedSets } from './named-sets'
import { embedWords } from './nearest'

/** @param params of the search to come @throws ApiError as the search would, for wrong parameters; the embedder's own */
export async function embedAhead(context: SearchContext, params: SearchParameters): Promise<void> {
  const { request } = applyNamedSets(context, params, await readNamedSets(context, params))
  if (queryOf(context, request).terms.length > 0) await embedWords(context, request)
}
