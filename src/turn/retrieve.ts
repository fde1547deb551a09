/** Runs a turn's searches and turns their replies into the documents of the prompt. */
import { type ApiError, type Outcome, plainFailure } from '../errors'
import { mapFew } from '../lib/few'
import { textOf } from '../lib/parts'
import type { Source } from '../models/language-model'
import { ProviderError } from '../models/provider-error'
import { namespaceOf } from '../models/providers'
import { MAX_Q_BYTES } from '../search/limits'
import { byRank, inTurn, type MergeLists } from '../search/merge-lists'
import { forQuestion } from '../search/request/question'
import { isVector } from '../search/schema/layout'
import { asQuery } from '../search/text/query'
import type { CollectionPlace, CollectionSchema, Hit, SearchParameters, SearchResult } from '../search/types'
import { searchFailed } from './errors'
import type { HistoryMessage, SearchReply, SearchSummary } from './events'
import { allFailed } from './fold'
import { saidIn, toChat } from './look-back'
import { type Labelling, labelOf } from './passage'
import { familyOf, fitHistory, standalonePrompt } from './prompt'
import type { AskRequest, OnSearchError, PlannedSearch } from './request'
import type { Generated, TracedPorts, TurnPorts } from './trace'

/** A search's reply, and the documents that a language model may see: best first, without vectors. */
export interface Retrieved {
  reply: SearchReply
  summary: SearchSummary
  documents: Source[]
}

type SearchPorts = Pick<TurnPorts, 'search' | 'schema' | 'placeOf'>

/** Searches of a turn that run at once. More would hold up other callers' searches. */
export const SEARCHES_AT_ONCE = 4

/**
 * Runs all searches for one question, a few at a time.
 * @param said what was said before a follow-up; it tells what the follow-up is about
 */
export const retrieve = (
  searches: PlannedSearch[],
  question: string,
  ports: SearchPorts,
  said?: string,
): Promise<Retrieved[]> =>
  mapFew(searches, SEARCHES_AT_ONCE, (search) => retrieveOne(search, question, ports, said))

async function retrieveOne(
  search: PlannedSearch,
  question: string,
  ports: SearchPorts,
  said: string | undefined,
): Promise<Retrieved> {
  const { collection: name } = search
  if (search.error) return failed(name, search.error)
  if (search.place === undefined) return failed(name, { status: 404, message: 'Collection not found' })
  const searchIn = (place: CollectionPlace) =>
    Promise.all([
      ports.search(place, asked(search.params, question, said), search.scope),
      ports.schema(place),
    ])
  let [outcome, schema] = await searchIn(search.place)
  if (!outcome.ok && outcome.error.code === 'unknown_collection') {
    // The place may be a minute old. Meanwhile the collection may have been made again, or its alias moved.
    const place = await ports.placeOf?.(name)
    if (place && place.objectId !== search.place.objectId) [outcome, schema] = await searchIn(place)
  }
  const reply = replyOf(search, outcome)
  if (!outcome.ok || 'error' in reply) {
    // Visitors of a page are not told the names of collections that are gone.
    const isGone = search.plain && !outcome.ok && outcome.error.code === 'unknown_collection'
    return { reply, summary: summaryOf(reply, isGone ? '' : name), documents: [] }
  }
  const vectors = schema.ok ? vectorPaths(schema.value) : []
  const collection = outcome.value.request_params?.collection_name ?? search.collection
  const { minimumScore = 0, minimumRerankScore = 0 } = search
  const documents = hitsOf(outcome.value)
    .filter((hit) => minimumScore === 0 || scoreOf(hit) >= minimumScore)
    .filter(({ rerank_score: score }) => score === undefined || score >= minimumRerankScore)
    .map((hit) => ({
      collection,
      document: withoutVectors(hit.document, vectors),
      score: scoreOf(hit),
      matched: matchedIn(hit),
    }))
  return { reply, summary: summaryOf(reply, collection), documents }
}

/** The parameters of a search for a question. */
export const asked = (
  params: SearchParameters,
  question: string,
  said: string | undefined,
): SearchParameters => ({
  ...forQuestion(params, said && asQuery(said, MAX_Q_BYTES)),
  q: asQuery(question, MAX_Q_BYTES),
})

