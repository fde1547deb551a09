/** The parameters that say how words have to match and how matches are compared. */
import { ApiError, detailed } from '../../errors'
import type { Field, SearchParameters } from '../types'

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

/** From which end words are dropped while too little is found. */
export interface DropTokensMode {
  direction: 'right_to_left' | 'left_to_right'
  /** queries of at most this many words drop words from both ends, however much is found; 0: none do */
  bothSides: number
  /** whether the caller chose it */
  given: boolean
}

/** How text matches are compared. */
export interface RankingRules {
  type: 'max_score' | 'max_weight' | 'sum_score'
  /** a field that is the query comes first */
  exactMatch: boolean
  /** words near the beginning of a field come first */
  tokenPosition: boolean
  /** among equal matches, one in more fields comes first */
  matchingFields: boolean
}

/** @throws ApiError 400 */
export function parseRanking(params: SearchParameters): RankingRules {
  const type = params.text_match_type || 'max_score'
  if (type !== 'max_score' && type !== 'max_weight' && type !== 'sum_score') {
    throw new ApiError(400, 'Parameter `text_match_type` must be `max_score`, `max_weight` or `sum_score`.')
  }
  return {
    type,
    exactMatch: params.prioritize_exact_match !== 'false',
    tokenPosition: params.prioritize_token_position === 'true',
    matchingFields: params.prioritize_num_matching_fields !== 'false',
  }
}

/** @throws ApiError 400 */
export function parseDropTokensMode(text = ''): DropTokensMode {
  const match = /^(right_to_left|left_to_right|both_sides:(\d{1,3}))?$/.exec(text.trim())
  if (!match) {
    throw detailed(
      400,
      'Invalid format for drop tokens mode.',
      'Parameter `drop_tokens_mode` must be `right_to_left`, `left_to_right` or `both_sides:N`.',
    )
  }
  return {
    direction: match[1] === 'left_to_right' ? 'left_to_right' : 'right_to_left',
    bothSides: Number(match[2] ?? 0),
    given: text !== '',
  }
}

/** When to also search for words joined into one, or split in two. */
export type SplitJoin = 'fallback' | 'always' | 'off'

/** @throws ApiError 400 */
export function parseSplitJoin(text = ''): SplitJoin {
  if (text === '' || text === 'true' || text === 'fallback') return 'fallback'
  if (text === 'false' || text === 'off') return 'off'
  if (text === 'always') return 'always'
  throw new ApiError(400, 'Parameter `split_join_tokens` must be `fallback`, `always` or `off`.')
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
