/** Request parameters: how they are read from a query string and how several sources of them are joined. */
import { parseFilter } from '../../search/filter/parse'
import type { SearchParameters } from '../../search/types'

/**
 * Parses a query string as Typesense does (contract 0): values are decoded, keys are not; of a key given twice
 * the last value counts, except that filters add up; an unencoded `&&` belongs to its value.
 *
 * @param query with or without its leading question mark
 */
export function parseQuery(query: string): SearchParameters {
  const parameters: SearchParameters = {}
  for (const pair of query.replace(/^\?/, '').split(/(?<!&)&(?!&)/)) {
    const equals = pair.indexOf('=')
    const key = (equals < 0 ? pair : pair.slice(0, equals)).replace(/^&+/, '')
    if (key === '' || key === '__proto__') continue
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1))
    parameters[key] =
      key === 'filter_by' && parameters[key] !== undefined ? `${parameters[key]}&&${value}` : value
  }
  return parameters
}

const decode = (value: string): string =>
  value
    .replaceAll('+', ' ')
    .replace(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
      new TextDecoder().decode(
        Uint8Array.from(escapes.slice(1).split('%'), (digits) => Number.parseInt(digits, 16)),
      ),
    )

/** True iff the parameter is exactly `true`. */
export const isTrue = (value: string | undefined): boolean => value === 'true'

/** Names in a comma-separated list. */
export const listed = (value: string | undefined): string[] =>
  (value ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)

/** A value of a JSON body as a parameter. @returns undefined for a list, an object or null */
export function parameterValue(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return ['number', 'bigint', 'boolean'].includes(typeof value) ? String(value) : undefined
}

/** The properties of a JSON body as parameters. */
export const asParameters = (given: Record<string, unknown>): SearchParameters =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]))

/** Parameters of a scoped key that are for its conversation and not for its searches. */
const CONVERSATION = ['q', 'user_id', 'x-typesense-user-id']

/** The parameters that a scoped key fixes for its searches. */
export function searchParametersOf(embedded: Readonly<SearchParameters>): SearchParameters {
  const left = { ...embedded }
  for (const name of CONVERSATION) delete left[name]
  return left
}

/** `parameters` with the gaps filled from `lower`; filters of both hold. @throws ApiError 400 for a bad filter */
export const fill = (parameters: SearchParameters, lower: SearchParameters): SearchParameters => ({
  ...lower,
  ...parameters,
  ...bothFilters(parameters, lower),
})

/** Parameters that say the same by two names: who fixes one of them has fixed both. */
const TWINS = [
  ['per_page', 'limit'],
  ['page', 'offset'],
] as const

/**
 * `parameters` with those of `upper` in their place; filters of both hold, and for pinned documents too: whoever
 * may not lift a filter may not pin around it either.
 * @throws ApiError 400 as `fill` does
 */
export const override = (
  parameters: SearchParameters,
  upper: Readonly<SearchParameters>,
): SearchParameters => ({
  ...withoutTwins(parameters, upper),
  ...(upper.filter_by && { filter_curated_hits: 'true' }),
  ...upper,
  ...bothFilters(parameters, upper),
})

function withoutTwins(parameters: SearchParameters, upper: Readonly<SearchParameters>): SearchParameters {
  const left = { ...parameters }
  for (const twins of TWINS) {
    if (twins.some((name) => upper[name] !== undefined)) for (const name of twins) delete left[name]
  }
  return left
}

function bothFilters(a: Readonly<SearchParameters>, b: Readonly<SearchParameters>): SearchParameters {
  const only = a.filter_by || b.filter_by
  if (!only) return {}
  if (!a.filter_by || !b.filter_by) return { filter_by: only }
  // Each has to be a filter by itself. One with an open quote or parenthesis could reach over the seam and
  // take the filter of a scoped key into its own value.
  parseFilter(a.filter_by)
  parseFilter(b.filter_by)
  return { filter_by: `(${a.filter_by}) && (${b.filter_by})` }
}
