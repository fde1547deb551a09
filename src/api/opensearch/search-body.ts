/** The body of a search, and the parameters that replace parts of it. */
import { illegalArgument, OpenSearchError, parsingError, shardError } from './errors'
import { isObject, type Json } from './route'

/** Hits that a search can reach: OpenSearch's `index.max_result_window`. */
export const WINDOW = 10_000

export interface SearchBody {
  query: unknown
  from: number
  size: number
  sort: unknown
  source: unknown
  highlight: unknown
  fields: unknown
  /** a query that hits have to pass besides, and aggregations not */
  postFilter: unknown
  aggregations: Json
  /** whether `hits.total` is wanted */
  total: boolean
  /** hits below this score are left out; 0 leaves out none */
  minScore: number
}

const KEYS = [
  'query',
  'from',
  'size',
  'sort',
  '_source',
  'highlight',
  'aggs',
  'aggregations',
  'track_total_hits',
  'min_score',
  'timeout',
  'fields',
  'post_filter',
]

/** Keys that ask for something that is not served, unless their value says that nothing is wanted: clients send those by default. */
const OPTIONAL = [
  'explain',
  'profile',
  'version',
  'seq_no_primary_term',
  'track_scores',
  'terminate_after',
  'stored_fields',
  'docvalue_fields',
  'script_fields',
  'indices_boost',
  'rescore',
  'ext',
  'stats',
  'suggest',
  'collapse',
  'search_after',
]

const asksNothing = (value: unknown): boolean =>
  value === false ||
  value === 0 ||
  (typeof value === 'object' && (value === null || Object.keys(value).length === 0))

/** The keys accepted in a search over a list of objects. */
export const SEARCH_KEYS_OF_LISTS = [
  'query',
  'from',
  'size',
  'sort',
  '_source',
  'track_total_hits',
  'version',
  'seq_no_primary_term',
  'timeout',
]

/** They change no answer of one shard that is searched anew each time. */
export const OF_SHARDS = [
  'preference',
  'request_cache',
  'routing',
  'search_type',
  'allow_partial_search_results',
  'batched_reduce_size',
  'cancel_after_time_interval',
  'ccs_minimize_roundtrips',
  'max_concurrent_shard_requests',
  'pre_filter_shard_size',
]

/** Query parameters of a search. */
export const SEARCH_PARAMETERS = [
  'q',
  'df',
  'default_operator',
  'from',
  'size',
  'sort',
  '_source',
  '_source_includes',
  '_source_excludes',
  'track_total_hits',
  'rest_total_hits_as_int',
  'search_pipeline',
  'typed_keys',
  ...OF_SHARDS,
]

/** @throws ApiError 400 that names what is unknown */
export function parseSearchBody(body: Json, query: Record<string, string>): SearchBody {
  const isKnown = (key: string) => KEYS.includes(key) || (OPTIONAL.includes(key) && asksNothing(body[key]))
  const unknown = Object.keys(body).find((key) => !isKnown(key))
  const hint = unknown === 'search_after' ? ' Go on with [from], or with a scroll.' : ''
  if (unknown !== undefined)
    throw parsingError(`Unknown key for a ${tokenOf(body[unknown])} in [${unknown}].${hint}`)
  const from = count('from', query.from, body.from, 0)
  const size = count('size', query.size, body.size, 10)
  if (from + size > WINDOW) {
    throw shardError(
      `Result window is too large, from + size must be less than or equal to: [${WINDOW}] but was [${from + size}].`,
      'illegal_argument_exception',
    )
  }
  const aggregations = body.aggs ?? body.aggregations ?? {}
  if (!isObject(aggregations)) throw parsingError('[aggs] has to be an object')
  return {
    query: query.q === undefined ? (body.query ?? { match_all: {} }) : queryOf(query),
    from,
    size,
    sort: query.sort === undefined ? body.sort : query.sort.split(',').map(sortOf),
    source: body._source,
    highlight: body.highlight,
    fields: asksNothing(body.fields) ? undefined : body.fields,
    postFilter: asksNothing(body.post_filter) ? undefined : body.post_filter,
    aggregations,
    total: String(query.track_total_hits ?? body.track_total_hits ?? true) !== 'false',
    minScore: scoreOf(body.min_score ?? 0),
  }
}

/** No score is negative. @throws ApiError 400 */
function scoreOf(given: unknown): number {
  if (typeof given !== 'number') throw parsingError(`[min_score] takes a number, not a ${tokenOf(given)}`)
  return Math.max(0, given)
}

function tokenOf(value: unknown): string {
  if (Array.isArray(value)) return 'START_ARRAY'
  if (isObject(value)) return 'START_OBJECT'
  return `VALUE_${value === null ? 'NULL' : typeof value === 'boolean' ? String(value).toUpperCase() : typeof value === 'number' ? 'NUMBER' : 'STRING'}`
}

function count(name: string, parameter: string | undefined, key: unknown, otherwise: number): number {
  const given = parameter ?? key
  if (given === undefined) return otherwise
  const number = typeof given === 'string' && given.trim() !== '' ? Number(given) : given
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) {
    if (parameter !== undefined)
      throw illegalArgument(`Failed to parse int parameter [${name}] with value [${parameter}]`)
    const reason = `For input string: "${String(key)}" of [${name}]`
    throw new OpenSearchError(400, 'number_format_exception', reason)
  }
  if (number < 0) throw illegalArgument(`[${name}] parameter cannot be negative, found [${number}]`)
  return number
}

/** `?q=` as a query. */
export const queryOf = ({ q, df, default_operator }: Record<string, string>): Json => ({
  query_string: {
    query: q,
    ...(df !== undefined && { default_field: df }),
    ...(default_operator !== undefined && { default_operator }),
  },
})

const sortOf = (text: string): unknown => {
  const colon = text.lastIndexOf(':')
  return colon < 0 ? text : { [text.slice(0, colon)]: text.slice(colon + 1) }
}
