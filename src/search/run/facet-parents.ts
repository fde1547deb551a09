/** The objects around facet values, for facet_return_parent. */
import { isObject, leaves, partsOf } from '../schema/values'
import type { Document } from '../types'

/**
 * The object that holds a value of a field.
 * @param text the value as a facet shows it
 * @returns undefined for a field of the top level, and when the document lost the value
 */
export function parentOf(document: Document | undefined, name: string, text: string): unknown {
  const path = partsOf(name)
  if (document === undefined || path === undefined || Object.hasOwn(document, name)) return undefined
  const leaf = leaves(document, name, path).find(({ value }) =>
    [value].flat().some((element) => String(element) === text),
  )
  return isObject(leaf?.parent) ? leaf.parent : undefined
}
