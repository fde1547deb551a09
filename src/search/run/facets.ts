/** Counts facet values over all matches of a search, not only over its page. */

import { project } from '../documents/projection'
import type { FacetRequest } from '../request/facet-request'
import type { SearchRequest } from '../request/request'
import { isObject, leaves, partsOf } from '../schema/values'
import type { Document, FacetCounts, Field } from '../types'
import type { Candidates } from './candidates'
import type { SearchContext } from './context'
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
    const ranges = facet.ranges.length > 0 ? new Ranges(facet) : undefined
    const counting = ranges ?? values
    await count(context, request, set, { facet, counting }, pace)
    if (query !== undefined && query.maxTypos > 0 && ranges === undefined && values.isEmpty) {
      values.takesSome = true
      await count(context, request, set, { facet, counting }, pace)
      await pace.through(values.keepSimilar(query))
    }
    const counted = ranges?.counted() ?? (await pace.through(values.counted(request)))
    if (facet.returnParent && ranges === undefined) {
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

/** Documents that are read at once. */
const AT_ONCE = 50

/**
 * Adds to each count the object around its value. A parent shows what hits show: `include_fields` and
 * `exclude_fields` apply to it, and vectors are left out.
 * @param documentWith the sequence number of a document that has a value
 * @throws ApiError what `pace` throws
 */
export async function addParents(
  context: SearchContext,
  { includeFields, excludeFields }: SearchRequest,
  { name }: Field,
  documentWith: (text: string) => number,
  counts: FacetCounts['counts'],
  pace: Pace,
): Promise<void> {
  for (let from = 0; from < counts.length; from += AT_ONCE) {
    const slice = counts.slice(from, from + AT_ONCE)
    const documents = context.read([...new Set(slice.map(({ value }) => documentWith(value)))], true)
    pace.countDocuments(documents.size)
    for (const count of slice) {
      const document = documents.get(documentWith(count.value))
      if (document === undefined) continue
      const parent = parentOf(project(document, includeFields, excludeFields), name, count.value)
      if (parent !== undefined) count.parent = parent
    }
    await pace.rest()
  }
}

/**
 * The object that holds a value of a field.
 * @param text the value as a facet shows it
 * @returns undefined for a field of the top level, and when the document lost the value
 */
function parentOf(document: Document, name: string, text: string): unknown {
  const path = partsOf(name)
  if (path === undefined || Object.hasOwn(document, name)) return undefined
  const leaf = leaves(document, name, path).find(({ value }) =>
    [value].flat().some((element) => String(element) === text),
  )
  return isObject(leaf?.parent) ? leaf.parent : undefined
}
