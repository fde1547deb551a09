/** Embeds a question before its search comes. */
import type { SearchParameters } from '../types'
import type { SearchContext } from './context'
import { embedWords } from './nearest'
import { type LongSearches, pacing } from './pace'
import { queryOf } from './query-words'
import { applyNamedSets, readNamedSets } from './search'

/** @param params of the search to come @throws ApiError as the search would, for wrong parameters; the embedder's own */
export async function embedAhead(
  context: SearchContext,
  params: SearchParameters,
  others: LongSearches,
): Promise<void> {
  const sets = await readNamedSets(context, params)
  const preparing = pacing(others, () => context.requireOpen())
  const { request } = await applyNamedSets(context, params, sets, preparing)
  if (queryOf(context, request).terms.length > 0) await embedWords(context, request)
}
