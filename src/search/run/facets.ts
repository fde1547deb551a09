/** Counts facet values over all matches of a search, not only over its page. */
import type { FacetRequest } from '../request/facet-request'
import type { SearchRequest } from '../request/request'
import type { FacetCounts } from '../types'
import type { Candidates } from './candidates'
import type { SearchContext } from './context'
import { addParents } from './facet-parents'
import { Ranges } from './facet-ranges'
import { type Counting, Values } from './facet-values'
import { groupsOfBlocks } from './grouping'
import { countJoinedFacets, inOrder } from './join-facets'
import { Columns, eachBlock, type MatchSet } from './match-set'
import type { Pace } from './pace'

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
  let bestFound: Promise<Candidates> | undefined
  for (const facet of request.facets) {
    if (facet.topK) bestFound ??= best()
    const set = await ((await (facet.topK && bestFound)) || candidates).set(pace)
    const query = request.facetQuery?.field === facet.field.name ? request.facetQuery : undefined
    const values = new Values(schema, facet, query)
    const counting = facet.ranges.length > 0 ? new Ranges(facet) : values
    await count(context, request, set, { facet, counting }, pace)
    if (query !== undefined && query.maxTypos > 0 && counting === values && values.isEmpty) {
      values.takesSome = true
      await count(context, request, set, { facet, counting }, pace)
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
  const set = await candidates.set(pace)
  const joined = await countJoinedFacets(context, request, set, pace)
  return inOrder(counts, joined, request.joinedFacets)
}

async function count(
  context: SearchContext,
  request: SearchRequest,
  set: MatchSet,
  { facet: { field, order }, counting }: { facet: FacetRequest; counting: Counting },
  pace: Pace,
): Promise<void> {
  const by = order === undefined || order.by === 'value' ? undefined : order.by
  const columns = new Columns(context, by === undefined ? [field] : [field, by])
  const groups = request.groupBy.length > 0 ? groupsOfBlocks(context, request, pace) : undefined
  await eachBlock(set, pace, (number, offsets) => {
    const block = columns.block(field, number, pace, offsets)
    const ranks = by && columns.block(by, number, pace, offsets)
    counting.add({ number, offsets, block, groupOf: groups?.(number, offsets), ranks })
  })
}
