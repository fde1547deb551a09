/**
 * Counts facet values over all matches of a search, not only over its page. The matches are found once for all facets,
 * and counted in memory where that is possible, else by SQLite.
 */
import { storedValues } from '../filter/columns'
import { fragment, join, type SqlFragment } from '../fragment'
import type { FacetQuery } from '../request/facet-request'
import type { SearchRequest } from '../request/request'
import { isNumber, isString, type StoredSchema } from '../schema/layout'
import { comparedWords } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { FacetCounts, Field } from '../types'
import type { Candidates } from './candidates'
import type { SearchContext } from './context'
import { countInMemory, isCountable } from './facet-memory'
import { addParents } from './facet-parents'
import { Ranges } from './facet-ranges'
import { type Counting, Values } from './facet-values'
import { groupKey } from './grouping'
import { countJoinedFacets, inOrder } from './join-facets'
import { gatheredSet, listed, type MatchSet } from './match-set'
import type { Pace } from './pace'
import { FIRST_WIDTH_GROUPED } from './scan'

/**
 * @param best the best hits, for facets that count those alone
 * @throws ApiError 422 for a facet with more values than are counted
 */
export async function countFacets(
  context: SearchContext,
  request: SearchRequest,
  candidates: Candidates,
  best: () => Promise<Candidates>,
  pace: Pace,
): Promise<FacetCounts[]> {
  const { schema } = context
  const counts: FacetCounts[] = []
  const group = request.groupBy.length > 0 ? groupKey(schema, request) : undefined
  let bestFound: Promise<Candidates> | undefined
  for (const facet of request.facets) {
    if (facet.topK) bestFound ??= best()
    const matches = await matchesOf(context, request, (await (facet.topK && bestFound)) || candidates, pace)
    const query = request.facetQuery?.field === facet.field.name ? request.facetQuery : undefined
    const values = new Values(schema, facet, group, query)
    const counting = facet.ranges.length > 0 ? new Ranges(facet, group) : values
    const count = async (wanted: FacetQuery | undefined) => {
      const { set } = matches
      // All numbers are read beside a query. SQL reads a slice of them at a time, and keeps those that are wanted.
      const isCounted =
        set !== undefined &&
        isCountable(facet, query && isNumber(facet.field) ? query : wanted) &&
        (await countInMemory(context, request, set, facet, wanted, values, pace))
      if (!isCounted) await countInSql(context, matches.parts, facet.field, wanted, counting, pace)
    }
    // Numbers are all counted, and compared with the query after that: their stats are of everything found.
    await count(isNumber(facet.field) ? undefined : query)
    if (query !== undefined && query.maxTypos > 0 && counting === values && values.isEmpty) {
      values.takesSome = true
      await count(undefined)
      values.keepSimilar(query)
    }
    const counted = counting.counted(request)
    if (facet.returnParent && counting === values) {
      await addParents(
        context,
        request,
        facet.field,
        (text) => values.documentWith(text),
        counted.counts,
        pace,
      )
    }
    counts.push({ field_name: facet.field.name, sampled: false, ...counted })
    await pace.rest()
  }
  if (request.joinedFacets.length === 0) return counts
  const { set } = await matchesOf(context, request, candidates, pace)
  const joined = await countJoinedFacets(context, request, set ?? new Map(), pace)
  return inOrder(counts, joined, request.joinedFacets)
}

const FOUND = new WeakMap<Candidates, { set: MatchSet | undefined; parts: Candidates['parts'] }>()

/** The matches, found once for all facets. */
async function matchesOf(
  { sql }: SearchContext,
  { facets, joinedFacets }: SearchRequest,
  candidates: Candidates,
  pace: Pace,
): Promise<{ set: MatchSet | undefined; parts: Candidates['parts'] }> {
  const known = FOUND.get(candidates)
  if (known !== undefined) return known
  const needsSet =
    joinedFacets.length > 0 ||
    candidates.set !== undefined ||
    facets.length > 1 ||
    facets.some((facet) => isCountable(facet, undefined))
  const gathered = () => candidates.set ?? gatheredSet(sql, candidates.parts)
  // Nobody counts scores.
  const counted = { ...candidates, text: false, set: needsSet ? gathered() : undefined }
  const { parts } = await listed(counted, pace)
  const { set } = counted
  const found = { set: await set?.(pace), parts }
  FOUND.set(candidates, found)
  return found
}

async function countInSql(
  { sql, schema }: SearchContext,
  parts: Candidates['parts'],
  field: Field,
  query: FacetQuery | undefined,
  counting: Counting,
  pace: Pace,
): Promise<void> {
  for await (const { relation } of parts(pace, FIRST_WIDTH_GROUPED)) {
    counting.add(pace, sql, facetValues(schema, field, relation, query))
  }
}

/** The relation v(seq, value): every value of the field in the matching documents. */
function facetValues(
  schema: StoredSchema,
  field: Field,
  relation: SqlFragment,
  query: FacetQuery | undefined,
): SqlFragment {
  const { table, columns } = storedValues(schema, field)
  const { value, norm } = columns
  const parts = [
    fragment(`SELECT c.seq, ${value} AS value FROM (`),
    relation,
    fragment(`) d JOIN ${table} c ON c.seq = d.seq WHERE ${value} IS NOT NULL`),
  ]
  if (query !== undefined) {
    // Matches word prefixes: with a space in front of the value, each word follows a space.
    const beginnings = comparedWords(query.text, rulesOf(schema, field)).map((word) => ` ${word}`)
    const text = isString(field) ? norm : `iif(${value}, 'true', 'false')`
    parts.push(
      fragment(
        ` AND ${beginnings.length > 0} AND NOT EXISTS (SELECT 1 FROM json_each(?) w WHERE instr(' ' || ${text}, w.value) = 0)`,
        JSON.stringify(beginnings),
      ),
    )
  }
  return join(parts, '')
}
