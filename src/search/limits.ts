/**
 * How much one search may ask for, and how much memory vectors may take. Each limit is far beyond what a person
 * asks for; docs/limits.md lists them all.
 */
import { ApiError } from '../errors'
import type { SearchParameters } from './types'

/** Bytes of `q`, in UTF-8. */
export const MAX_Q_BYTES = 16_384
/** Fields of `query_by`, after wildcards have been resolved. */
export const MAX_QUERY_FIELDS = 100
/** Facets of `facet_by`, after wildcards have been resolved, and ranges of one facet. */
export const MAX_FACETS = 100
/** Texts in the `queries` of a vector query: each is embedded. */
export const MAX_VECTOR_QUERIES = 16
/** `k` of a vector query: the vectors of four times as many are measured. */
export const MAX_NEIGHBOURS = 10_000
/** Bytes of any other parameter. */
export const MAX_PARAMETER_BYTES = 1_048_576
/** Names in a list of fields or of hits. */
export const MAX_NAMES = 1_000

/** `max_facet_values`: all of them are in memory at once, and in the reply. */
export const MAX_FACET_VALUES = 10_000
/** Different values of a facet, and groups, that a search counts: they are in memory at once. */
export const MAX_DISTINCT = 500_000
/** Documents that a search ranks in memory: those of a hybrid search, and those that are put into buckets. */
export const MAX_RANKED = 500_000
/** Hits before the end of a page: they are in memory at once, as numbers. */
export const MAX_DEPTH = 50_000
/** `group_limit` when nothing is said. */
export const DEFAULT_GROUP_LIMIT = 3
/** `per_page` times `group_limit`: hits of a page of groups. */
export const MAX_GROUPED_HITS = 2_500

/** Fields of `group_by`: SQLite gives a function at most 100 arguments. */
export const MAX_GROUP_FIELDS = 32

/**
 * Bytes of memory that the vectors of one collection may take as int8: half of an isolate, which may have to
 * serve other collections too. That is 61,680 vectors of 1024 dimensions or 149,796 of 384.
 */
export const MAX_MATRIX_BYTES = 64 << 20

/** After this time a search answers with what it has found so far: Typesense's default, and the most that is taken. */
export const CUTOFF_MS = 30_000

/** A question and its answer. What a turn brings before them is a transcript, which was said elsewhere. */
export const MESSAGES_A_TURN = 2

const LISTS = ['include_fields', 'exclude_fields', 'highlight_fields', 'highlight_full_fields']
const HITS = ['pinned_hits', 'hidden_hits']

/**
 * Checks what can be checked without a schema.
 * @throws ApiError 400 naming the limit
 */
export function checkLimits(params: SearchParameters): void {
  for (const [name, value] of Object.entries(params)) {
    // A character takes three bytes of UTF-8 at most for each of its UTF-16 units.
    const most = name === 'q' ? MAX_Q_BYTES : MAX_PARAMETER_BYTES
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
