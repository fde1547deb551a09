/**
 * Runs one search, from Typesense's parameters to its reply.
 *
 * SQLite finds words. Filters, orders, facets and groups are computed over blocks of values (schema/column.ts), a few at a time
 * (pace.ts). A search within one slice sees one state of the collection. A longer one may see some of what is written meanwhile; it starts again
 * if the schema changes.
 */
import { ApiError, detailed } from '../../errors'
import { once } from '../../lib/once'
import type { PassageReader } from '../../models/static-embedder/reader'
import { findRows } from '../documents/rows'
import { logFault, type Origin } from '../fault-log'
import { Filter } from '../filter/filter'
import { parseFilter } from '../filter/parse'
import { EVERYWHERE, fragment, splitOutside } from '../fragment'
import { checkLimits } from '../limits'
import { list, parameter } from '../request/parameters'
import { diversifying, parseRequest, type SearchRequest } from '../request/request'
import { BLOCK } from '../schema/column'
import type { StoredSchema } from '../schema/layout'
import type { Curation } from '../sets/curation'
import type { Synonym } from '../sets/synonym'
import { analyzerOf, type TextIndex, type TokenRules, WORDS } from '../text/analyzer'
import { type ParsedQuery, rulesOf } from '../text/query'
import { SynonymIndex, type SynonymRules } from '../text/synonyms'
import type { SearchParameters, SearchResult, SearchScope } from '../types'
import { type Candidates, VectorsUnavailable } from '../vectors/vector-index'
import {
  type Conditions,
  candidatesOf,
  fuse,
  gatherScores,
  isIn,
  neighboursGathered,
  type Top,
} from './candidates'
import { type Pacing, pacing, type Running, runningAt, type SearchContext } from './context'
import { besidePinned, curate, includingPinned, pinnedDocuments } from './curate'
import { countFacets } from './facets'
import { fuseScores } from './fusion'
import { searchJoins } from './join-answer'
import { allMatches, filteredMatches, scoredMatches } from './kept-matches'
import {
  contextFits,
  hasContext,
  type KeywordSearch,
  planKeywordSearch,
  questionWords,
  requireInfix,
  withInfix,
} from './keyword-search'
import { allDocuments, chosenIn, filteredIn, type MatchSet, minus, setOf } from './match-set'
import {
  embedWords,
  meaningOf,
  nearestNeighbours,
  resolveSortVectors,
  resolveVectorSearch,
  seekNeighbours,
  topWanted,
  type VectorSearch,
  wantedNeighbours,
} from './nearest'
import { checkOrder } from './order'
import { LongSearches, Pace } from './pace'
import { bestMatches, type Found, makePage } from './page'
import { matchOfAny, matchOfExcluded, queryOf, withoutMisspellings } from './query-words'
import { findPlain, isPlain } from './ranking/plain'
import {
  completeSides,
  concerns,
  parseReranking,
  type Reranking,
  readBest,
  readerFor,
  readPage,
  readWords,
  rerankHits,
  textsToRead,
  widened,
  windowToRead,
} from './reading'

/** Retry-After while the schema keeps changing, in seconds. */
const RETRY_SECONDS = 5

/** Thrown if the schema has changed while other requests had a turn. */
class Outdated extends Error {}

/** How often a search starts before it gives up. */
const MOST_BEGINNINGS = 3

/** How a search shares its object with others. */
export interface Sharing {
  /** the long searches of the same object */
  others: LongSearches
  /** the name by which it can be abandoned */
  ticket?: string | undefined
  /** called if the next reply may differ: this one has an order by chance, or lacks neighbours while Vectorize does not answer */
  passing?: () => void
}

/**
 * Searches a collection.
 * @param scope what the key of the search may see
 * @throws ApiError with the contract's status and message for wrong parameters; 408 when the search is cut off before
 *   it has found anything
 */
