/** `diversity` of a curation: which fields tell how alike two documents are. */
import { ApiError } from '../../errors'
import { isObject } from '../schema/values'

export type SimilarityMethod = 'equality' | 'jaccard' | 'vector_distance'

/** One field's share of how alike two documents are. */
export interface SimilarityMetric {
  field: string
  method: SimilarityMethod
  weight: number
}

export interface Diversity {
  similarity_metric: SimilarityMetric[]
}

function refuse(message: string): never {
  throw new ApiError(400, message)
}

/**
 * Reads the property `diversity` of a curation, with Typesense's messages. Whether a collection has the fields shows when
 * it is searched.
 * @returns undefined for none; an empty object asks for none
 * @throws ApiError 400
 */
export function diversityOf(given: unknown): Diversity | undefined {
  if (given === undefined) return undefined
  if (!isObject(given)) refuse(`Invalid \`diversity\` format: ${JSON.stringify(given)}`)
  if (Object.keys(given).length === 0) return undefined
  const { similarity_metric: metrics } = given
  if (metrics === undefined) refuse(`\`similarity_metric\` not found: ${JSON.stringify(given)}`)
  if (!Array.isArray(metrics) || metrics.length === 0) {
    refuse(`Invalid \`similarity_metric\` format: ${JSON.stringify(metrics)}`)
  }
  return { similarity_metric: metrics.map(metricOf) }
}

function metricOf(given: unknown): SimilarityMetric {
  if (!isObject(given) || Object.keys(given).length === 0) {
    refuse(`Invalid \`similarity_metric\` format, expected an object: ${JSON.stringify(given)}`)
  }
  const { field, method, weight = 1 } = given
  if (field === undefined) refuse(`\`field\` not found: ${JSON.stringify(given)}`)
  if (typeof field !== 'string' || field === '') refuse(`Invalid \`field\` format: ${JSON.stringify(field)}`)
  if (method === undefined) refuse(`\`method\` not found: ${JSON.stringify(given)}`)
  if (typeof method !== 'string' || method === '') {
    refuse(`Invalid \`method\` format: ${JSON.stringify(method)}`)
  }
  const known = methodOf(method)
  if (known === undefined) refuse(`\`method\` not found: ${JSON.stringify(given)}`)
  if (typeof weight !== 'number') refuse(`Invalid \`weight\` format: ${JSON.stringify(weight)}`)
  return { field, method: known, weight }
}

function methodOf(name: string): SimilarityMethod | undefined {
  const lower = name.toLowerCase()
  return lower === 'equality' || lower === 'jaccard' || lower === 'vector_distance' ? lower : undefined
}
