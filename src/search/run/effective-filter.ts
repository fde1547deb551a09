/** The condition that every hit of a search meets. */
import { rangedFilter } from '../filter/compile'
import { balanced, fragment, not, oneOf, type SqlFragment } from '../fragment'
import type { SearchRequest } from '../request/request'
import type { ParsedQuery } from '../text/query'
import type { RangedFilter } from './candidates'
import type { SearchContext } from './context'
import { setWithout } from './filtered-matches'
import { matchOfExcluded, withoutMatches } from './keyword'
import { filteredSet } from './match-set'
import type { Pace } from './pace'
import { sequenceNumbers } from './pinned'

/** filter_by, minus hidden and pinned documents and those with an excluded word. */
export function effectiveFilter(
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  pinned: { seq: number }[],
  pace?: Pace,
): RangedFilter {
  const { sql, schema } = context
  const [joined, onRead] = [context.joins?.documents, pace?.countDocuments]
  const always: SqlFragment[] = []
  const without = pinned.map(({ seq }) => seq)
  if (request.hiddenHits.length > 0) {
    const hidden = [...sequenceNumbers(sql, request.hiddenHits).values()]
    always.push(not(oneOf(hidden)))
    without.push(...hidden)
  }
  if (pinned.length > 0) always.push(not(oneOf(pinned.map(({ seq }) => seq))))
  const match = matchOfExcluded(context, request, query)
  const excluded = match && withoutMatches(match)
  const compiled = rangedFilter(sql, schema, request.filterBy, joined, onRead)
  const filter: RangedFilter = (range) => {
    const { where, bindings } = compiled(range)
    const conditions: SqlFragment[] = where === '1' ? [] : [{ sql: `(${where})`, bindings }]
    conditions.push(...always)
    if (excluded !== undefined) conditions.push(excluded(range))
    return conditions.length === 0 ? fragment('1') : balanced(conditions, 'AND')
  }
  const passing = filteredSet(context, request.filterBy, without)
  filter.set = match === undefined ? passing : setWithout(context, passing, match)
  return filter
}