export function executeSearch(
  plain: SearchContext,
  params: SearchParameters,
  scope: SearchScope = {},
  { others, ticket, passing }: Sharing = { others: new LongSearches() },
): Promise<SearchResult> {
  return others.during(ticket, async (caller) => {
    const started = performance.now()
    await others.firstTurn()
    plain.requireOpen()
    const context = await searchJoins(plain, params, scope, { started, caller })
    const preparing = pacing(context, others, caller)
    for (let beginning = 1; ; beginning++) {
      const prepared = await prepare(context, params, scope, preparing)
      const byChance = prepared.request.sort?.some(({ kind }) => kind === 'random')
      if (byChance || prepared.candidates === 'unavailable') passing?.()
      const { schema } = context
      const left = prepared.request.cutoffMs - (performance.now() - started)
      const check = () => {
        context.requireOpen()
        if (context.schema !== schema) throw new Outdated()
      }
      const pace = new Pace(others, left, check, caller)
      try {
        return await run(runningAt(context, pace), prepared, started)
      } catch (error) {
        if (!(error instanceof Outdated)) throw error
        if (beginning === MOST_BEGINNINGS) {
          throw new ApiError(
            503,
            'The schema of the collection keeps changing. Ask again in a moment.',
            RETRY_SECONDS,
          )
        }
      } finally {
        pace.end()
      }
    }
  })
}

async function run(
  context: Running,
  {
    q,
    request,
    wide,
    query,
    vector,
    reader,
    sortVectors,
    candidates,
    reranking,
    reranked,
    metadata,
  }: Prepared,
  started: number,
): Promise<SearchResult> {
  const found = await find(context, wide, { query, vector, reader, seeking: candidates })
  const search = { ...found, sortVectors }
  const { seqs, ...page } = await makePage(context, wide, search)
  const { pinned } = search
  const best = async () => includingPinned(await bestMatches(context, wide, search), pinned)
  const counted = includingPinned(search.candidates, pinned)
  const facets = await countFacets(context, request, counted, best)
  // As in Typesense, partial results count as a result, none at all do not.
  if (context.pace.cutoff && page.found === 0) throw new ApiError(408, 'Request Timeout')
  const result: SearchResult = {
    facet_counts: facets,
    ...page,
    out_of: context.count(),
    ...request.window,
    request_params: {
      collection_name: context.schema.name,
      first_q: q,
      per_page: request.perPage,
      q,
    },
    search_cutoff: context.pace.cutoff,
    search_time_ms: Math.round(performance.now() - started),
    ...(metadata !== undefined && { metadata }),
  }
  if (reranked) await rerank(context, request, result, seqs, reranked)
  else if (reranking) result.rerank = { model: reranking.name, reranked: 0, time_ms: 0 }
  return withoutExcludedParts(result, request)
}

interface Prepared {
  /** as it was asked, before curations */
  q: string
  request: SearchRequest
  /** the request, widened to all hits that are reranked */
  wide: SearchRequest
  query: ParsedQuery
  vector: VectorSearch | undefined
  /** of passages, in a search for a question by words alone */
  reader: PassageReader | undefined
  /** of `_vector_query` in sort_by */
  sortVectors: VectorSearch[]
  candidates: Candidates | 'unavailable' | undefined
  reranking: ReturnType<typeof parseReranking>
  /** undefined if this page is not affected */
  reranked: Reranking | undefined
  /** of a curation */
  metadata: Record<string, unknown> | undefined
}

