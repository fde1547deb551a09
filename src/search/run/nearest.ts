/** The vector side of a search: the query's vector, and the documents nearest to it. */

import { ApiError } from '../../errors'
import type { EmbeddingLimits } from '../../models/embedding-model'
import { Filter } from '../filter/filter'
import { readAll, type SqlFragment } from '../fragment'
import type { VectorQuery } from '../request/parameters'
import type { SearchRequest } from '../request/request'
import { completeSort } from '../request/sort'
import { BLOCK } from '../schema/column'
import { atOnce } from '../steps'
import type { EmbedConfig, Field, SearchScope } from '../types'
import type { Candidates, Neighbour, Report, Wanted } from '../vectors/vector-index'
import type { Conditions, Top } from './candidates'
import type { Running, SearchContext } from './context'
import { CONTEXT_WEIGHT } from './fusion'
import { seqsOf, setOf } from './match-set'

export interface VectorSearch {
  field: Field
  vector: Float32Array
  k: number | undefined
  distanceThreshold: number | undefined
  /** its weight beside the words, undefined for the default of the search's fusion */
  alpha: number | undefined
  /** a document to leave out: the one whose vector is the query */
  except: number | undefined
}

/**
 * The vector search that a request asks for, with its texts embedded.
 * @param hasWords whether q has words; `*` has none
 * @param scope a document hidden by it cannot be the query, since distances to it would reveal its content
 * @returns undefined when none is asked for
 * @throws ApiError 400 when there is nothing to make a vector of, or the embedder's own
 */
export async function resolveVectorSearch(
  context: SearchContext,
  request: SearchRequest,
  hasWords: boolean,
  { filter = '' }: SearchScope = {},
): Promise<VectorSearch | undefined> {
  const query = request.vectorQuery
  const field = query?.field ?? (hasWords ? request.embeddingField : undefined)
  if (field === undefined) return undefined
  const common = {
    field,
    k: query?.k,
    distanceThreshold: query?.distanceThreshold,
    alpha: query?.alpha,
  }
  if (query !== undefined && query.vector.length > 0) {
    return { ...common, vector: Float32Array.from(query.vector), except: undefined }
  }
  if (query?.id !== undefined) {
    const seq = sequenceNumber(context, query.id, filter)
    const vector = seq === undefined ? undefined : context.vectors(field).get(seq)
    if (vector === undefined) throw new ApiError(400, 'Document id referenced in vector query is not found.')
    return { ...common, vector, except: seq }
  }
  const { texts, weights } = textsToEmbed(request, query, hasWords)
  return {
    ...common,
    vector: await embed(context, field, texts, weights, request.embeddingLimits),
    except: undefined,
  }
}

/** The vectors that the `_vector_query` keys of sort_by measure from. @throws as `resolveVectorSearch` */
export async function resolveSortVectors(
  context: SearchContext,
  request: SearchRequest,
  hasWords: boolean,
  scope: SearchScope,
): Promise<VectorSearch[]> {
  const searches: VectorSearch[] = []
  for (const key of request.sort ?? []) {
    if (key.kind !== 'vector_query') continue
    const { query } = key
    const asked = { ...request, vectorQuery: query, embeddingField: query.field }
    const search = await resolveVectorSearch(context, asked, hasWords, scope)
    if (search !== undefined) searches.push(search)
  }
  return searches
}

function textsToEmbed(
  request: SearchRequest,
  query: VectorQuery | undefined,
  hasWords: boolean,
): { texts: string[]; weights: number[] } {
  if (query !== undefined && query.queries.length > 0) {
    return { texts: query.queries, weights: query.queryWeights }
  }
  if (!hasWords) {
    throw new ApiError(400, 'When a vector query value is empty, an `id` parameter must be present.')
  }
  if (request.embeddingField === undefined) {
    throw new ApiError(400, 'Vector query could not find any embedded fields.')
  }
  if (request.contextQ === '') return { texts: [request.q], weights: [] }
  return { texts: [request.q, request.contextQ], weights: [1 - CONTEXT_WEIGHT, CONTEXT_WEIGHT] }
}

/** The texts as the field's model reads them. */
function prefixed({ model_config: { query_prefix: prefix } }: EmbedConfig, texts: string[]): string[] {
  const lead = prefix ? `${prefix.trimEnd()} ` : ''
  return texts.map((text) => lead + text)
}

/**
 * Embeds what a request's search will be asked for, if it is words and their model has to be called.
 * @throws ApiError the embedder's own
 */
export async function embedWords(context: SearchContext, request: SearchRequest): Promise<void> {
  const { embeddingField: field, vectorQuery, embeddingLimits } = request
  if (field?.embed === undefined || vectorQuery !== undefined) return
  const model = context.embedder(field)
  const { texts } = textsToEmbed(request, undefined, true)
  if (model.embedNow === undefined)
    await context.ahead?.begin(model, prefixed(field.embed, texts), embeddingLimits)
}

