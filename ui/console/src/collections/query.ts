/** A search of a collection, as its address names it and as the server is asked. Pure. */
import { type Collection, isVector, namesOf, textFields, vectorField } from './wire'

/** By what is searched. */
export type By = 'both' | 'words' | 'meaning'

export interface Query {
  q: string
  filter: string
  by: By
  /** weights of text fields that are not 1, by name; a field of weight 0 is not searched */
  weights: Map<string, number>
  /** share of meaning in the score, from 0 to 1; '' leaves it to Parley */
  alpha: string
}

/** The largest weight of a field that the server takes. */
export const MOST_WEIGHT = 127

const PER_PAGE = 20

export const readQuery = (query: URLSearchParams): Query => ({
  q: query.get('q') ?? '',
  filter: query.get('filter') ?? '',
  by: byOf(query.get('by')),
  weights: readWeights(query.get('weights') ?? ''),
  alpha: /^(?:0(?:\.\d+)?|1)$/.exec(query.get('alpha') ?? '')?.[0] ?? '',
})

const byOf = (text: string | null): By => (text === 'words' || text === 'meaning' ? text : 'both')

/** The parameters of an address. What is as usual is left out. */
export const writtenQuery = ({ q, filter, by, weights, alpha }: Query): Record<string, string> => ({
  q,
  filter,
  by: by === 'both' ? '' : by,
  weights: [...weights].map(([name, weight]) => `${name}:${weight}`).join(','),
  alpha,
})

function readWeights(text: string): Map<string, number> {
  const weights = new Map<string, number>()
  for (const part of text.split(',')) {
    const [, name, weight] = /^(.+):(\d{1,3})$/.exec(part) ?? []
    if (name === undefined || Number(weight) > MOST_WEIGHT) continue
    weights.set(name, Number(weight))
  }
  return weights
}

/** What the server is asked. */
export function searchParams(
  collection: Collection,
  { q, filter, by, weights, alpha }: Query,
): URLSearchParams {
  const vector = vectorField(collection)
  const usesWords = by !== 'meaning' || !vector
  const words = usesWords ? textFields(collection).filter((name) => weights.get(name) !== 0) : []
  const isHybrid = vector !== undefined && by === 'both'
  const fields = [...(vector && by !== 'words' ? [vector.name] : []), ...words]
  const isWeighted = words.some((name) => weights.has(name))
  return new URLSearchParams({
    q: q === '' ? '*' : q,
    query_by: fields.join(','),
    per_page: String(PER_PAGE),
    facet_by: namesOf(collection, ({ facet }) => facet),
    exclude_fields: namesOf(collection, isVector),
    ...(isWeighted && { query_by_weights: fields.map((name) => weights.get(name) ?? 1).join(',') }),
    ...(isHybrid && alpha !== '' && q !== '' && { vector_query: `${vector.name}:([], alpha: ${alpha})` }),
    ...(filter !== '' && { filter_by: filter }),
  })
}

/** The condition of a filter that a value of a facet stands for. */
export const conditionOf = (field: string, value: string): string =>
  `${field}:=\`${value.replaceAll('`', '')}\``

/** A filter with a condition added, or without it where it is part of it. */
export function toggled(filter: string, condition: string): string {
  const parts = filter === '' ? [] : filter.split(' && ')
  const next = parts.includes(condition) ? parts.filter((part) => part !== condition) : [...parts, condition]
  return next.join(' && ')
}
