/** The fields that words are searched in, with their weights, and how their matches are compared. */
import type { Field } from '../types'
import type { ValueOf } from './parameters'

/** A string field of query_by. */
export interface QueryField {
  field: Field
  /** factor of its matches in BM25 */
  weight: number
  /** Typesense's weight, 0 to 15 */
  rank: number
  /** whether the last word of the query may be unfinished */
  prefix: boolean
  /** typos that its words may have; undefined: as many as the search allows */
  typos: number | undefined
}

/** How text matches are compared. */
export interface RankingRules {
  type: ValueOf<'text_match_type'>
  /** a field that is the query comes first */
  exactMatch: boolean
  /** words near the beginning of a field come first */
  tokenPosition: boolean
  /** among equal matches, one in more fields comes first */
  matchingFields: boolean
}

const HEAVIEST = 15

/**
 * Fills in the weights of fields. `weight` is a caller's weight, negative for none.
 *
 * BM25's default weights fall from 2 for the first field to 1 for the last. Chosen by nDCG@10 on SciFact with
 * query_by=title,text: 0.687 with equal weights, 0.693 with 2 to 1, 0.696 with 3 to 1, where recall begins to fall.
 */
export function weighted(fields: QueryField[]): QueryField[] {
  const last = Math.max(1, fields.length - 1)
  const ranks = ranksOf(fields.map(({ weight }) => weight))
  return fields.map((entry, index) => ({
    ...entry,
    weight: entry.weight >= 0 ? Math.max(entry.weight, 0.001) : 2 - index / last,
    rank: ranks[index]!,
  }))
}

/**
 * Typesense's weights: the first field has 15, and each field after it one less. A caller's weights stay as they are if
 * they fall and none is above 15. Otherwise the largest becomes 15, and each smaller one has one less.
 */
function ranksOf(weights: readonly number[]): number[] {
  if (weights.every((weight) => weight < 0)) return weights.map((_, index) => Math.max(0, HEAVIEST - index))
  const fall = weights.every((weight, index) => index === 0 || weight <= weights[index - 1]!)
  if (fall && weights.every((weight) => weight <= HEAVIEST)) return [...weights]
  const sorted = [...new Set(weights)].sort((a, b) => b - a)
  return weights.map((weight) => Math.max(0, HEAVIEST - sorted.indexOf(weight)))
}
