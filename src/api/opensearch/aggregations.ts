/**
 * Aggregations: terms, dates and metrics of fields, from the facets of a search. A filter, and metrics inside of
 * each term, take another search. The facets of several indices are added up first, so that all numbers are exact.
 */
import { intervalsOf, timeOf } from '../../lib/dates'
import { namesOf } from '../../lib/nearest'
import { type Filter, plain, same } from '../../search/filter/write'
import { MAX_FACET_VALUES } from '../../search/limits'
import { isWhole, mergeFacets, valuesIn } from '../../search/merge-facets'
import { compare } from '../../search/text/terms'
import type { FacetCounts, SearchResult } from '../../search/types'
import { illegalArgument, noValues, parsingError, requireKeys, unsupported } from './errors'
import type { Fields, Target } from './fields'
import { compileQuery, rangeFilter } from './query'
import { isObject, isOn, type Json, onlyEntry } from './route'

/** Types with buckets, and their options. */
const BUCKETS: Record<string, string> = {
  terms: 'field size order',
  date_histogram: 'field calendar_interval fixed_interval min_doc_count format',
  filter: '',
}
const METRICS = namesOf('stats min max avg sum value_count cardinality')

/** Most values of a field that are counted, in all indices together. */
const MOST_VALUES = MAX_FACET_VALUES
/** Most terms with aggregations inside: each term is a search of its own. */
const MOST_SEARCHES = 50
/** Most buckets of a histogram with aggregations inside. */
const mostIntervals = (indices: number): number => Math.floor(40 / indices)

export interface Aggregation {
  name: string
  type: string
  /** undefined: no document has the field */
  target: Target | undefined
  size: number
  order: ['_count' | '_key', 'asc' | 'desc']
  inner: Aggregation[]
  histogram?: Histogram
  /** of the type `filter` */
  filter?: Filter
}

/** How aggregations inside of others are made. */
interface Again {
  /** searches each index again, for the facets of hits that also pass its filter */
  search(filters: readonly Filter[], facetBy: readonly string[]): Promise<FacetsFound[]>
  /** the parameters; with `typed_keys`, names have their types before them */
  query: Record<string, string>
}

export type FacetsFound = Pick<SearchResult, 'found' | 'facet_counts'>

