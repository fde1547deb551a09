/**
 * Aggregations: terms and metrics of fields, from the facets of a search. Metrics inside each term take another
 * search.
 */
import { MAX_FACET_VALUES } from '../../search/limits'
import type { FacetCounts } from '../../search/types'
import { illegalArgument, parsingError, shardError, unsupported } from './errors'
import type { Fields, Target } from './fields'
import { type Filter, plain, same } from './filter'
import { isObject, isOn, type Json } from './route'

const METRICS = ['stats', 'min', 'max', 'avg', 'sum', 'value_count', 'cardinality']

/** Most values of a field that are counted. */
const MOST_VALUES = MAX_FACET_VALUES
/** Most terms with aggregations inside: each term is a search of its own. */
export const MOST_SEARCHES = 50

interface Aggregation {
  name: string
  type: string
  /** undefined: no document has the field */
  target: Target | undefined
  size: number
  order: ['_count' | '_key', 'asc' | 'desc']
  inner: Aggregation[]
}

/** Searches again, for the facets of hits that also pass a filter. */
export type FacetSearch = (filter: Filter, facetBy: string) => Promise<FacetCounts[]>

/** @throws ApiError 400 that names what is unknown */
export function parseAggregations(given: Json, fields: Fields, depth = 0): Aggregation[] {
  return Object.entries(given).map(([name, body]) => {
    if (!isObject(body)) throw parsingError(`Expected [START_OBJECT] under [${name}]`)
    const { aggs, aggregations, ...types } = body
    const [[type, options] = [], ...others] = Object.entries(types)
    if (type === undefined || others.length > 0)
      throw parsingError(`[${name}] has to have one type of aggregation`)
    if (type !== 'terms' && !METRICS.includes(type))
      throw parsingError(`Unknown aggregation type [${type}] of [${name}]`)
    const inside = aggs ?? aggregations ?? {}
    if (!isObject(inside)) throw parsingError(`[aggs] of [${name}] has to be an object`)
    if (Object.keys(inside).length > 0 && type !== 'terms') {
      throw illegalArgument(`Aggregator [${name}] of type [${type}] cannot accept sub-aggregations`)
    }
    if (depth > 0 && Object.keys(inside).length > 0) {
      throw unsupported(`An aggregation inside of one that is inside of another, as in [${name}],`)
    }
    return {
      name,
      type,
      ...parseOptions(name, type, options, fields),
      inner: parseAggregations(inside, fields, depth + 1),
    }
  })
}

function parseOptions(
  name: string,
  type: string,
  options: unknown,
  fields: Fields,
): Pick<Aggregation, 'target' | 'size' | 'order'> {
  if (!isObject(options)) throw parsingError(`[${type}] of [${name}] has to be an object`)
  const known = type === 'terms' ? ['field', 'size', 'order'] : ['field']
  const unknown = Object.keys(options).find((key) => !known.includes(key))
  if (unknown !== undefined) throw parsingError(`[${type}] unknown field [${unknown}]`)
  const { field, size = 10, order = { _count: 'desc' } } = options
  if (typeof field !== 'string')
    throw illegalArgument(`Required one of fields [field], but none were specified in [${name}].`)
  if (!Number.isInteger(size) || (size as number) < 1 || (size as number) > MOST_VALUES) {
    throw illegalArgument(`[size] must be between 1 and ${MOST_VALUES}. Found [${String(size)}] in [${name}]`)
  }
  const [[by, direction] = [], ...others] = isObject(order) ? Object.entries(order) : []
  if (
    (by !== '_count' && by !== '_key') ||
    (direction !== 'asc' && direction !== 'desc') ||
    others.length > 0
  ) {
    throw unsupported(`The [order] of [${name}]`)
  }
  const target = fields.find(field)
  if (target !== undefined) checkTarget(name, type, field, target)
  return { target, size: size as number, order: [by, direction] }
}

function checkTarget(name: string, type: string, field: string, target: Target): void {
  if (target.kind === 'text') {
    throw shardError(
      `Text fields are not optimised for operations that require per-document field data like aggregations and sorting, so these operations are disabled by default. Please use a keyword field instead of [${field}].`,
      'illegal_argument_exception',
    )
  }
  if (!target.field.facet || !target.hasValues) {
    throw unsupported(`The aggregation [${name}] of [${field}], which is no facet of the collection,`)
  }
  const isCount = ['terms', 'value_count', 'cardinality'].includes(type)
  if (!isCount && target.kind !== 'number') {
    throw illegalArgument(
      `Field [${field}] of type [${target.kind}] is not supported for aggregation [${type}]`,
    )
  }
}

