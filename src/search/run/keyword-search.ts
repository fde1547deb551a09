/**
 * The search for the words of a query beside a vector or an earlier conversation.
 *
 * For a question any informative word is enough: the one document that happens to contain all of its words is seldom the only
 * answer, and BM25 ranks documents with rare words, and many words, first. Other searches are planned as plain ones are.
 */
import type { SearchRequest } from '../request/request'
import type { TextIndex } from '../text/analyzer'
import { type ParsedQuery, relax, type Term, type TextMatch } from '../text/query'
import { bestByScore, type Conditions, candidatesOf, gatherScores, type Top } from './candidates'
import type { SearchContext } from './context'
import { filteredMatches, scoredMatches } from './filtered-matches'
import type { Gathered, OrderedMatch } from './gathered'
import type { Pace } from './pace'
import { correct, knownWords, matchOf, withSpacing } from './query-words'
import { planPlainSearch } from './ranking/plain'
import { splitsAndJoins, withCompounds, withSpellings } from './split-join'
import { windowOf } from './window'

export interface KeywordSearch {
  /** the terms that were searched for in the end */
  terms: Term[]
  match: TextMatch
  /** the index that was searched, if it is not the request's */
  index?: TextIndex | undefined
  /** undefined: not counted, because the matches are counted when they are ranked */
  found: number | undefined
  /** the best matches, if they were asked for (`top`) */
  rows?: OrderedMatch[]
  /** all matches, if they were asked for (`gathers`) */
  matches?: Gathered
}

/**
 * Chooses the query for the index.
 * @param top the best matches to bring along
 * @param ranked whether all matches are about to be ranked in memory
 * @param gathers whether to load the matches into memory instead of counting them first. Only for collections with
 *   few enough documents to be ranked
 * @returns undefined when the query has no word to look for
 */
export async function planKeywordSearch(
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  filter: Conditions,
  { top, ranked, gathers }: { top: Top | undefined; ranked: boolean; gathers: boolean },
  pace: Pace,
): Promise<KeywordSearch | undefined> {
  if (query.terms.length === 0 || request.queryFields.length === 0) return undefined
  const { sql } = context
  const read = async (planned: Pick<KeywordSearch, 'terms' | 'match' | 'index'>): Promise<KeywordSearch> => {
    if (ranked) return { ...planned, found: undefined }
    const parts = await scoredMatches(context, planned.match, filter, pace)
    if (gathers) {
      const matches = await gatherScores(sql, parts, pace)
      return { ...planned, found: matches.size, matches }
    }
    if (top !== undefined) {
      const { offset, limit, sort } = top
      const { best, found } = await bestByScore(sql, parts, offset + limit, sort.length === 1, pace)
      const { rows } = await windowOf(context, candidatesOf(best, true, false), sort, top, pace)
      return { ...planned, found, rows }
    }
    const { size } = await filteredMatches(context, planned.match, filter, pace)
    return { ...planned, found: size }
  }

  if (request.dropTokensThreshold <= context.count()) {
    const plain = await planPlainSearch(context, request, query, filter, undefined, pace)
    return plain && read({ terms: plain.terms, match: plain.match, index: plain.index })
  }
  const anyWord = (some: Term[]) => {
    const terms = relax(some)
    return { terms, match: matchOf(context, request, query, terms, 'OR') }
  }
  const terms = (request.typoTokensThreshold > 0 && correct(context, request, query.terms)) || query.terms
  const known = knownWords(context, request)
  const search = await read(anyWord(withSpellings(withCompounds(terms, known), known)))
  const isSpaced = search.found !== undefined && splitsAndJoins(request, search.found)
  const spaced = isSpaced && withSpacing(context, request, query, query.terms)
  return spaced ? read(anyWord(spaced)) : search
}
