/** Adds to a refusal which name may have been mistyped, on wires that fix the message and ignore unknown names. */
import { ApiError } from '../../errors'
import { nearest } from '../../lib/nearest'
import { isObject } from '../../search/schema/values'

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
