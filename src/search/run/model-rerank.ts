/**
 * rerank_model: a model reads the question together with each of the best hits, and puts them in order. That costs a
 * call, so the search has to ask for it, and the model has limited time. If it fails or is late, the hits keep their
 * order.
 */
import { ApiError } from '../../errors'
import type { Reranker } from '../../models/reranker'
import { parameter } from '../request/parameters'
import type { SearchRequest } from '../request/request'
import { isSearchable } from '../schema/layout'
import { stringsAt } from '../schema/values'
import type { Hit, RerankInfo, SearchParameters } from '../types'
import type { SearchContext } from './context'

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