/** Does the asynchronous work of a search: embeds texts and asks Vectorize. */
async function prepare(
  context: SearchContext,
  given: SearchParameters,
  scope: SearchScope,
  preparing: Pacing,
): Promise<Prepared> {
  const sets = await readNamedSets(context, given)
  const { schema } = context
  const { params, metadata, diversity, ...curated } = await applyNamedSets(context, given, sets, preparing)
  const request = await withoutMisspellings(context, curated.request)
  requireInfix(schema, request.infix.always)
  const query = queryOf(context, request)
  const hasWords = query.terms.length > 0 || query.onlyStopwords === true
  const reranking = parseReranking(params, request, context.reranker)
  const reranked = reranking && concerns(request, reranking, hasWords) ? reranking : undefined
  if (diversity && reranking) {
    throw new ApiError(400, '`rerank_model` cannot be combined with the `diversity` of a curation.')
  }
  const found = diversity ? diversifying(request, diversity, schema) : request
  const wide = reranked ? widened(found, reranked) : found
  for (const filter of filtersOf(wide)) parseFilter(filter)
  checkOrder(context, wide.sort)
  // Check the filter before paying for an embedding. Its matches are read after the wait.
  if (request.vectorQuery !== undefined || request.embeddingField !== undefined) {
    new Filter(context.schema, request.filterBy, context.joins?.documents)
  }
  const vector = await resolveVectorSearch(context, request, hasWords, scope)
  if (vector === undefined && request.sort?.some(({ kind }) => kind === 'vector_distance')) {
    throw new ApiError(
      404,
      'sort_by vector_distance is only supported for vector queries, semantic search and hybrid search.',
    )
  }
  const sortVectors = await resolveSortVectors(context, request, hasWords, scope)
  const reader = vector === undefined && hasWords ? await readerFor(context, wide, scope) : undefined
  if (isOutdated(context, params, schema, vector)) return prepare(context, given, scope, preparing)
  const candidates =
    vector && (await seek(context, wide, query, vector, { hasWords, origin: scope, preparing }))
  if (isOutdated(context, params, schema, vector)) return prepare(context, given, scope, preparing)
  const asked = { q: given.q ?? curated.request.q, metadata }
  return { ...asked, request, wide, query, vector, reader, sortVectors, candidates, reranking, reranked }
}

/**
 * Whether a search has to start again after a wait: if a field has another model now, its vectors cannot be compared
 * with the question's.
 * @throws ApiError when the request names fields that were dropped
 */
function isOutdated(
  context: SearchContext,
  params: SearchParameters,
  schema: StoredSchema,
  vector: VectorSearch | undefined,
): boolean {
  if (context.schema === schema) return false
  parseRequest(params, context.schema)
  const slotOf = ({ slots }: StoredSchema) => vector && slots[vector.field.name]?.slot
  return slotOf(schema) !== slotOf(context.schema)
}

/** Cuts the page out of a wider search, after the model has ordered the best hits. */
async function rerank(
  context: SearchContext,
  request: SearchRequest,
  result: SearchResult,
  seqs: number[],
  reranking: Reranking,
): Promise<void> {
  const texts = textsToRead(context, request, seqs.slice(0, reranking.top))
  const { hits, info } = await rerankHits(reranking, request.q, result.hits ?? [], texts)
  result.hits = hits.slice(request.offset, request.offset + request.perPage)
  result.rerank = info
}

/** Candidates from an outside index. @returns 'unavailable' when it cannot be searched now */
async function seek(
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  vector: VectorSearch,
  { hasWords, origin, preparing }: { hasWords: boolean; origin: Origin; preparing: Pacing },
): Promise<Candidates | 'unavailable' | undefined> {
  if (context.vectors(vector.field).seek === undefined) return undefined
  const filter = await preparing(async (running) => {
    const passes = effectiveFilter(running, request, query, await pinnedDocuments(running, request))
    return passes.isAll ? fragment('1') : isIn(await passes.set())(EVERYWHERE)
  })
  const wanted = wantedNeighbours(request, vector, hasWords)
  const report = (error: unknown) => logFault(context.schema.name, 'vectorize', origin, error)
  try {
    return await seekNeighbours(context, vector, filter, wanted, report)
  } catch (error) {
    if (!(error instanceof VectorsUnavailable)) throw error
    return 'unavailable'
  }
}

function withoutExcludedParts(result: SearchResult, { excludeFields }: SearchRequest): SearchResult {
  const names = splitOutside(excludeFields)
  for (const name of ['out_of', 'search_time_ms'] as const) if (names.includes(name)) delete result[name]
  return result
}

/** Embeds a question before its search comes. @throws ApiError as the search would, for wrong parameters; the embedder's own */
export async function embedAhead(
  context: SearchContext,
  params: SearchParameters,
  others: LongSearches,
): Promise<void> {
  const sets = await readNamedSets(context, params)
  const preparing = pacing(context, others)
  const { request } = await applyNamedSets(context, params, sets, preparing)
  if (queryOf(context, request).terms.length > 0) await embedWords(context, request)
}

// =============================================================================
// Finds the matches of a search: those of its words, the neighbours of its vector, or both.

/** The weight of the vector's rank, as in Typesense. */
const RANK_ALPHA = 0.3

