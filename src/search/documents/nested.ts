/** Values inside nested documents: `person.name` reaches through objects, and through arrays of them. */
import { isObject } from '../schema/field'

/** A value where it stands, so that it can be replaced or removed there. */
export interface Leaf {
  parent: Record<string, unknown> | unknown[]
  key: string | number
  value: unknown
  /** an array of objects was passed on the way: the field has a value for each of them */
  inArray: boolean
}

/**
 * All values of a field in a document, in order.
 * @param path the parts of a dotted name; undefined for a field of the top level
 */
export function leaves(
  document: Record<string, unknown>,
  name: string,
  path: readonly string[] | undefined,
): Leaf[] {
  // Own properties only: a field may be called `constructor`.
  if (Object.hasOwn(document, name)) {
    return [{ parent: document, key: name, value: document[name], inArray: false }]
  }
  const found: Leaf[] = []
  if (path !== undefined) collect(document, path, 0, false, found)
  return found
}

function collect(
  node: unknown,
  path: readonly string[],
  depth: number,
  inArray: boolean,
  found: Leaf[],
): void {
  if (Array.isArray(node)) {
    for (const element of node) collect(element, path, depth, true, found)
    return
  }
  const key = path[depth] as string
  if (!isObject(node) || !Object.hasOwn(node, key)) return
  if (depth === path.length - 1) found.push({ parent: node, key, value: node[key], inArray })
  else collect(node[key], path, depth + 1, inArray, found)
}

/** Puts a value in a leaf's place; undefined removes it. */
export function replace(leaf: Leaf, value: unknown): void {
  const parent = leaf.parent as Record<string | number, unknown>
  if (value === undefined) delete parent[leaf.key]
  else parent[leaf.key] = value
}

/**
 * Lays a patch over a document: objects are merged deeply, everything else replaces, null removes.
 * The document is changed in place.
 */
export function merge(document: Record<string, unknown>, patch: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(patch)) {
    const old = Object.hasOwn(document, key) ? document[key] : undefined
    if (value === null) delete document[key]
    else if (isObject(value) && isObject(old)) merge(old, value)
    // An assignment to `__proto__` would change the prototype instead of adding a property.
    else if (key !== '__proto__') document[key] = value
  }
}

/** Puts a value at a dotted name, in the objects that are there; where one is missing, under the name itself. */
export function place(
  document: Record<string, unknown>,
  name: string,
  path: readonly string[] | undefined,
  value: unknown,
): void {
  let parent: unknown = document
  for (const key of path?.slice(0, -1) ?? []) {
    parent = isObject(parent) && Object.hasOwn(parent, key) ? parent[key] : undefined
  }
  if (path !== undefined && isObject(parent)) parent[path.at(-1) as string] = value
  else document[name] = value
}
