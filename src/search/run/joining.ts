/** The joins of searches, and of other requests: single documents, exports, and changes by filter. */
import type { Joining } from '../documents/bulk'
import { CUTOFF_MS, MAX_JOIN_DEPTH } from '../limits'
import { parseRequest } from '../request/request'
import type { Document, SearchParameters, SearchScope } from '../types'
import type { SearchContext } from './context'
import { withJoins } from './join-answer'
import { attachJoins } from './join-attach'
import { hasJoins } from './joins'
import { type LongSearches, Pace } from './pace'

export interface JoiningFields {
  filterBy?: string
  include?: string
  exclude?: string
}

/** @returns the joins in these parameters, evaluated; nothing if they have none @throws ApiError */
export async function joining(
  context: SearchContext,
  { filterBy = '', include = '', exclude = '' }: JoiningFields,
  scope: SearchScope = {},
  others: LongSearches,
): Promise<Joining> {
  const params = { filter_by: filterBy, include_fields: include, exclude_fields: exclude }
  if (!hasJoins(params)) return {}
  const limits = { until: performance.now() + CUTOFF_MS, depth: MAX_JOIN_DEPTH }
  const joined = await withJoins(context, params, atHome(context, scope), limits)
  const attach = (shown: Map<number, Document>): Promise<void> =>
    attachJoins(joined, shown, { include, exclude }, new Pace(others))
  return { joins: joined.joins?.documents, attach }
}

/**
 * Evaluates the joins of a search's filter, before anything else that it waits for.
 * @param started by performance.now() @param caller aborts when it has left
 */
export async function searchJoins(
  context: SearchContext,
  params: SearchParameters,
  scope: SearchScope,
  { started, caller }: { started: number; caller: AbortSignal },
): Promise<SearchContext> {
  if (!hasJoins(params)) return context
  const { cutoffMs, filterBy } = parseRequest(params, context.schema)
  const limits = { until: started + cutoffMs, depth: MAX_JOIN_DEPTH, caller }
  return withJoins(context, { ...params, filter_by: filterBy }, atHome(context, scope), limits)
}

const atHome = ({ port }: SearchContext, scope: SearchScope): SearchScope => ({
  ...scope,
  home: port?.objectId,
})
