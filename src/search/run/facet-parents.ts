/** The objects around facet values, for facet_return_parent. */
import { project } from '../documents/projection'
import type { SearchRequest } from '../request/request'
import { isObject, leaves, partsOf } from '../schema/values'
import type { Document, FacetCounts, Field } from '../types'
import type { SearchContext } from './context'
import type { Pace } from './pace'

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
