/** `diversity` of a curation: the fields that decide how alike two documents are. */
import { ApiError } from '../../errors'
import { isObject } from '../schema/values'

export type SimilarityMethod = 'equality' | 'jaccard' | 'vector_distance'

/** One field's part in the similarity of two documents. */
export interface SimilarityMetric {
  field: string
  method: SimilarityMethod
  weight: number
}

export interface Diversity {
  similarity_metric: SimilarityMetric[]
}

/** The most metrics. Each costs a query, and a comparison of every pair of hits. */
const MOST_METRICS = 10

const refused = (message: string, given: unknown): ApiError =>
  new ApiError(400, `${message}: ${JSON.stringify(given)}`)
const missing = (name: string, given: unknown): ApiError => refused(`\`${name}\` not found`, given)
const invalid = (name: string, given: unknown): ApiError => refused(`Invalid \`${name}\` format`, given)

/**
 * Reads the property `diversity` of a curation, with Typesense's messages. A search checks whether its collection has
 * the fields.
 * @returns undefined for none; an empty object asks for none
 * @throws ApiError 400
 */
export function diversityOf(given: unknown): Diversity | undefined {
  if (given === undefined) return undefined
  if (!isObject(given)) throw invalid('diversity', given)
  if (Object.keys(given).length === 0) return undefined
  const { similarity_metric: metrics } = given
  if (metrics === undefined) throw missing('similarity_metric', given)
  if (!Array.isArray(metrics) || metrics.length === 0) throw invalid('similarity_metric', metrics)
  if (metrics.length > MOST_METRICS) {
    throw new ApiError(400, `\`similarity_metric\` takes at most ${MOST_METRICS} metrics.`)
  }
  return { similarity_metric: metrics.map(metricOf) }
}

function metricOf(given: unknown): SimilarityMetric {
  if (!isObject(given) || Object.keys(given).length === 0) {
    throw refused('Invalid `similarity_metric` format, expected an object', given)
  }
  const { weight = 1 } = given
  const field = nameOf(given, 'field')
  const method = nameOf(given, 'method').toLowerCase()
  if (method !== 'equality' && method !== 'jaccard' && method !== 'vector_distance') {
    throw missing('method', given)
  }
  if (typeof weight !== 'number' || !Number.isFinite(weight)) throw invalid('weight', weight)
  return { field, method, weight }
}

function nameOf(metric: Record<string, unknown>, property: string): string {
  const name = metric[property]
  if (name === undefined) throw missing(property, metric)
  if (typeof name !== 'string' || name === '') throw invalid(property, name)
  return name
}
