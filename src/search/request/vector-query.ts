/** The grammar of vector_query: `field:([0.1, 0.2], k: 10, ...)`. */
import { ApiError } from '../../errors'
import { splitOutside } from '../fragment'
import { MAX_NEIGHBOURS, MAX_VECTOR_QUERIES } from '../limits'
import { isVector, type StoredSchema } from '../schema/layout'
import { findField } from '../schema/schema'
import type { Field } from '../types'

export interface VectorQuery {
  field: Field
  /** empty: the vector comes from `id`, `queries` or q */
  vector: number[]
  /** how many neighbours; undefined for the default of the kind of search */
  k: number | undefined
  /** farther candidates are dropped */
  distanceThreshold: number | undefined
  /** weight of the vector in hybrid search, undefined for the default of its fusion */
  alpha: number | undefined
  /** a document whose own vector is the query; it is not among the results */
  id: string | undefined
  /** texts to embed and average, in place of q */
  queries: string[]
  queryWeights: number[]
}

const malformed = (what = ''): ApiError => new ApiError(400, `Malformed vector query string${what}`)

/** @throws ApiError 400 with Typesense's messages */
export function parseVectorQuery(text: string, schema: StoredSchema): VectorQuery {
  const colon = text.search(/[:([]/)
  if (colon === -1) throw malformed(': `:` is missing.')
  if (text[colon] !== ':') throw malformed(': `:` is missing after the vector field name.')
  const name = text.slice(0, colon).trim()
  const body = /^\s*\(\s*\[([^\]]*)\]\s*(?:,([\s\S]*))?\)\s*$/.exec(text.slice(colon + 1))
  if (!body) throw malformed('.')
  const field = findField(schema, name)
  if (field === undefined || !isVector(field) || !field.index) {
    throw new ApiError(400, `Field \`${name}\` does not have a vector query index.`)
  }
  const query: VectorQuery = {
    field,
    vector: parseVector(body[1]!),
    k: undefined,
    distanceThreshold: undefined,
    alpha: undefined,
    id: undefined,
    queries: [],
    queryWeights: [],
  }
  const options = body[2] === undefined ? [] : splitOutside(body[2], ',').filter((option) => option !== '')
  for (const option of options) applyOption(query, option)
  if (query.vector.length === 0 && options.length === 0) {
    throw new ApiError(400, 'When a vector query value is empty, an `id` parameter must be present.')
  }
  if (query.vector.length > 0 && field.num_dim !== undefined && query.vector.length !== field.num_dim) {
    throw new ApiError(400, `Query field \`${name}\` must have ${field.num_dim} dimensions.`)
  }
  if (query.queryWeights.length > 0 && query.queryWeights.length !== query.queries.length) {
    throw malformed(': `queries` and `query_weights` must be of the same length.')
  }
  return query
}

function parseVector(text: string): number[] {
  if (text.trim() === '') return []
  return text.split(',').map((part) => {
    const value = Number(part)
    if (part.trim() === '' || !Number.isFinite(value)) {
      throw malformed(': one of the vector values is not a float.')
    }
    return value
  })
}

function applyOption(query: VectorQuery, option: string): void {
  const colon = option.indexOf(':')
  if (colon === -1) throw malformed('.')
  const value = option.slice(colon + 1).trim()
  switch (option.slice(0, colon).trim()) {
    case 'k':
      if (!/^\d{1,9}$/.test(value)) throw malformed(': `k` parameter must be an integer.')
      if (Number(value) > MAX_NEIGHBOURS) {
        throw malformed(`: \`k\` parameter takes at most ${MAX_NEIGHBOURS} neighbours.`)
      }
      // Zero means the default, as in Typesense.
      query.k = Number(value) || undefined
      break
    case 'distance_threshold':
      query.distanceThreshold = between(value, 2, 'distance_threshold')
      break
    case 'alpha':
      query.alpha = between(value, 1, 'alpha')
      break
    case 'id':
      query.id = value.replace(/^`(.*)`$/s, '$1')
      break
    case 'queries':
      query.queries = items(value)
      if (query.queries.length > MAX_VECTOR_QUERIES) {
        throw malformed(`: \`queries\` takes at most ${MAX_VECTOR_QUERIES} texts.`)
      }
      break
    case 'query_weights':
      query.queryWeights = items(value).map((item) => {
        const weight = Number(item)
        if (!Number.isFinite(weight)) throw malformed('.')
        return weight
      })
      break
    // ef and flat_search_cutoff tune an approximate index. Search here is exact, so they are ignored.
  }
}

function between(text: string, most: number, name: string): number {
  const value = Number(text)
  if (text === '' || !(value >= 0 && value <= most)) {
    throw malformed(`: \`${name}\` parameter must be a float between 0.0-${most}.0.`)
  }
  return value
}

function items(text: string): string[] {
  const inner = /^\[([\s\S]*)\]$/.exec(text)
  if (!inner) throw malformed('.')
  return splitOutside(inner[1]!, ',')
    .map((item) => item.replace(/^`(.*)`$/s, '$1'))
    .filter((item) => item !== '')
}
