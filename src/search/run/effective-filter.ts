/** The condition that every hit of a search meets. */
import { rangedFilter } from '../filter/compile'
import { costOf } from '../filter/cost'
import { parseFilter } from '../filter/parse'
import { balanced, fragment, not, oneOf, type SqlFragment } from '../fragment'
import type { SearchRequest } from '../request/request'
import type { StoredSchema } from '../schema/layout'
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

/** The filters of a search: its own and those of its order. */
export const filtersOf = ({ filterBy, sort = [] }: SearchRequest): string[] => [
  filterBy,
  ...sort.flatMap((key) => (key.kind === 'eval' ? key.cases.map(({ filter }) => filter) : [])),
]

/** What the conditions of a search cost for each document, in rows. */
export const costOfConditions = (schema: StoredSchema, request: SearchRequest): number =>
  filtersOf(request)
    .map((filter) => costOf(schema, parseFilter(filter)))
    .reduce((sum, cost) => sum + cost, 0)
