/** Finds the matches of a search: those of its words, the neighbours of its vector, or both. */
import { ApiError } from '../../errors'
import type { PassageReader } from '../../models/static-embedder/reader'
import type { SearchRequest } from '../request/request'
import type { ParsedQuery } from '../text/query'
import type { Candidates } from '../vectors/vector-index'
import { type Conditions, candidatesOf, gatherScores, type Top } from './candidates'
import type { SearchContext } from './context'
import { effectiveFilter } from './effective-filter'
import { filteredMatches, scoredMatches } from './filtered-matches'
import { fuseScores } from './fusion'
import { fuse, neighboursGathered } from './gathered'
import { withInfix } from './infix'
import { type KeywordSearch, planKeywordSearch } from './keyword-search'
import { once } from './match-set'
import { meaningOf, nearestNeighbours, topWanted, type VectorSearch, wantedNeighbours } from './nearest'
import type { Pace } from './pace'
import type { Found } from './page'
import { besidePinned, pinnedDocuments } from './pinned'
import { matchOfAny } from './query-words'
import { contextFits, hasContext, questionWords } from './question-words'
import { findPlain, isPlain } from './ranking/found'
import { readBest, readPage, readWords, windowToRead } from './reading'
import { completeSides } from './rerank'

/** The weight of the vector's rank, as in Typesense. */
const RANK_ALPHA = 0.3
/** Retry-After when Vectorize does not answer, in seconds. */
const RETRY_SECONDS = 5

/** @throws ApiError 503 when an outside index of vectors does not answer, and nothing else was asked for */
export async function find(
  context: SearchContext,
  request: SearchRequest,
  asked: {
    query: ParsedQuery
    vector: VectorSearch | undefined
    reader: PassageReader | undefined
    /** candidates from an outside index */
    seeking: Candidates | 'unavailable' | undefined
  },
  pace: Pace,
): Promise<Found> {
  const { vector, seeking, reader } = asked
  let query = await withInfix(context, request, asked.query, request.infix.always, pace)
  const pinned = await pinnedDocuments(context, request, pace)
  const filter = effectiveFilter(context, request, query, pinned)
  const top = vector === undefined ? topWanted(context, request) : undefined
  const withFallback = () => withInfix(context, request, query, request.infix.fallback, pace)
  if (vector === undefined && isPlain(request)) {
    const plain = () => findPlain(context, request, { query, filter, top, pinned }, pace)
    let found = await plain()
    if (found?.candidates.found === 0 && request.infix.fallback.length > 0) {
      query = await withFallback()
      found = await plain()
    }
    return found ?? all(context, query, filter, pinned)
  }
  const isRead = reader !== undefined && top !== undefined
  const unpinned = pinned.length === 0 ? top : undefined
  const how = {
    top: isRead ? windowToRead(besidePinned(top, pinned)) : unpinned,
    ranked: vector !== undefined,
    gathers: vector === undefined && contextFits(context, request),
  }
  let keyword = await planKeywordSearch(context, request, query, filter, how, pace)
  if (keyword?.found === 0 && request.infix.fallback.length > 0) {
    query = await withFallback()
    keyword = await planKeywordSearch(context, request, query, filter, how, pace)
  }
  if (vector !== undefined) {
    const planned = { query, keyword, filter, pinned }
    return findNear(context, request, planned, { vector, seeking }, pace)
  }
  if (keyword === undefined) return all(context, query, filter, pinned)
  const reading = isRead ? { reader, top } : undefined
  return findWords(context, request, { query, keyword, filter, pinned }, reading, pace)
}

/** What a search for words, or for words and a vector, has planned. */
interface Planned {
  query: ParsedQuery
  keyword: KeywordSearch | undefined
  filter: Conditions
  pinned: Found['pinned']
}

/** The matches of words. @param reading present: the best of them are read */
async function findWords(
  context: SearchContext,
  request: SearchRequest,
  { query, keyword, filter, pinned }: Planned & { keyword: KeywordSearch },
  reading: { reader: PassageReader; top: Top } | undefined,
  pace: Pace,
): Promise<Found> {
  const { terms, match, index, rows, found } = keyword
  if (hasContext(request, keyword)) {
    const words = await questionWords(context, request, { query, keyword, filter }, pace)
    const read = reading && (await readWords(context, request, words, { terms, ...reading }, pace))
    return { candidates: candidatesOf(read ?? words.matches, true, false), terms, index, pinned }
  }
  const known = rows && found !== undefined ? { rows, found } : undefined
  const page =
    reading && known ? await readPage(context, request, known, { terms, pinned, ...reading }, pace) : known
  const candidates = {
    ...{ text: true, vector: false, found },
    set: once(async (by: Pace) => (await filteredMatches(context, match, filter, by)).set),
    gathered: once(async (by: Pace) =>
      gatherScores(context.sql, await scoredMatches(context, match, filter, by), by),
    ),
  }
  return { candidates, terms, index, pinned, top: page }
}

/** The neighbours of a vector, and the matches of words besides. */
async function findNear(
  context: SearchContext,
  request: SearchRequest,
  { query, keyword, filter, pinned }: Planned,
  { vector, seeking }: { vector: VectorSearch; seeking: Candidates | 'unavailable' | undefined },
  pace: Pace,
): Promise<Found> {
  const terms = keyword?.terms ?? []
  const { k } = wantedNeighbours(request, vector, keyword !== undefined)
  if (seeking === 'unavailable' && keyword === undefined) {
    throw new ApiError(503, 'Vectorize did not answer. Ask again in a moment.', RETRY_SECONDS)
  }
  // If vectors cannot be searched, a hybrid search answers from the words alone.
  const nearest =
    seeking === 'unavailable' ? [] : await nearestNeighbours(context, vector, filter, k, pace, seeking)
  if (keyword === undefined) {
    return { candidates: candidatesOf(neighboursGathered(nearest), false, true), terms, pinned }
  }
  const words = await questionWords(context, request, { query, keyword, filter }, pace)
  const text = words.matches
  const anyWord = matchOfAny(context, request, query, terms)
  const near = request.rerankHybridMatches
    ? await completeSides(context, { vector, nearest, text, anyWord }, pace)
    : nearest
  const fused = await pace.through(
    request.fusion === 'score'
      ? fuseScores(words, near, meaningOf(context, vector), (vector.field.vec_dist ?? 'cosine') === 'cosine')
      : fuse(text, near, vector.alpha ?? RANK_ALPHA),
  )
  await readBest(context, request, { fused, words, terms, vector }, pace)
  return { candidates: candidatesOf(fused, true, true), terms, index: keyword.index, pinned }
}

/** Every document that passes the filter; none for a query of stopwords. */
function all(
  { count }: SearchContext,
  { onlyStopwords }: ParsedQuery,
  filter: Conditions,
  pinned: Found['pinned'],
): Found {
  const none = { text: false, vector: false }
  if (onlyStopwords) {
    return { candidates: { ...none, found: 0, set: async () => new Map() }, terms: [], pinned }
  }
  const found = filter.isAll ? count() : undefined
  return { candidates: { ...none, found, set: filter.set }, terms: [], pinned }
}
