/** Reads request parameters from a query string, and joins parameters from several sources. */
import { ApiError } from '../../errors'
import { nearest } from '../../lib/nearest'
import { parseFilter } from '../../search/filter/parse'
import { splitOutside } from '../../search/fragment'
import { isObject } from '../../search/schema/values'
import type { SearchParameters } from '../../search/types'

/**
 * Parses a query string as Typesense does (contract 0). Values are decoded, keys are not. If a key is given twice, the
 * last value counts, but filters add up. An unencoded `&&` belongs to its value.
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

const decode = (value: string): string => {
  const spaced = value.replaceAll('+', ' ')
  // Making a TextDecoder takes longer than all else here. Only non-ASCII text needs one.
  return spaced.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
    /%[89a-f]/i.test(escapes)
      ? new TextDecoder().decode(
          Uint8Array.from(escapes.slice(1).split('%'), (digits) => Number.parseInt(digits, 16)),
        )
      : decodeURIComponent(escapes),
  )
}

/** True iff the parameter is exactly `true`. */
export const isTrue = (value: string | undefined): boolean => value === 'true'

/** Names in a comma-separated list. A join such as `$authors(name, bio)` is one of them, commas and all. */
export const listed = (value: string | undefined): string[] => splitOutside(value ?? '', ',').filter(Boolean)

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

/** `parameters`, with missing ones from `lower`. Filters of both apply. @throws ApiError 400 for a bad filter */
export const fill = (parameters: SearchParameters, lower: SearchParameters): SearchParameters => ({
  ...lower,
  ...parameters,
  ...bothFilters(parameters, lower),
})

/** Two names for the same parameter: fixing one fixes both. */
const TWINS = [
  ['per_page', 'limit'],
  ['page', 'offset'],
] as const

/**
 * `parameters`, overridden by `upper`. Filters of both apply, to pinned documents too: a caller who cannot lift a filter
 * must not get around it by pinning.
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
  // Each has to be valid by itself. An open quote or parenthesis in one could otherwise swallow the other, which may be the
  // filter of a scoped key.
  parseFilter(a.filter_by)
  parseFilter(b.filter_by)
  return { filter_by: `(${a.filter_by}) && (${b.filter_by})` }
}

/** @returns 0 for none @throws ApiError 400 with this message */
export function unsigned(value: string | undefined, message: string): number {
  if (value === undefined) return 0
  if (!/^\d{1,9}$/.test(value)) throw new ApiError(400, message)
  return Number(value)
}

// Adds to a refusal which name may have been mistyped, on wires that fix the message and ignore unknown names.

/** Search parameters whose mistyped name does most harm: a search without its filter finds everything. */
export const COMMON_PARAMETERS = [
  'query_by',
  'filter_by',
  'sort_by',
  'per_page',
  'include_fields',
  'exclude_fields',
  'vector_query',
]

/** Names that an operation requires, by their place. A mistyped one gets the request refused. */
export const NEEDED = {
  collection: ['name', 'fields'],
  field: ['name', 'type'],
  key: ['description', 'actions', 'collections'],
  model: ['model_name', 'max_bytes', 'history_collection'],
  alias: ['collection_name'],
  preset: ['value'],
  stopwords: ['stopwords'],
  set: ['items'],
  search: COMMON_PARAMETERS,
} as const

/**
 * Runs an operation. If it is refused with 400, the error's `detail` names a property that is near a needed one which is
 * missing.
 * @param given the body or parameters of the request; if there are several objects, each is checked
 * @param needed names that the operation needs
 * @throws what `run` throws
 */
export async function hinting<T>(
  given: unknown | unknown[],
  needed: readonly string[],
  run: () => T | Promise<T>,
): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400 || error.detail !== undefined) throw error
    const hint = hintFor([given].flat(), needed)
    if (hint === undefined) throw error
    const { status, message, retryAfter, confidential, code } = error
    throw new ApiError(status, message, retryAfter, confidential, code, hint)
  }
}

function hintFor(given: unknown[], needed: readonly string[]): string | undefined {
  for (const each of given.filter(isObject)) {
    const names = Object.keys(each)
    const missing = needed.filter((name) => !names.includes(name))
    for (const name of names.filter((one) => !needed.includes(one))) {
      const meant = nearest(name, missing)
      if (meant !== undefined) return `Unknown property \`${name}\`; did you mean \`${meant}\`?`
    }
  }
  return undefined
}