/** @throws ApiError 400 that names what is unknown */
export function parseAggregations(given: Json, fields: Fields, depth = 0): Aggregation[] {
  return Object.entries(given).map(([name, body]) => {
    if (!isObject(body)) throw parsingError(`Expected [START_OBJECT] under [${name}]`)
    const { aggs, aggregations, ...types } = body
    const [type, options] = onlyEntry(types) ?? []
    if (type === undefined) throw parsingError(`[${name}] has to have one type of aggregation`)
    if (!Object.hasOwn(BUCKETS, type) && !METRICS.includes(type))
      throw parsingError(`Unknown aggregation type [${type}] of [${name}]`)
    const inside = aggs ?? aggregations ?? {}
    if (!isObject(inside)) throw parsingError(`[aggs] of [${name}] has to be an object`)
    if (Object.keys(inside).length > 0 && METRICS.includes(type)) {
      throw illegalArgument(`Aggregator [${name}] of type [${type}] cannot accept sub-aggregations`)
    }
    if (depth > 0 && (Object.keys(inside).length > 0 || type === 'filter')) {
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
): Pick<Aggregation, 'target' | 'size' | 'order' | 'filter' | 'histogram'> {
  if (!isObject(options)) throw parsingError(`[${type}] of [${name}] has to be an object`)
  if (type === 'filter') {
    const filter = compileQuery(options, fields).filter(false)
    return { target: undefined, size: 1, order: ['_count', 'desc'], filter }
  }
  const known = BUCKETS[type] ?? 'field'
  requireKeys(options, known, (key) => parsingError(`[${type}] unknown field [${key}]`))
  const { field, size = 10, order = { _count: 'desc' } } = options
  if (typeof field !== 'string')
    throw illegalArgument(`Required one of fields [field], but none were specified in [${name}].`)
  if (!Number.isInteger(size) || (size as number) < 1 || (size as number) > MOST_VALUES) {
    throw illegalArgument(`[size] must be between 1 and ${MOST_VALUES}. Found [${String(size)}] in [${name}]`)
  }
  const [by, direction] = onlyEntry(order) ?? []
  if ((by !== '_count' && by !== '_key') || (direction !== 'asc' && direction !== 'desc'))
    throw unsupported(`The [order] of [${name}]`)
  const target = fields.find(field)
  if (target !== undefined) checkTarget(name, type, field, target)
  const histogram = type === 'date_histogram' ? parseHistogram(name, options) : undefined
  return { target, size: size as number, order: [by, direction], ...(histogram && { histogram }) }
}

function checkTarget(name: string, type: string, field: string, target: Target): void {
  if (target.kind === 'text') throw noValues(field)
  if (!target.field.facet || !target.hasValues) {
    throw unsupported(`The aggregation [${name}] of [${field}], which is no facet of the collection,`)
  }
  if (type === 'date_histogram') {
    if (target.isDate) return
    throw unsupported(`The [date_histogram] [${name}] of [${field}], which is no date kept as text,`)
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

/** How many values of a field each of some indices is asked for. */
export const facetValues = (indices: number): string => String(Math.floor(MOST_VALUES / indices))

/** How many searches the aggregations of indices make, with some others. @throws ApiError 400 for more than MOST_SEARCHES */
export function innerSearches(of: readonly (readonly Aggregation[])[], others: number): number {
  const sizeOf = ({ inner, size, type, histogram }: Aggregation) =>
    inner.length === 0 && type !== 'filter' ? 0 : histogram ? mostIntervals(of.length) : size
  const all = of.flat().reduce((sum, each) => sum + sizeOf(each), others)
  if (all <= MOST_SEARCHES) return all
  const most = Math.floor(MOST_SEARCHES / of.length)
  throw unsupported(`Aggregations inside of more than ${most} terms: ask for fewer by [size]; more`)
}

/** The type of an aggregation's reply, as `typed_keys` writes it before the name. */
function typeOf({ type, target }: Aggregation): string {
  if (type !== 'terms') return type
  if (target === undefined) return 'umterms'
  if (target.kind === 'boolean') return 'lterms'
  return target.kind !== 'number' ? 'sterms' : target.field.type.startsWith('float') ? 'dterms' : 'lterms'
}

/** An aggregation of several indices: that of an index which has the field, and that of each by its own fields. */
interface Joint extends Aggregation {
  own: readonly Aggregation[]
}

/**
 * Builds the reply's `aggregations`.
 * @param each those of each index @param facets those of each index
 * @throws ApiError 400 for what cannot be added up exactly
 */
export async function aggregate(
  each: readonly (readonly Aggregation[])[],
  facets: readonly (readonly FacetCounts[])[],
  again: Again,
): Promise<Json> {
  const entries: [string, unknown][] = []
  for (const at of (each[0] ?? []).keys()) {
    const aggregation = joint(each.map((list) => list[at]!))
    const found = aggregation.own.flatMap(
      ({ target }, index) => facets[index]!.find(({ field_name }) => field_name === target?.name) ?? [],
    )
    const facet = mergeFacets(found)
    const value = METRICS.includes(aggregation.type)
      ? figures(aggregation, facet)
      : aggregation.filter !== undefined
        ? await inside(aggregation, ({ filter }) => filter!, again)
        : aggregation.histogram !== undefined
          ? { buckets: await histogram(aggregation, aggregation.histogram, facet, again) }
          : await terms(aggregation, facet, again)
    entries.push([
      isOn(again.query.typed_keys) ? `${typeOf(aggregation)}#${aggregation.name}` : aggregation.name,
      value,
    ])
  }
  return Object.fromEntries(entries)
}

/** @throws ApiError 400 if the field is of another type in another index */
function joint(own: readonly Aggregation[]): Joint {
  const first = own.find(({ target }) => target !== undefined) ?? own[0]!
  const types = own.flatMap(({ target }) => (target ? `${target.kind} ${target.isDate}` : []))
  if (new Set(types).size > 1)
    throw unsupported(`The aggregation [${first.name}] of a field that has another type in another index`)
  return { ...first, own }
}

/** The number of the hits that pass the filter of their index too, and what is asked inside of it. */
async function inside({ own }: Joint, filterOf: (own: Aggregation) => Filter, again: Again): Promise<Json> {
  const inner = own.map((each) => each.inner)
  const found = await again.search(
    own.map(filterOf),
    inner.map((each) => facetsOf(each) ?? ''),
  )
  const facets = found.map(({ facet_counts }) => facet_counts)
  const doc_count = found.reduce((sum, each) => sum + each.found, 0)
  return { doc_count, ...(await aggregate(inner, facets, again)) }
}

/** The counts of all values of a facet. @throws ApiError 400 if there are too many */
function allOf({ name, own }: Joint, facet: FacetCounts | undefined): FacetCounts['counts'] {
  if (facet === undefined) return []
  if (!isWhole(facet))
    throw unsupported(`The aggregation [${name}] of more than ${facetValues(own.length)} terms`)
  return facet.counts
}

async function histogram(
  aggregation: Joint,
  { floor, next, length, least }: Histogram,
  facet: FacetCounts | undefined,
  again: Again,
): Promise<Json[]> {
  const { name, inner, own } = aggregation
  const counts = new Map<number, number>()
  for (const { value, count } of allOf(aggregation, facet)) {
    const at = timeOf(value)
    if (!Number.isNaN(at)) counts.set(floor(at), (counts.get(floor(at)) ?? 0) + count)
  }
  const most = inner.length > 0 ? mostIntervals(own.length) : MOST_VALUES
  const keys = [...counts.keys()].sort((a, b) => a - b)
  const last = keys.at(-1)!
  if (least <= 0) for (let at = 1; at <= most && keys[at - 1]! < last; at++) keys[at] = next(keys[at - 1]!)
  const some = keys.filter((key) => (counts.get(key) ?? 0) >= least)
  if (some.length > most) throw unsupported(`The aggregation [${name}] of more than ${most} buckets`)
  const buckets: Json[] = []
  for (const key of some) {
    const within = ({ target }: Aggregation) =>
      target !== undefined && rangeFilter(target, { gte: key, lt: next(key) }, false)
    const more = inner.length > 0 ? await inside(aggregation, within, again) : {}
    const key_as_string = new Date(key).toISOString().slice(0, length)
    buckets.push({ key_as_string, key, ...more, doc_count: counts.get(key) ?? 0 })
  }
  return buckets
}

async function terms(aggregation: Joint, facet: FacetCounts | undefined, again: Again): Promise<Json> {
  const { target, size, inner } = aggregation
  const [by, direction] = aggregation.order
  const keys = allOf(aggregation, facet).map(({ value, count }) => ({
    text: value,
    key: keyOf(target!, value),
    doc_count: count,
  }))
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
      const within = ({ target: own }: Aggregation) =>
        own !== undefined &&
        (own.kind === 'keyword' ? same(own.name, [text], false) : plain(own.name, text, false))
      Object.assign(bucket, await inside(aggregation, within, again), { doc_count })
    }
    buckets.push(bucket)
  }
  const rest = keys.slice(size).reduce((sum, { doc_count }) => sum + doc_count, 0)
  return { doc_count_error_upper_bound: 0, sum_other_doc_count: rest, buckets }
}

const keyOf = (target: Target, text: string): string | number =>
  target.kind === 'number' ? Number(text) : target.kind === 'boolean' ? Number(text === 'true') : text

function figures(aggregation: Joint, facet: FacetCounts | undefined): Json {
  const { type, own } = aggregation
  const { total_values, min = null, max = null, sum = 0, avg = null } = facet?.stats ?? { total_values: 0 }
  if (own.length > 1 && (type === 'cardinality' || avg === null || avg === 0)) allOf(aggregation, facet)
  const count = facet === undefined ? 0 : valuesIn(facet)
  if (type === 'stats') return { count, min, max, avg, sum }
  const values: Json = { cardinality: total_values, value_count: count, sum, min, max, avg }
  return { value: values[type] }
}

// =============================================================================
// The intervals of `date_histogram`.

type Histogram = ReturnType<typeof parseHistogram>

const FORMATS = ['yyyy', 'yyyy-MM', 'yyyy-MM-dd']

/**
 * @returns `floor`: the key of a time's bucket, its first millisecond. `next`: the key of the next bucket. `length`: characters of an
 *   ISO date that are shown. `least`: documents that a bucket has at least
 * @throws ApiError 400 for an interval that is none
 */
function parseHistogram(name: string, options: Json) {
  const { calendar_interval, fixed_interval, min_doc_count: least = 0, format } = options
  if (typeof least !== 'number') throw illegalArgument(`[min_doc_count] of [${name}] takes a number`)
  if (format !== undefined && !FORMATS.includes(String(format)))
    throw unsupported(`[format: ${String(format)}] of [${name}], which is none of ${FORMATS.join(', ')},`)
  const intervals = intervalsOf(String(calendar_interval), String(fixed_interval))
  if (intervals === undefined)
    throw illegalArgument(`Invalid interval specified, [${name}] takes a calendar_interval or fixed_interval`)
  return { ...intervals, length: format === undefined ? 24 : String(format).length, least }
}
