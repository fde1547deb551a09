/**
 * The search for the words of a query beside a vector or an earlier conversation.
 *
 * For a question any informative word is enough: the one document that happens to contain all of its words is seldom the only
 * answer, and BM25 ranks documents with rare words, and many words, first. Other searches are planned as plain ones are.
 */

import { ApiError } from '../../errors'
import type { SearchRequest } from '../request/request'
import type { FieldSlot, StoredSchema } from '../schema/layout'
import { wordsAround } from '../schema/tables'
import { type TextIndex, WORDS } from '../text/analyzer'
import { informativeWords, type ParsedQuery, relax, type Term, type TextMatch } from '../text/query'
import { vocabularyOf } from '../text/similar'
import type { Field } from '../types'
import {
  bestByScore,
  type Conditions,
  candidatesOf,
  Gathered,
  gatherScores,
  type OrderedMatch,
  type Top,
} from './candidates'
import type { Running, SearchContext } from './context'
import { blend, CONTEXT_WEIGHT, type ScoredWords } from './fusion'
import { filteredMatches, scoredMatches } from './kept-matches'
import { windowOf } from './order'
import {
  correct,
  idealScore,
  knownWords,
  matchOf,
  matchOfAny,
  queryOf,
  splitsAndJoins,
  type WeighedWord,
  weighWords,
  withCompounds,
  withSpacing,
  withSpellings,
} from './query-words'
import { planPlainSearch } from './ranking/plain'

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
  context: Running,
  request: SearchRequest,
  query: ParsedQuery,
  filter: Conditions,
  { top, ranked, gathers }: { top: Top | undefined; ranked: boolean; gathers: boolean },
): Promise<KeywordSearch | undefined> {
  if (query.terms.length === 0 || request.queryFields.length === 0) return undefined
  const read = async (planned: Pick<KeywordSearch, 'terms' | 'match' | 'index'>): Promise<KeywordSearch> => {
    if (ranked) return { ...planned, found: undefined }
    const parts = await scoredMatches(context, planned.match, filter)
    if (gathers) {
      const matches = await gatherScores(context, parts)
      return { ...planned, found: matches.size, matches }
    }
    if (top !== undefined) {
      const { offset, limit, sort } = top
      const { best, found } = await bestByScore(context, parts, offset + limit, sort.length === 1)
      const { rows } = await windowOf(context, candidatesOf(best, true, false), sort, top)
      return { ...planned, found, rows }
    }
    const { size } = await filteredMatches(context, planned.match, filter)
    return { ...planned, found: size }
  }

  if (request.dropTokensThreshold <= context.count()) {
    const plain = await planPlainSearch(context, request, query, filter, undefined)
    return plain && read({ terms: plain.terms, match: plain.match, index: plain.index })
  }
  const anyWord = (some: Term[]) => {
    const terms = relax(some)
    return { terms, match: matchOf(context, request, query, terms) }
  }
  const terms = (request.typoTokensThreshold > 0 && correct(context, request, query.terms)) || query.terms
  const known = knownWords(context, request)
  const search = await read(anyWord(withSpellings(withCompounds(terms, known), known)))
  const isSpaced = search.found !== undefined && splitsAndJoins(request, search.found)
  const spaced = isSpaced && withSpacing(context, request, query, query.terms)
  return spaced ? read(anyWord(spaced)) : search
}

// =============================================================================
// Infix search: a part of a word finds it, in fields with `infix: true`.

/**
 * The most words that all words of a query may expand to together. FTS5 counts the documents of each one for BM25 in every
 * statement, and meanwhile nobody else is served: 1,000 words take 50 ms, however few documents the statement reads.
 */
const MAX_WORDS = 320
/** Only the first words of a query, at most this many, are looked for inside other words. */
const MAX_TERMS = 8

/** @throws ApiError 400 for a field without an infix index */
export const requireInfix = (schema: StoredSchema, fields: Field[]): FieldSlot[] =>
  fields.map(({ name }) => {
    const slot = schema.slots[name]
    if (slot?.infix) return slot
    throw new ApiError(
      400,
      `Could not find \`${name}\` in the infix index. Make sure to enable infix search by specifying \`infix: true\` in the schema.`,
    )
  })

/**
 * The query with the words around each of its words, as further words to search for.
 * @param fields whose words are looked at
 * @throws ApiError 400 for a field without an infix index, and what `pace` throws
 */
export async function withInfix(
  context: Running,
  { infix: { extra } }: SearchRequest,
  query: ParsedQuery,
  fields: Field[],
): Promise<ParsedQuery> {
  if (fields.length === 0) return query
  const { sql, schema } = context
  const slots = requireInfix(schema, fields)
  const vocabulary = vocabularyOf(sql, WORDS)
  const parts = query.terms.filter(({ tokens }) => tokens.length === 1).slice(0, MAX_TERMS)
  const limit = Math.floor(MAX_WORDS / Math.max(1, parts.length))
  const expanded = new Map<Term, Term>()
  for (const term of parts) {
    const part = term.tokens[0]!
    const words = new Set<string>()
    for (const slot of slots) {
      const rows = context.pace.query<{ word: string }>(
        sql,
        wordsAround(slot, part, extra, limit, vocabulary),
      )
      for (const { word } of rows) if (word !== part && words.size < limit) words.add(word)
      await context.pace.rest()
    }
    expanded.set(term, { ...term, corrections: [...term.corrections, ...words] })
    if (context.pace.cutoff) break
  }
  return { ...query, terms: query.terms.map((term) => expanded.get(term) ?? term) }
}

// =============================================================================
// The matches of a question's words, combined with those of the earlier conversation.

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
  context: Running,
  request: SearchRequest,
  { query, keyword, filter }: WordQuery,
): Promise<ScoredWords> {
  const isEmpty = request.fusion === 'score' && informativeWords(keyword.terms) === 0
  const withContext = hasContext(request, keyword)
  const load = async () => gatherScores(context, await scoredMatches(context, keyword.match, filter))
  const matches = isEmpty ? new Gathered() : (keyword.matches ?? (await load()))
  const asked =
    !isEmpty && (request.fusion === 'score' || withContext)
      ? scored(matches, weighWords(context, request.index, keyword.terms))
      : { matches, ideal: 0 }
  if (!withContext || matches.size > MOST_WITH_CONTEXT) return asked
  return blend(asked, await saidBefore(context, request, { query, filter }), CONTEXT_WEIGHT)
}

async function saidBefore(
  context: Running,
  request: SearchRequest,
  { query, filter }: Pick<WordQuery, 'query' | 'filter'>,
): Promise<ScoredWords> {
  const { terms } = queryOf(context, { ...request, q: request.contextQ })
  if (informativeWords(terms) === 0) return { matches: new Gathered(), ideal: 0 }
  const match = matchOfAny(context, request, { ...query, terms }, terms)
  const parts = await scoredMatches(context, match, filter)
  const { best } = await bestByScore(context, parts, MOST_OF_CONTEXT, true)
  return scored(best, weighWords(context, request.index, terms))
}

const scored = (matches: Gathered, asked: WeighedWord[]): ScoredWords => ({
  matches,
  ideal: idealScore(asked),
  asked,
})
