/** The searches of a turn, and from their replies to the documents of the prompt. */
import { type ApiError, type Outcome, plainFailure } from '../errors'
import { mapFew } from '../few'
import type { Source } from '../models/language-model'
import { MAX_Q_BYTES } from '../search/limits'
import { isVector } from '../search/schema/layout'
import { asQuery } from '../search/text/long-query'
import type { CollectionSchema, Hit, SearchResult } from '../search/types'
import { searchFailed } from './errors'
import type { SearchReply, SourceReference } from './events'
import { type Labelling, labelOf } from './labels'
import type { TurnPorts } from './ports'
import type { PlannedSearch } from './request'

/** A reply, and what a language model may see of it: documents, best first, without their vectors. */
export interface Retrieved {
  reply: SearchReply
  documents: Source[]
}

type SearchPorts = Pick<TurnPorts, 'search' | 'schema'>

/** Searches of a turn that run at the same time: more would keep others from theirs. */
const AT_ONCE = 4

/** Runs all searches for one question, a few side by side. */
export const retrieve = (
  searches: PlannedSearch[],
  question: string,
  ports: SearchPorts,
): Promise<Retrieved[]> => mapFew(searches, AT_ONCE, (search) => retrieveOne(search, question, ports))

async function retrieveOne(search: PlannedSearch, question: string, ports: SearchPorts): Promise<Retrieved> {
  if (search.error) return failed(search.error)
  if (search.objectId === undefined) return failed({ status: 404, message: 'Collection not found' })
  const [outcome, schema] = await Promise.all([
    ports.search(search.objectId, { ...search.params, q: asQuery(question, MAX_Q_BYTES) }, search.scope),
    ports.schema(search.objectId),
  ])
  const reply = replyOf(search, outcome)
  if (!outcome.ok || 'error' in reply) return { reply, documents: [] }
  const vectors = schema.ok ? vectorPaths(schema.value) : []
  const collection = outcome.value.request_params?.collection_name ?? search.collection
  const { minimumScore = 0, minimumRerankScore = 0 } = search
  const documents = hitsOf(outcome.value)
    .filter((hit) => minimumScore === 0 || scoreOf(hit) >= minimumScore)
    .filter(({ rerank_score: score }) => score === undefined || score >= minimumRerankScore)
    .map(({ document }) => ({ collection, document: withoutVectors(document, vectors) }))
  return { reply, documents }
}

/** What came of a search, as whoever asked for it is told. */
export function replyOf({ plain }: PlannedSearch, outcome: Outcome<SearchResult>): SearchReply {
  if (!outcome.ok) {
    const { status, message } = plain ? plainFailure(outcome.error) : outcome.error
    return { error: message, code: status }
  }
  const { value } = outcome
  const error = plain && value.rerank?.error
  if (!error) return { result: value }
  const said = plainFailure({ status: 400, message: error, confidential: true })
  return { result: { ...value, rerank: { ...value.rerank!, error: said.message } } }
}

const failed = ({ status, message }: { status: number; message: string }): Retrieved => ({
  reply: { error: message, code: status },
  documents: [],
})

/** The documents of each search, named where the answer is to cite them by name. */
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

/** Of a hit's `text_match`, which is BM25 as a whole number. */
const BM25_UNIT = 1e12

/**
 * How good a hit is, as one number: the score of rank fusion where words and meaning were searched (about 1 at
 * most), the cosine of meaning alone, and BM25 of words alone, from 0 to below 1.
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

/**
 * The error that ends the turn: any one for a single search; for several only a time-out, since the others
 * can still be answered from.
 */
export function fatalError(retrieved: Retrieved[], shape: 'single' | 'multi'): ApiError | undefined {
  for (const { reply } of retrieved) {
    if ('error' in reply && (shape === 'single' || reply.code === 408)) {
      return searchFailed(reply.code, reply.error)
    }
  }
  return undefined
}

/** The error of the first search, where none succeeded: it is the turn's. */
export function allFailed(retrieved: Retrieved[]): ApiError | undefined {
  const [first] = retrieved
  if (!first || retrieved.some(({ reply }) => 'result' in reply)) return undefined
  const { reply } = first
  return 'error' in reply ? searchFailed(reply.code, reply.error) : undefined
}

/** Replies as they are shown: with the question that was asked, where another was searched (contract 1.6, 1.7). */
export const asAsked = (retrieved: Retrieved[], question: string, shape: 'single' | 'multi'): SearchReply[] =>
  retrieved.map(({ reply }) => {
    if ('error' in reply) return reply
    const { result } = reply
    const params = { ...result.request_params, q: question }
    if (shape === 'single') params.first_q = question
    return { result: { ...result, request_params: params } }
  })

/** Documents of the prompt by name. One that shows no id (include_fields) has no name. */
export const referencesOf = (sources: Source[]): SourceReference[] =>
  sources.flatMap(({ collection, document }) =>
    typeof document.id === 'string' ? [{ collection, document_id: document.id }] : [],
  )

const vectorPaths = (schema: CollectionSchema): string[][] =>
  schema.fields.filter(isVector).map((field) => field.name.split('.'))

// Nobody reads a list of this many numbers, whatever the schema calls it; unindexed vectors look like that.
const LONGEST_NUMBERS = 64

/** A copy of a document without its vectors: those of the schema, and long lists of numbers. */
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