/** @throws ApiError 503 when an outside index of vectors does not answer, and nothing else was asked for */
async function find(
  context: Running,
  request: SearchRequest,
  asked: {
    query: ParsedQuery
    vector: VectorSearch | undefined
    reader: PassageReader | undefined
    /** candidates from an outside index */
    seeking: Candidates | 'unavailable' | undefined
  },
): Promise<Found> {
  const { vector, seeking, reader } = asked
  let query = await withInfix(context, request, asked.query, request.infix.always)
  const pinned = await pinnedDocuments(context, request)
  const filter = effectiveFilter(context, request, query, pinned)
  const page = vector === undefined ? topWanted(context, request) : undefined
  const top = page && besidePinned(page, pinned)
  const withFallback = () => withInfix(context, request, query, request.infix.fallback)
  if (vector === undefined && isPlain(request)) {
    const plain = () => findPlain(context, request, { query, filter, top, pinned })
    let found = await plain()
    if (found?.candidates.found === 0 && request.infix.fallback.length > 0) {
      query = await withFallback()
      found = await plain()
    }
    return found ?? all(context, query, filter, pinned)
  }
  const isRead = reader !== undefined && top !== undefined
  const how = {
    top: isRead ? windowToRead(top) : top,
    ranked: vector !== undefined,
    gathers: vector === undefined && contextFits(context, request),
  }
  let keyword = await planKeywordSearch(context, request, query, filter, how)
  if (keyword?.found === 0 && request.infix.fallback.length > 0) {
    query = await withFallback()
    keyword = await planKeywordSearch(context, request, query, filter, how)
  }
  if (vector !== undefined) {
    const planned = { query, keyword, filter, pinned }
    return findNear(context, request, planned, { vector, seeking })
  }
  if (keyword === undefined) return all(context, query, filter, pinned)
  const reading = isRead ? { reader, top } : undefined
  return findWords(context, request, { query, keyword, filter, pinned }, reading)
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
  context: Running,
  request: SearchRequest,
  { query, keyword, filter, pinned }: Planned & { keyword: KeywordSearch },
  reading: { reader: PassageReader; top: Top } | undefined,
): Promise<Found> {
  const { terms, match, index, rows, found } = keyword
  if (hasContext(request, keyword)) {
    const words = await questionWords(context, request, { query, keyword, filter })
    const read = reading && (await readWords(context, request, words, { terms, ...reading }))
    return { candidates: candidatesOf(read ?? words.matches, true, false), terms, index, pinned }
  }
  const known = rows && found !== undefined ? { rows, found } : undefined
  const page = reading && known ? await readPage(context, request, known, { terms, ...reading }) : known
  const candidates = {
    ...{ text: true, vector: false, found },
    set: once(async () => (await filteredMatches(context, match, filter)).set),
    gathered: once(async () => gatherScores(context, await scoredMatches(context, match, filter))),
  }
  return { candidates, terms, index, pinned, top: page }
}