/** The `facet_by` for aggregations; undefined if they need none. */
export function facetsOf(aggregations: readonly Aggregation[]): string | undefined {
  const names = new Set(aggregations.flatMap(({ target }) => target?.name ?? []))
  return names.size === 0 ? undefined : [...names].join(',')
}

export const FACET_VALUES = String(MOST_VALUES)

/** How many searches aggregations will make. */
export const innerSearches = (aggregations: readonly Aggregation[]): number =>
  aggregations.reduce((sum, { inner, size }) => sum + (inner.length > 0 ? size : 0), 0)

/** The type of an aggregation's reply, as `typed_keys` writes it before the name. */
function typeOf({ type, target }: Aggregation): string {
  if (type !== 'terms') return type
  if (target === undefined) return 'umterms'
  if (target.kind === 'boolean') return 'lterms'
  return target.kind !== 'number' ? 'sterms' : target.field.type.startsWith('float') ? 'dterms' : 'lterms'
}

/**
 * Builds the reply's `aggregations`.
 * @param search for the aggregations inside of terms
 * @param query the parameters; with `typed_keys`, names have their types before them
 */
export async function aggregate(
  aggregations: readonly Aggregation[],
  facets: readonly FacetCounts[],
  search: FacetSearch,
  query: Record<string, string>,
): Promise<Json> {
  const entries: [string, unknown][] = []
  for (const aggregation of aggregations) {
    const facet = facets.find(({ field_name }) => field_name === aggregation.target?.name)
    const value =
      aggregation.type === 'terms'
        ? await terms(aggregation, facet, search, query)
        : figures(aggregation, facet)
    entries.push([
      isOn(query.typed_keys) ? `${typeOf(aggregation)}#${aggregation.name}` : aggregation.name,
      value,
    ])
  }
  return Object.fromEntries(entries)
}

async function terms(
  { name, target, size, order: [by, direction], inner }: Aggregation,
  facet: FacetCounts | undefined,
  search: FacetSearch,
  query: Record<string, string>,
): Promise<Json> {
  const all = facet?.counts ?? []
  if (facet !== undefined && facet.stats.total_values > all.length) {
    throw unsupported(`The aggregation [${name}] of more than ${MOST_VALUES} terms`)
  }
  const keys = all.map(({ value, count }) => ({ text: value, key: keyOf(target!, value), doc_count: count }))
  const sign = direction === 'asc' ? 1 : -1
  keys.sort((a, b) =>
    by === '_count'
      ? sign * (a.doc_count - b.doc_count) || compare(a.key, b.key)
      : sign * compare(a.key, b.key),
  )
  const shown = keys.slice(0, size)
  const buckets: Json[] = []
  for (const { text, key, doc_count } of shown) {
    const bucket: Json = { key, ...(target!.kind === 'boolean' && { key_as_string: text }), doc_count }
    if (inner.length > 0) {
      const filter =
        target!.kind === 'keyword' ? same(target!.name, [text], false) : plain(target!.name, text, false)
      const facetBy = facetsOf(inner)
      const found = facetBy === undefined ? [] : await search(filter, facetBy)
      Object.assign(bucket, await aggregate(inner, found, search, query))
    }
    buckets.push(bucket)
  }
  const rest = keys.slice(size).reduce((sum, { doc_count }) => sum + doc_count, 0)
  return { doc_count_error_upper_bound: 0, sum_other_doc_count: rest, buckets }
}

const keyOf = (target: Target, text: string): string | number =>
  target.kind === 'number' ? Number(text) : target.kind === 'boolean' ? Number(text === 'true') : text

const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0)

function figures({ type }: Aggregation, facet: FacetCounts | undefined): Json {
  const { total_values, min = null, max = null, sum = 0, avg = null } = facet?.stats ?? { total_values: 0 }
  const counted = facet?.counts.reduce((total, { count }) => total + count, 0) ?? 0
  // The average also covers lists, in which a document has a value twice. An average of zero tells nothing.
  const count = avg === null || avg === 0 ? counted : Math.round(Number(sum) / avg)
  switch (type) {
    case 'stats':
      return { count, min, max, avg, sum }
    case 'cardinality':
      return { value: total_values }
    case 'value_count':
      return { value: count }
    case 'sum':
      return { value: sum }
  }
  return { value: type === 'min' ? min : type === 'max' ? max : avg }
}

export type { Aggregation }
