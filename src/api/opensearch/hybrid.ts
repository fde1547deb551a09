/** `hybrid`: several queries with their own hits, whose scores are normalised and combined into one list. */
import { illegalArgument, parsingError } from './errors'
import type { Normalization } from './pipelines'
import { isObject, type Json } from './route'

const MOST_QUERIES = 5
/** Fewest hits of each query that are considered. */
const FEWEST_HITS = 100
/** The score that OpenSearch gives the worst hit of a query: above zero, because it was found. */
const WORST = 0.001

/** The queries of a hybrid query; undefined for any other query. @throws ApiError 400 */
export function hybridQueries(query: unknown): unknown[] | undefined {
  if (!isObject(query) || !Object.hasOwn(query, 'hybrid')) return undefined
  const { queries, ...others } = isObject(query.hybrid) ? query.hybrid : {}
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw parsingError(`[hybrid] query does not support [${unknown}]`)
  if (Object.keys(query).length > 1) throw parsingError('[hybrid] malformed query, expected [END_OBJECT]')
  if (!Array.isArray(queries) || queries.length === 0) throw illegalArgument('[hybrid] requires queries')
  if (queries.length > MOST_QUERIES) {
    throw illegalArgument(
      `Number of sub-queries exceeds maximum supported by [hybrid] query [${MOST_QUERIES}]`,
    )
  }
  return queries
}

export const depthOf = (from: number, size: number): number => Math.max(FEWEST_HITS, from + size)

/**
 * Combines the hits of several queries into one list, best first. @param lists hits with `_score`. @throws ApiError
 * 400
 */
export function combine(lists: Json[][], normalization: Normalization | undefined): Json[] {
  const weights = normalization?.weights ?? lists.map(() => 1)
  if (weights.length !== lists.length) {
    throw illegalArgument(
      `number of weights [${weights.length}] must match number of sub-queries [${lists.length}] in hybrid query`,
    )
  }
  const found = new Map<unknown, { hit: Json; scores: number[] }>()
  for (const [at, hits] of lists.entries()) {
    const scores = normalised(
      hits.map(({ _score }) => Number(_score ?? 0)),
      normalization,
    )
    for (const [place, hit] of hits.entries()) {
      const known = found.get(hit._id) ?? { hit, scores: lists.map(() => 0) }
      known.scores[at] = scores[place]!
      found.set(hit._id, known)
    }
  }
  return [...found.values()]
    .map(({ hit, scores }) => ({ ...hit, _score: combined(scores, weights, normalization) }))
    .sort((a, b) => b._score - a._score)
}

function normalised(scores: number[], normalization: Normalization | undefined): number[] {
  if (normalization === undefined) return scores
  const { technique, rankConstant } = normalization
  if (rankConstant !== undefined) return scores.map((_, place) => 1 / (rankConstant + place + 1))
  if (technique === 'l2') {
    const length = Math.hypot(...scores)
    return scores.map((score) => (length === 0 ? WORST : score / length))
  }
  const least = Math.min(...scores)
  const most = Math.max(...scores)
  return scores.map((score) => (most === least ? 1 : Math.max(WORST, (score - least) / (most - least))))
}

/** @see https://opensearch.org/docs/latest/search-plugins/search-pipelines/normalization-processor/ */
function combined(scores: number[], weights: number[], normalization: Normalization | undefined): number {
  if (normalization === undefined) return Math.max(...scores)
  const all = scores.map((score, at) => ({ score, weight: weights[at]! }))
  const sum = (of: typeof all, value: (each: (typeof all)[number]) => number): number =>
    of.reduce((total, each) => total + value(each), 0)
  if (normalization.combination === 'arithmetic_mean') {
    const whole = normalization.rankConstant === undefined ? sum(all, ({ weight }) => weight) : 1
    return sum(all, ({ score, weight }) => score * weight) / (whole || 1)
  }
  // Neither of these means can take a zero, so a query that did not find the hit is left out.
  const some = all.filter(({ score }) => score > 0)
  const weight = sum(some, (each) => each.weight)
  if (weight === 0) return 0
  return normalization.combination === 'geometric_mean'
    ? Math.exp(sum(some, ({ score, weight }) => weight * Math.log(score)) / weight)
    : weight / sum(some, ({ score, weight }) => weight / score)
}