/** The neighbours of a vector, and the matches of words besides. */
async function findNear(
  context: Running,
  request: SearchRequest,
  { query, keyword, filter, pinned }: Planned,
  { vector, seeking }: { vector: VectorSearch; seeking: Candidates | 'unavailable' | undefined },
): Promise<Found> {
  const terms = keyword?.terms ?? []
  const { k } = wantedNeighbours(request, vector, keyword !== undefined)
  if (seeking === 'unavailable' && keyword === undefined) {
    throw new ApiError(503, 'Vectorize did not answer. Ask again in a moment.', RETRY_SECONDS)
  }
  // If vectors cannot be searched, a hybrid search answers from the words alone.
  const nearest =
    seeking === 'unavailable' ? [] : await nearestNeighbours(context, vector, filter, k, seeking)
  if (keyword === undefined) {
    return { candidates: candidatesOf(neighboursGathered(nearest), false, true), terms, pinned }
  }
  const words = await questionWords(context, request, { query, keyword, filter })
  const text = words.matches
  const anyWord = matchOfAny(context, request, query, terms)
  const near = request.rerankHybridMatches
    ? await completeSides(context, { vector, nearest, text, anyWord })
    : nearest
  const fused = await context.pace.through(
    request.fusion === 'score'
      ? fuseScores(words, near, meaningOf(context, vector), (vector.field.vec_dist ?? 'cosine') === 'cosine')
      : fuse(text, near, vector.alpha ?? RANK_ALPHA),
  )
  await readBest(context, request, { fused, words, terms, vector })
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

// =============================================================================
// The synonym sets and curation sets of a search: those that the collection names, and those that the search names.

type NamedSets = Awaited<ReturnType<typeof readNamedSets>>

const MOST_TYPOS = 2

/**
 * Reads the sets of a search. A set that the collection names and that was deleted since is left out: it would take
 * all searches with it.
 * @throws ApiError 404 for a set that the search names
 */
export async function readNamedSets(context: SearchContext, params: SearchParameters) {
  const { schema } = context
  const synonyms = parameter(params, 'enable_synonyms')
    ? namesOf(schema.synonym_sets, params.synonym_sets)
    : []
  const withCurations = parameter(params, 'enable_curations') && parameter(params, 'enable_overrides')
  const curations = withCurations ? namesOf(schema.curation_sets, params.curation_sets) : []
  const [foundSynonyms, foundCurations] = await Promise.all([
    Promise.all(synonyms.map((set) => required(set, 'Synonym', context.synonymSet(set.name)))),
    Promise.all(curations.map((set) => required(set, 'Curation', context.curationSet(set.name)))),
  ])
  const rules = foundCurations.flatMap((set) => set ?? [])
  return {
    synonyms: foundSynonyms.filter((set) => set !== undefined),
    curations: rules,
    /** stemming dictionaries that rules of curations name */
    dictionaries: await dictionariesOf(context, rules),
  }
}

async function dictionariesOf(
  context: SearchContext,
  curations: Curation[],
): Promise<Map<string, ReadonlyMap<string, string>>> {
  const names = new Set(curations.flatMap(({ rule }) => rule.stemming_dictionary ?? []))
  const found = await Promise.all(
    [...names].map(async (name) => [name, await context.stemmingDictionary(name)] as const),
  )
  return new Map(found.flatMap(([name, words]) => (words === undefined ? [] : [[name, words]])))
}

interface Named {
  name: string
  asked: boolean
}

function namesOf(own: readonly string[] = [], asked: string | undefined): Named[] {
  if (own.length === 0 && !asked) return []
  const names = list(asked).map((name) => name.trim())
  return [...new Set([...own, ...names])].map((name) => ({ name, asked: names.includes(name) }))
}

async function required<Found>(
  { name, asked }: Named,
  what: string,
  finding: Promise<Found | undefined>,
): Promise<Found | undefined> {
  const found = await finding
  if (found === undefined && asked) {
    throw detailed(404, `${what} index not found`, `There is no set named \`${name}\`.`)
  }
  return found
}

/**
 * @returns the search as its sets change it: `params` with what curations put in, and the `metadata` of the first curation that has some
 * @throws ApiError for wrong parameters
 */
async function applyNamedSets(
  context: SearchContext,
  given: SearchParameters,
  sets: NamedSets,
  preparing: Pacing,
) {
  checkLimits(given)
  const { schema } = context
  const synonyms = synonymRules(given, sets.synonyms)
  const lists = { synonyms: synonyms?.(WORDS, schema, ''), dictionaries: sets.dictionaries }
  const curated = await preparing((running) => curate(running, given, sets.curations, lists))
  const { params, pins, hidden, filtersPins, metadata, diversity } = curated
  const request: SearchRequest = parseRequest(params, schema)
  const pinned = new Set(request.pinnedHits.map(({ id }) => id))
  for (const pin of pins) {
    if (!pinned.has(pin.id)) request.pinnedHits.push(pin)
    pinned.add(pin.id)
  }
  request.hiddenHits.push(...hidden)
  request.filterPinned ||= filtersPins
  if (synonyms !== undefined) {
    const field = request.queryFields[0]?.field
    request.synonyms = synonyms(request.index, rulesOf(schema, field), field?.locale ?? '')
  }
  return { params, request, metadata, diversity }
}

type Rules = (index: TextIndex, tokens: TokenRules, locale: string) => SynonymRules

/** @throws ApiError 400 */
function synonymRules(params: SearchParameters, sets: NamedSets['synonyms']): Rules | undefined {
  const typos = Number(params.synonym_num_typos || 0)
  if (!Number.isInteger(typos) || typos < 0) {
    throw new ApiError(400, 'Parameter `synonym_num_typos` must be an unsigned integer.')
  }
  if (typos > MOST_TYPOS) {
    throw new ApiError(400, `Value of \`synonym_num_typos\` must not be greater than ${MOST_TYPOS}.`)
  }
  if (sets.length === 0) return undefined
  return (index, tokens, locale) => ({
    indexes: sets.map((set) => indexOf(set, index, tokens)),
    form: analyzerOf(index, tokens).form,
    locale,
    prefix: parameter(params, 'synonym_prefix'),
    typos,
    demotes: parameter(params, 'demote_synonym_match'),
  })
}

/** The indexes of sets, by the rules of the collections that use them. A set that changes is another object. */
const indexes = new WeakMap<readonly Synonym[], Map<string, SynonymIndex>>()

function indexOf(set: readonly Synonym[], index: TextIndex, tokens: TokenRules): SynonymIndex {
  const byRules = indexes.get(set) ?? new Map<string, SynonymIndex>()
  indexes.set(set, byRules)
  const { token_separators, symbols_to_index, truncate_len, stem } = tokens
  const rules: TokenRules = {
    token_separators,
    symbols_to_index,
    ...(truncate_len !== undefined && { truncate_len }),
    ...(stem !== undefined && { stem }),
  }
  const key = JSON.stringify([index.table, rules])
  const known = byRules.get(key)
  if (known !== undefined) return known
  const made = new SynonymIndex(set, (symbols) =>
    analyzerOf(
      index,
      symbols.length === 0
        ? tokens
        : { ...rules, symbols_to_index: [...new Set([...symbols_to_index, ...symbols])] },
    ),
  )
  byRules.set(key, made)
  return made
}

// =============================================================================
// The conditions that every hit of a search meets.

/** filter_by, minus hidden and pinned documents and those with an excluded word. */
function effectiveFilter(
  context: Running,
  request: SearchRequest,
  query: ParsedQuery,
  pinned: { seq: number }[],
): Conditions {
  const filter = new Filter(context.schema, request.filterBy, context.joins?.documents)
  const hidden = request.hiddenHits.length > 0 ? findRows(context.sql, request.hiddenHits) : new Map()
  const without = setOf([...new Set([...pinned.map(({ seq }) => seq), ...hidden.values()])])
  const excluded = matchOfExcluded(context, request, query)
  const isAll = filter.isAll && without.size === 0 && excluded === undefined
  /** by block: which documents were tested, and which have passed. A search asks for the same ones again and again. */
  const known = new Map<number, { tested: Uint8Array; passed: Uint8Array }>()
  const knownOf = (number: number) => {
    const own = known.get(number) ?? { tested: new Uint8Array(BLOCK), passed: new Uint8Array(BLOCK) }
    known.set(number, own)
    return own
  }
  const among = async (set: MatchSet): Promise<MatchSet> => {
    if (isAll) return set
    const unwanted = excluded && (await allMatches(context, excluded)).set
    const left = minus(minus(set, without), unwanted ?? new Map())
    if (filter.isAll) return left
    const untested = chosenIn(left, (number) => {
      const { tested } = knownOf(number)
      return (at) => tested[at] === 0
    })
    await filteredIn(context, filter, untested, (number, offsets, passed) => {
      const own = knownOf(number)
      for (const at of offsets) own.tested[at] = 1
      for (const at of passed) own.passed[at] = 1
    })
    return chosenIn(left, (number) => {
      const { passed } = knownOf(number)
      return (at) => passed[at] === 1
    })
  }
  const set = once(async () => among(await allDocuments(context)))
  return { isAll, among, set }
}

/** The filters of a search: its own and those of its order. */
const filtersOf = ({ filterBy, sort = [] }: SearchRequest): string[] => [
  filterBy,
  ...sort.flatMap((key) => (key.kind === 'eval' ? key.cases.map(({ filter }) => filter) : [])),
]