async function embed(
  context: SearchContext,
  field: Field,
  texts: string[],
  weights: number[],
  limits: EmbeddingLimits,
): Promise<Float32Array> {
  if (field.embed === undefined) {
    throw new ApiError(400, 'Vector query could not find any embedded fields.')
  }
  const model = context.embedder(field)
  const vectors: Float32Array[] = []
  for (let start = 0; start < texts.length; start += model.batchSize) {
    const batch = prefixed(field.embed, texts.slice(start, start + model.batchSize))
    vectors.push(...(await (context.ahead?.find(model, batch) ?? model.embed(batch, 'query', limits))))
  }
  if (vectors.length === 1) return vectors[0]!
  const mean = new Float32Array(vectors[0]!.length)
  for (const [index, vector] of vectors.entries()) {
    const weight = weights[index] ?? 1 / vectors.length
    for (const [i, value] of vector.entries()) mean[i]! += value * weight
  }
  return mean
}

/**
 * Asks an outside index for documents that may be the nearest.
 * @param filter of the documents that are searched; `1` for all
 * @returns undefined: all that are searched
 * @throws VectorsUnavailable
 */
export async function seekNeighbours(
  context: SearchContext,
  search: VectorSearch,
  filter: SqlFragment,
  { k, enough }: Wanted,
  report: Report,
): Promise<Candidates | undefined> {
  // Ask for one more, in case the excluded document is among them.
  const more = search.except === undefined ? 0 : 1
  const wanted = { k: k + more, enough: enough + more }
  return await context.vectors(search.field).seek?.(search.vector, wanted, filter, report)
}

/**
 * The nearest documents, with exact distances.
 * @param filter `1` for all
 * @param candidates from `seekNeighbours`
 */
export async function nearestNeighbours(
  context: Running,
  search: VectorSearch,
  filter: Conditions,
  k: number,
  candidates?: Candidates,
): Promise<Neighbour[]> {
  const allowed = await allowedBy(filter, candidates)
  const more = search.except === undefined ? 0 : 1
  const all = await context.pace.through(
    context.vectors(search.field).search(search.vector, k + more, allowed),
  )
  const found = all.filter(({ seq }) => seq !== search.except).slice(0, k)
  const threshold = search.distanceThreshold
  return threshold === undefined ? found : found.filter(({ distance }) => distance <= threshold)
}

/** The exact distances of documents that have a vector, nearest first. */
export const measured = (
  context: Running,
  { field, vector }: VectorSearch,
  seqs: readonly number[],
): Promise<Neighbour[]> =>
  context.pace.through(context.vectors(field).search(vector, seqs.length, new Set(seqs)))

/** The distance of each document, NaN for one without a vector or beyond the threshold. */
export async function distancesTo(
  context: Running,
  search: VectorSearch,
  seqs: readonly number[],
): Promise<number[]> {
  const { distanceThreshold = Number.POSITIVE_INFINITY } = search
  const distances = new Map<number, number>()
  for (const { seq, distance } of await measured(context, search, seqs)) {
    if (distance <= distanceThreshold) distances.set(seq, distance)
  }
  return seqs.map((seq) => distances.get(seq) ?? Number.NaN)
}

async function allowedBy(
  filter: Conditions,
  candidates: Candidates | undefined,
): Promise<ReadonlySet<number> | undefined> {
  if (filter.isAll) return candidates
  const passed = candidates === undefined ? filter.set() : filter.among(setOf([...candidates]))
  return new Set(seqsOf(await passed))
}

/** @param filterBy that the document has to pass */
function sequenceNumber(
  { sql, schema, joins, columns }: SearchContext,
  id: string,
  filterBy: string,
): number | undefined {
  const filter = new Filter(schema, filterBy, joins?.documents)
  const [found] = sql.exec<{ seq: number }>('SELECT seq FROM documents WHERE id = ?', id)
  if (found === undefined) return undefined
  const number = Math.floor(found.seq / BLOCK)
  const steps = filter.among({ sql, columns, read: readAll }, number, Uint16Array.of(found.seq % BLOCK))
  return atOnce(steps).length > 0 ? found.seq : undefined
}

/** The least number of neighbours in a hybrid search. */
const HYBRID_K = 100
/** This many are enough if the index cannot name more: the next one would weigh 0.3 / 51. */
const HYBRID_ENOUGH = 50
/** The weight of the vector's score, for models that read a text in context. */
const STRONG = 0.8
/** The page as a window of the best keyword matches, if the order begins with the text match. */
export function topWanted(context: SearchContext, request: SearchRequest): Top | undefined {
  const sort = completeSort(request.sort, context.schema, { text: true, vector: false })
  const first = sort[0]!
  const isByScore = first.kind === 'text_match' && first.buckets === undefined && first.direction === 'DESC'
  if (!isByScore || request.groupBy.length > 0 || request.perPage === 0) return undefined
  // These keys need all matches.
  if (
    sort.some(
      (key) => key.kind === 'vector_query' || key.kind === 'joined' || ('buckets' in key && key.buckets),
    )
  )
    return undefined
  return { offset: request.offset, limit: request.perPage, sort }
}

/** How many neighbours to find. @param isHybrid words are searched too */
export function wantedNeighbours(request: SearchRequest, { k }: VectorSearch, isHybrid: boolean): Wanted {
  const page = Math.max(1, request.offset + request.perPage)
  if (k !== undefined) return { k, enough: k }
  return isHybrid
    ? { k: Math.max(page, HYBRID_K), enough: Math.max(page, HYBRID_ENOUGH) }
    : { k: page, enough: page }
}

/** The weight of vectors beside words in score fusion. */
export const meaningOf = (context: SearchContext, { field, alpha }: VectorSearch): number =>
  alpha ?? (field.embed && context.embedder(field).weight) ?? STRONG
