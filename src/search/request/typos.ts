/** The parameters of typos and prefixes, which fields may have of their own. */
import { ApiError } from '../../errors'
import type { TypoRules } from '../text/typo'
import type { SearchParameters } from '../types'
import { list, unsigned } from './texts'

/** Typesense's bound of `num_typos`. */
const MOST_TYPOS = 2

/**
 * The rules of typos. `each`: the most of each field, if they differ.
 * @param fields of query_by @throws ApiError 400
 */
export function parseTypos(params: SearchParameters, fields: number): TypoRules & { each: number[] } {
  const given = list(params.num_typos ?? '2')
  const each = given.map((text) => Math.min(MOST_TYPOS, unsigned('num_typos', text)))
  if (fields > 0 && each.length !== 1 && each.length !== fields) {
    throw new ApiError(400, 'Number of values in `num_typos` does not match number of `query_by` fields.')
  }
  return {
    each: new Set(each).size > 1 ? each : [],
    maxTypos: Math.max(0, ...each),
    minLengthOneTypo: params.min_len_1typo ? unsigned('min_len_1typo', params.min_len_1typo) : 4,
    minLengthTwoTypos: params.min_len_2typo ? unsigned('min_len_2typo', params.min_len_2typo) : 7,
    withDigits: params.enable_typos_for_alpha_numerical_tokens !== 'false',
    numbers: params.enable_typos_for_numerical_tokens !== 'false',
  }
}

/** Whether the last word may be unfinished, for each field or once for all. @throws ApiError 400 */
export function parsePrefixes(params: SearchParameters, fields: number): boolean[] {
  const each = list(params.prefix || 'true').map((text) => text === 'true')
  if (fields > 0 && each.length !== 1 && each.length !== fields) {
    throw new ApiError(400, 'Number of prefix values in `prefix` does not match number of `query_by` fields.')
  }
  return each
}