/** A search's outcome as its caller may see it. */
export function replyOf({ plain }: PlannedSearch, outcome: Outcome<SearchResult>): SearchReply {
  if (!outcome.ok) {
    const { status, message } = plain ? plainFailure(outcome.error) : outcome.error
    const { retryAfter } = outcome.error
    return { error: message, code: status, ...(retryAfter !== undefined && { retryAfter }) }
  }
  const { value } = outcome
  const error = plain && value.rerank?.error
  if (!error) return { result: value }
  const said = plainFailure({ status: 400, message: error, confidential: true })
  return { result: { ...value, rerank: { ...value.rerank!, error: said.message } } }
}

function failed(collection: string, { status, message }: { status: number; message: string }): Retrieved {
  const reply = { error: message, code: status }
  return { reply, summary: summaryOf(reply, collection), documents: [] }
}

/** @param collection its name */
export function summaryOf(reply: SearchReply, collection: string): SearchSummary {
  if ('error' in reply) return { collection, error: { status: reply.code, message: reply.error } }
  const { found, search_time_ms: took, request_params: params } = reply.result
  return {
    collection,
    found,
    ...(params?.per_page !== undefined && { limit: params.per_page }),
    ...(took !== undefined && { took }),
  }
}

/** The order of the documents of several searches. Scores of different engines do not compare. */
export function orderOf(searches: readonly PlannedSearch[]): MergeLists {
  const engines = new Set(searches.flatMap(({ place }) => place?.engine ?? []))
  return engines.size > 1 ? byRank : inTurn
}

/** The documents of each search, labelled if the answer cites them by name. */
export const sourcesOf = (retrieved: Retrieved[], labels: Labelling | undefined): Source[][] =>
  retrieved.map(({ documents }) =>
    labels ? documents.map((source) => withLabel(source, labels)) : documents,
  )

function withLabel(source: Source, labels: Labelling): Source {
  const label = labelOf(source.document, labels)
  return label === undefined ? source : { ...source, label }
}

const matchedIn = ({ highlights = [] }: Hit): string[] =>
  highlights.flatMap(({ matched_tokens: tokens }) => tokens.flat())

/** Groups count as their hits, in order. */
export const hitsOf = (result: SearchResult): Hit[] => [
  ...(result.hits ?? []),
  ...(result.grouped_hits ?? []).flatMap((group) => group.hits),
]

/** Divisor for a hit's `text_match`, which is BM25 as a whole number. */
const BM25_UNIT = 1e12

/**
 * How good a hit is, as one number. A hybrid search gives the fusion score (about 1 at most), a vector search
 * the cosine, a keyword search its BM25 mapped to 0 up to below 1.
 */
export function scoreOf({
  hybrid_search_info: fusion,
  vector_distance: distance,
  text_match: match,
}: Hit): number {
  if (fusion) return fusion.rank_fusion_score
  if (distance !== undefined) return 1 - distance
  const bm25 = (match ?? 0) / BM25_UNIT
  return bm25 / (1 + bm25)
}

/** The error that ends the turn: any error if the request says `fail`, else only a time-out. */
export function fatalError(retrieved: Retrieved[], onSearchError: OnSearchError): ApiError | undefined {
  for (const { reply } of retrieved) {
    if ('error' in reply && (onSearchError === 'fail' || reply.code === 408)) {
      return searchFailed(reply.code, reply.error)
    }
  }
  return undefined
}

/** If no search succeeded, the first one's error ends the turn. */
export function failureOf(retrieved: Retrieved[]): ApiError | undefined {
  const summaries = retrieved.map(({ summary }) => summary)
  const [{ reply } = {}] = retrieved
  return reply && 'error' in reply && allFailed({ summaries })
    ? searchFailed(reply.code, reply.error)
    : undefined
}

const vectorPaths = (schema: CollectionSchema): string[][] =>
  schema.fields.filter(isVector).map((field) => field.name.split('.'))

// Nobody reads a list of this many numbers, whatever the schema calls it. It looks like an unindexed vector.
const LONGEST_NUMBERS = 64

/** Copies a document without its vectors: those of the schema, and any long list of numbers. */
export function withoutVectors(
  document: Record<string, unknown>,
  paths: string[][],
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(document).flatMap(([key, value]) => {
      const below = paths.filter(([first]) => first === key).map((path) => path.slice(1))
      if (below.some((path) => path.length === 0) || isNumbers(value)) return []
      return [[key, strip(value, below)]]
    }),
  )
}

