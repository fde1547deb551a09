/** The matches of a question's words, combined with those of the earlier conversation. */

import type { SearchRequest } from '../request/request'
import { informativeWords, type ParsedQuery } from '../text/query'
import { bestByScore, type Conditions, Gathered, gatherScores } from './candidates'
import type { SearchContext } from './context'
import { blend, CONTEXT_WEIGHT, type ScoredWords } from './fusion'
import { scoredMatches } from './kept-matches'
import type { KeywordSearch } from './keyword-search'
import type { Pace } from './pace'
import { matchOfAny, queryOf } from './query-words'
import { idealScore, type WeighedWord, weighWords } from './word-weights'

/**
 * If a question finds more documents than this, the earlier conversation is ignored: ranking with it takes place in
 * memory.
 */
const MOST_WITH_CONTEXT = 100_000

/** This many of the best matches of the earlier conversation count. */
const MOST_OF_CONTEXT = 1_000

/** A query for words. */
interface WordQuery {
  query: ParsedQuery
  keyword: KeywordSearch
  filter: Conditions
}

/** Whether what was said before changes the order of what the words find. */
export const hasContext = ({ contextQ }: SearchRequest, { found }: KeywordSearch): boolean =>
  contextQ !== '' && (found ?? 0) <= MOST_WITH_CONTEXT

/**
 * Whether the collection is small enough that any question's matches can be ranked together with the earlier
 * conversation.
 */
export const contextFits = (context: SearchContext, { contextQ }: SearchRequest): boolean =>
  contextQ !== '' && context.count() <= MOST_WITH_CONTEXT

/**
 * The matches of a search's words. If there is something else to go by, uninformative words ("why?") find nothing.
 * @returns `ideal` is set for a fusion by scores, and if there was an earlier conversation
 * @throws ApiError 422 when they are too many
 */
export async function questionWords(
  context: SearchContext,
  request: SearchRequest,
  { query, keyword, filter }: WordQuery,
  pace: Pace,
): Promise<ScoredWords> {
  const { sql } = context
  const isEmpty = request.fusion === 'score' && informativeWords(keyword.terms) === 0
  const withContext = hasContext(request, keyword)
  const load = async () => gatherScores(sql, await scoredMatches(context, keyword.match, filter, pace), pace)
  const matches = isEmpty ? new Gathered() : (keyword.matches ?? (await load()))
  const asked =
    !isEmpty && (request.fusion === 'score' || withContext)
      ? scored(matches, weighWords(context, request.index, keyword.terms))
      : { matches, ideal: 0 }
  if (!withContext || matches.size > MOST_WITH_CONTEXT) return asked
  return blend(asked, await saidBefore(context, request, { query, filter }, pace), CONTEXT_WEIGHT)
}

async function saidBefore(
  context: SearchContext,
  request: SearchRequest,
  { query, filter }: Pick<WordQuery, 'query' | 'filter'>,
  pace: Pace,
): Promise<ScoredWords> {
  const { terms } = queryOf(context, { ...request, q: request.contextQ })
  if (informativeWords(terms) === 0) return { matches: new Gathered(), ideal: 0 }
  const match = matchOfAny(context, request, { ...query, terms }, terms)
  const parts = await scoredMatches(context, match, filter, pace)
  const { best } = await bestByScore(context.sql, parts, MOST_OF_CONTEXT, true, pace)
  return scored(best, weighWords(context, request.index, terms))
}

const scored = (matches: Gathered, asked: WeighedWord[]): ScoredWords => ({
  matches,
  ideal: idealScore(asked),
  asked,
})
