/**
 * rerank_model: the best hits of a search, read again by a model that looks at the question and a document
 * together, and put in its order. It costs a call, so it is asked for by the search, and it has a time to answer
 * in: past it, or without an answer, the hits stay in the order that they have.
 */
import { ApiError } from '../../errors'
import type { Reranker } from '../../models/reranker'
import type { SearchRequest } from '../request/request'
import { isSearchable } from '../schema/layout'
import { stringsAt } from '../schema/values'
import type { Hit, RerankInfo, SearchParameters } from '../types'
import type { SearchContext } from './context'

/** Hits that are read again, unless the search says otherwise, and at most. */
const DEFAULT_TOP = 30
const MOST_TOP = 100

/** Milliseconds that the model may take, unless the search says otherwise, and at most. */
const DEFAULT_BUDGET = 500
const MOST_BUDGET = 5_000

export interface Reranking {
  /** the model's name */
  name: string
  /** absent where this deployment cannot serve it */
  model: Reranker | undefined
  /** how many of the best hits are read again */
  top: number
  /** milliseconds */
  budget: number
}

/**
 * What a search asks for, from its parameters rerank_model, rerank_top and rerank_timeout_ms.
 * @param create finds a model by its name
 * @returns undefined when it asks for none
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
    top: within(params, 'rerank_top', DEFAULT_TOP, MOST_TOP),
    budget: within(params, 'rerank_timeout_ms', DEFAULT_BUDGET, MOST_BUDGET),
  }
}

function within(params: SearchParameters, name: string, otherwise: number, most: number): number {
  const text = params[name]
  if (text === undefined || text === '') return otherwise
  const value = /^\d{1,10}$/.test(text.trim()) ? Number(text) : 0
  if (value < 1 || value > most) {
    throw new ApiError(400, `Parameter \`${name}\` must be an integer between 1 and ${most}.`)
  }
  return value
}

/** The search that finds everything that is to be read again besides the page. */
export const widened = (request: SearchRequest, { top }: Reranking): SearchRequest => ({
  ...request,
  offset: 0,
  perPage: Math.max(top, request.offset + request.perPage),
})

/** Whether a page shows any of the hits that are read again. */
export const concerns = (request: SearchRequest, { top }: Reranking, hasWords: boolean): boolean =>
  hasWords && request.offset < top && request.perPage > 0

/** What of each document the model is to read: the fields that were searched, or those that were embedded. */
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
 * Puts the best hits in the model's order; pinned ones keep their places.
 * @param hits in the order of the search, from its first one
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
    // The sort is stable: what the model finds equally good stays in the order of the search.
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

/** @throws ApiError 408 when the model takes too long, or its own */
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
