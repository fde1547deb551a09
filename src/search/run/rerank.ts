/**
 * rerank_hybrid_matches: completes both sides of every hit. Keyword matches get their distance measured, however far
 * they are, and neighbours get a score by whichever words they contain.
 *
 * Distances are measured for the best ten thousand keyword matches and for the neighbours. Any later match keeps its
 * keyword rank: its vector could add no more than 0.3 / 101.
 */

import { ApiError } from '../../errors'
import type { Reranker } from '../../models/reranker'
import { oneOf } from '../fragment'
import { EVERYWHERE } from '../range'
import { parameter } from '../request/parameters'
import type { SearchRequest } from '../request/request'
import { isSearchable } from '../schema/layout'
import { stringsAt } from '../schema/values'
import { stepwise } from '../steps'
import type { TextMatch } from '../text/query'
import type { Hit, RerankInfo, SearchParameters } from '../types'
import { byDistance, type Neighbour } from '../vectors/vector-index'
import { type Gathered, gather, textMatchesIn } from './candidates'
import type { SearchContext } from './context'
import type { Parts } from './match-set'
import type { VectorSearch } from './nearest'
import type { Pace } from './pace'

/** Keyword matches whose distances are measured: each takes 6 microseconds. */
const MAX_MEASURED = 10_000

/**
 * Completes both sides of a hybrid search.
 * @param text keyword matches; gets those added that only the vector has found
 * @param anyWord matches documents with any of the words
 * @returns distances of all of them, nearest first
 */
export async function completeSides(
  context: SearchContext,
  {
    vector,
    nearest,
    text,
    anyWord,
  }: { vector: VectorSearch; nearest: Neighbour[]; text: Gathered; anyWord: TextMatch },
  pace: Pace,
): Promise<Neighbour[]> {
  const byVectorAlone = new Set(nearest.map(({ seq }) => seq))
  await pace.through(stepwise(text.size, (at) => byVectorAlone.delete(text.seqs[at]!)))
  const best = await pace.through(text.best(MAX_MEASURED))
  const measured = new Set([...best.seqs.slice(0, MAX_MEASURED), ...nearest.map(({ seq }) => seq)])
  const relation = textMatchesIn(anyWord, oneOf([...byVectorAlone]), EVERYWHERE)
  const added: Parts = async function* () {
    yield { relation, range: EVERYWHERE }
  }
  await gather(context.sql, added, pace, text)
  return measure(context, vector, [...measured], pace)
}

/** Distances computed before other searches get a turn. */
const MEASURED_AT_ONCE = 1_000

/** The distances of documents that have a vector, nearest first. */
async function measure(
  context: SearchContext,
  { field, vector }: VectorSearch,
  seqs: number[],
  pace: Pace,
): Promise<Neighbour[]> {
  const measured: Neighbour[] = []
  for (let from = 0; from < seqs.length; from += MEASURED_AT_ONCE) {
    const some = new Set(seqs.slice(from, from + MEASURED_AT_ONCE))
    for (const neighbour of context.vectors(field).nearest(vector, some.size, some)) measured.push(neighbour)
    await pace.rest()
  }
  return measured.sort(byDistance)
}

// =============================================================================
// rerank_model: a model reads the question together with each of the best hits, and puts them in order. That costs a
// call, so the search has to ask for it, and the model has limited time. If it fails or is late, the hits keep their
// order.

export interface Reranking {
  /** the model's name */
  name: string
  /** undefined if this deployment cannot serve it */
  model: Reranker | undefined
  /** how many of the best hits are reranked */
  top: number
  /** milliseconds */
  budget: number
}

/**
 * Parses rerank_model, rerank_top and rerank_timeout_ms.
 * @param create finds a model by its name
 * @returns undefined when reranking is not asked for
 * @throws ApiError 400
 */
export function parseReranking(
  params: SearchParameters,
  request: SearchRequest,
  create: (name: string) => Reranker | undefined,
): Reranking | undefined {
  const name = params.rerank_model
  if (!name) return undefined
  if (request.groupBy.length > 0) {
    throw new ApiError(400, '`rerank_model` cannot be combined with `group_by`.')
  }
  return {
    name,
    model: create(name),
    top: parameter(params, 'rerank_top'),
    budget: parameter(params, 'rerank_timeout_ms'),
  }
}

/** The search that finds the page and all hits that are reranked. */
export const widened = (request: SearchRequest, { top }: Reranking): SearchRequest => ({
  ...request,
  offset: 0,
  perPage: Math.max(top, request.offset + request.perPage),
})

/** Whether any reranked hit can be on the page. */
export const concerns = (request: SearchRequest, { top }: Reranking, hasWords: boolean): boolean =>
  hasWords && request.offset < top && request.perPage > 0

/** The text of each document for the model: the fields that were searched, or else the sources of the embedding. */
export function textsToRead(context: SearchContext, request: SearchRequest, seqs: number[]): string[] {
  const { schema } = context
  const searched = request.queryFields.map(({ field }) => field.name)
  const embedded = (request.vectorQuery?.field ?? request.embeddingField)?.embed?.from ?? []
  const every = schema.fields.filter(isSearchable).map(({ name }) => name)
  const names = [searched, embedded, every].find((list) => list.length > 0) ?? []
  const documents = context.read(seqs, true)
  return seqs.map((seq) => {
    const document = documents.get(seq) ?? {}
    return names.flatMap((name) => stringsAt(document, name)).join('\n')
  })
}

/**
 * Puts the best hits in the model's order. Pinned hits keep their places.
 * @param hits in the order of the search, from the first one
 * @param texts what the model reads of each, in the same order
 */
export async function rerankHits(
  reranking: Reranking,
  query: string,
  hits: Hit[],
  texts: string[],
): Promise<{ hits: Hit[]; info: RerankInfo }> {
  const started = performance.now()
  const info = (reranked: number, error?: string): RerankInfo => ({
    model: reranking.name,
    reranked,
    time_ms: Math.round(performance.now() - started),
    ...(error !== undefined && { error }),
  })
  const places = hits.flatMap((hit, place) => (place < reranking.top && !hit.curated ? [place] : []))
  if (places.length === 0) return { hits, info: info(0) }
  if (reranking.model === undefined) {
    return { hits, info: info(0, 'This model needs a deployment that runs on Workers AI.') }
  }
  try {
    const read = places.map((place) => texts[place] ?? '')
    const scores = await inTime(reranking.model, query, read, reranking.budget)
    const order = places.map((place, index) => ({ hit: hits[place]!, score: scores[index]! }))
    // The sort is stable, so hits with equal scores keep the order of the search.
    order.sort((a, b) => b.score - a.score)
    const arranged = [...hits]
    for (const [index, place] of places.entries()) {
      const { hit, score } = order[index]!
      arranged[place] = Number.isFinite(score) ? { ...hit, rerank_score: score } : hit
    }
    return { hits: arranged, info: info(places.length) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { hits, info: info(0, error.message) }
  }
}

/** @throws ApiError 408 when the model takes too long, or the model's own */
async function inTime(model: Reranker, query: string, texts: string[], budget: number): Promise<number[]> {
  const abort = new AbortController()
  let timer: ReturnType<typeof setTimeout> | null = null
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new ApiError(408, `The model did not answer within ${budget} ms.`))
      abort.abort()
    }, budget)
  })
  const scoring = model.score(query, texts, abort.signal)
  scoring.catch(() => {})
  return Promise.race([scoring, late]).finally(() => timer && clearTimeout(timer))
}
