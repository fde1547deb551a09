/**
 * How much one search may ask for, and how much memory vectors may take. No person comes near these limits;
 * docs/limits.md lists them all.
 */
import { ApiError } from '../errors'
import type { SearchParameters } from './types'

/** Bytes of `q` and of `context_q`, in UTF-8. */
export const MAX_Q_BYTES = 16_384
/** Fields of `query_by`, with wildcards resolved. */
export const MAX_QUERY_FIELDS = 100
/** Facets of `facet_by`, with wildcards resolved. Also the ranges of one facet. */
export const MAX_FACETS = 100
/** Texts in `queries` of a vector query. Each one is embedded. */
export const MAX_VECTOR_QUERIES = 16
/** `k` of a vector query. Four times as many vectors are measured. */
export const MAX_NEIGHBOURS = 10_000
/** Bytes of any other parameter. */
const MAX_PARAMETER_BYTES = 1_048_576
/** Names in a list of fields or of hits. */
const MAX_NAMES = 1_000

/** `max_facet_values`: all of them are in memory at once, and in the reply. */
export const MAX_FACET_VALUES = 100_000
/** Different values of a facet, or groups, that a search counts. They are in memory at once. */
export const MAX_DISTINCT = 500_000
/** Documents that a search ranks in memory: for hybrid searches and for buckets. */
export const MAX_RANKED = 500_000
/** Hits up to the end of a page. They are in memory at once, as numbers. */
export const MAX_DEPTH = 50_000
/** `group_limit` by default. */
export const DEFAULT_GROUP_LIMIT = 3
/** `per_page` times `group_limit`: hits on a page of groups. */
export const MAX_GROUPED_HITS = 2_500

/** Fields of `group_by`: a group's key has a value of each. */
export const MAX_GROUP_FIELDS = 32

/** Bytes that all collections of an isolate keep in memory together, of values, matches, vectors, texts and replies: half of the isolate. */
export const MAX_KEPT_BYTES = 64 << 20

/** Documents of one collection. A history may have more: its messages expire, and no turn may be lost. */
export const MAX_DOCUMENTS = 300_000
/** What to do past a limit of one object. */
export const CLUSTER_HINT =
  'move the collection into a cluster: `parley move`, or a collection with an `engine` (docs/engines.md)'

/**
 * Bytes of the vectors of one collection as int8, which a search compares with its own: 61,680 vectors of 1024 dimensions, or
 * 149,796 of 384.
 */
export const MAX_MATRIX_BYTES = 64 << 20

/**
 * After this many milliseconds a search returns what it has found so far. Typesense's default; a request cannot raise
 * it.
 */
export const CUTOFF_MS = 30_000

/** The question and the answer. Documents of a turn before these two are a transcript from elsewhere. */
export const MESSAGES_A_TURN = 2

/** Joins inside of joins: `$a($b(...))` is two deep. */
export const MAX_JOIN_DEPTH = 5
/** Joins in the filter, the order and the fields of one search. Each one is a call to another collection. */
export const MAX_JOINS = 16
/** Keys that one join matches. They go from one object to another. */
export const MAX_JOIN_KEYS = 100_000
/**
 * Characters of a page's hits. A call between a Worker and an object returns 32 MiB at most, and a character takes up to
 * two bytes there.
 */
export const MAX_PAGE_CHARACTERS = 12 << 20

/** Related documents that one statement sorts, for `sort_by` and for one join of a page. */
export const MAX_JOIN_SORTED = 20_000
/** Documents and bytes that one join adds to a page. */
export const MAX_JOIN_DOCUMENTS = 5_000
export const MAX_JOIN_BYTES = 8 << 20

const LISTS = ['include_fields', 'exclude_fields', 'highlight_fields', 'highlight_full_fields']
const HITS = ['pinned_hits', 'hidden_hits']

/**
 * Checks what can be checked without a schema.
 * @throws ApiError 400 naming the limit
 */
export function checkLimits(params: SearchParameters): void {
  for (const [name, value] of Object.entries(params)) {
    // A character takes three bytes of UTF-8 at most for each of its UTF-16 units.
    const most = name === 'q' || name === 'context_q' ? MAX_Q_BYTES : MAX_PARAMETER_BYTES
    if (value.length * 3 > most && new TextEncoder().encode(value).length > most) {
      throw new ApiError(400, `Parameter \`${name}\` exceeds the maximum of ${most} bytes.`)
    }
  }
  for (const name of [...LISTS, ...HITS])
    requireAtMost(name, (params[name] ?? '').split(',').length, MAX_NAMES)
}

/** @throws ApiError 400 */
export function requireAtMost(name: string, count: number, most: number): void {
  if (count > most) throw new ApiError(400, `Parameter \`${name}\` takes at most ${most} items.`)
}