function strip(value: unknown, paths: string[][]): unknown {
  if (Array.isArray(value)) return value.map((item) => strip(item, paths))
  if (value === null || typeof value !== 'object') return value
  return withoutVectors(value as Record<string, unknown>, paths)
}

const isNumbers = (value: unknown): boolean =>
  Array.isArray(value) && value.length >= LONGEST_NUMBERS && value.every(isNumeric)

const isNumeric = (value: unknown): boolean => typeof value === 'number' || typeof value === 'bigint'

// =============================================================================
// Rewrites a follow-up to stand alone, while its raw wording is already being searched.
//
// Searching the raw question is a bet. If the model returns the question unchanged, the results are already
// there. If the search fails for good, the turn need not wait for the model or pay for it.

export interface Rewritten {
  /** the question to search and to answer */
  question: string
  retrieved: Retrieved[]
}

/**
 * If the rewritten question is cut off or empty, the question stays as it is.
 * @param raw the search of the question's own wording; absent if it also needs the question before it
 * @throws ApiError from the model, or if the history does not fit into the model's `max_bytes`
 */
export async function rewriteAndRetrieve(
  request: AskRequest,
  history: HistoryMessage[],
  raw: Promise<Retrieved[]> | undefined,
  ports: TracedPorts,
  signal: AbortSignal,
  onRewritten: (standalone: string) => void,
): Promise<Rewritten> {
  const { model, searches, onSearchError } = request
  const question = textOf(request.question)
  const family = familyOf(model.model_name)
  const kept = fitHistory(
    history.map(toChat),
    question,
    model.max_bytes,
    family,
    namespaceOf(model.model_name),
  )
  const said = saidBefore(history, question)
  // A short question that stays unchanged may still depend on the one before. Search for both while the model
  // writes.
  const unchanged = raw ?? retrieve(searches, question, ports, said)
  unchanged.catch(() => {})
  const needless = new AbortController()
  const writing = ports.generate(
    {
      purpose: 'standalone',
      messages: standalonePrompt(family, kept, question, request.assistant !== undefined),
      question,
      sources: [],
      history: kept,
      stream: false,
    },
    AbortSignal.any([signal, needless.signal]),
  )
  // The loser of the race may still reject. Nobody handles that, so swallow it.
  writing.catch(() => {})
  const written = writing.catch((error) => {
    if (error instanceof ProviderError && error.fault === 'empty') return undefined
    throw error
  })
  const hopeless = unchanged.then((retrieved) =>
    fatalError(retrieved, onSearchError) || failureOf(retrieved) ? retrieved : new Promise<never>(() => {}),
  )
  const first = await Promise.race([hopeless, written]).finally(() => needless.abort())
  if (Array.isArray(first)) return { question, retrieved: first }
  const reply = first && isWhole(first) ? first.text : question
  const standalone = request.assistant === undefined ? reply : questionIn(reply, question, said)
  onRewritten(standalone)
  const retrieved = await (standalone === question ? unchanged : retrieve(searches, standalone, ports, said))
  return { question: standalone, retrieved }
}

/** A follow-up's context: the question before it, with the follow-up's own words. */
function saidBefore(history: HistoryMessage[], question: string): string | undefined {
  const said = saidIn(history)
  return said && `${said} ${question}`
}

/** A rewritten question may be so many times as long as what it was made of, in UTF-16 units, and this much longer. */
const MOST_TIMES = 3
const MORE = 60

/**
 * The question in a model's reply. A reply that is none would search for something else than was asked: a list, an answer in
 * sentences, or much more than the question and the one before it.
 * @param context the question, behind the one before it
 */
export function questionIn(reply: string, question: string, context = question): string {
  const said = reply
    .trim()
    .replace(/^(?:<[\w /-]{1,40}>|\**(?:rewritten |standalone )?question\**:?\**)\s*/i, '')
    .replace(/^["\u201c\u201e\u00ab']([^"\u201c\u201d\u201e\u00ab\u00bb]+)["\u201d\u201c\u00bb']$/, '$1')
    .trim()
  const isLong = said.length > MOST_TIMES * context.length + MORE
  const isList = /\n/.test(said)
  const isAnswer = !/[?\uff1f\u061f]/.test(said) && /[.!\u3002\uff01]\s*\S/.test(said)
  return said === '' || isLong || isList || isAnswer ? question : said
}

/** Whether a reply was not cut off. What was would search for something else than was asked. */
export const isWhole = ({ finish }: Generated): boolean => finish !== 'length' && finish !== 'content_filter'
