/** Runs a turn's searches and turns their replies into the documents of the prompt. */
import { type ApiError, type Outcome, plainFailure } from '../errors'
import { mapFew } from '../lib/few'
import type { Source } from '../models/language-model'
import { MAX_Q_BYTES } from '../search/limits'
import { byRank, inTurn, type MergeLists } from '../search/merge-lists'
import { forQuestion } from '../search/request/question'
import { isVector } from '../search/schema/layout'
import { asQuery } from '../search/text/query'
import type { CollectionPlace, CollectionSchema, Hit, SearchParameters, SearchResult } from '../search/types'
import { searchFailed } from './errors'
import type { SearchReply, SearchSummary } from './events'
import { allFailed } from './fold'
import { type Labelling, labelOf } from './passage'
import type { OnSearchError, PlannedSearch } from './request'
import type { TurnPorts } from './trace'

/** A search's reply, and the documents that a language model may see: best first, without vectors. */
export interface Retrieved {
  reply: SearchReply
  summary: SearchSummary
  documents: Source[]
}

type SearchPorts = Pick<TurnPorts, 'search' | 'schema' | 'placeOf'>

/** Searches of a turn that run at once. More would hold up other callers' searches. */
const AT_ONCE = 4

/**
 * Runs all searches for one question, a few at a time.
 * @param said what was said before a follow-up; it tells what the follow-up is about
 */
export const retrieve = (
  searches: PlannedSearch[],
  question: string,
  ports: SearchPorts,
  said?: string,
): Promise<Retrieved[]> => mapFew(searches, AT_ONCE, (search) => retrieveOne(search, question, ports, said))

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
    .map((hit) => ({ collection, document: withoutVectors(hit.document, vectors), score: scoreOf(hit) }))
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
