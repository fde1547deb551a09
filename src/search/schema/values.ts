/** An object of JSON: neither null nor an array. */

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A value and the place that holds it, so that it can be replaced or removed there. */
export interface Leaf {
  parent: Record<string, unknown> | unknown[]
  key: string | number
  value: unknown
  /** the path passes an array of objects: the field has a value for each of them */
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
  // A fast path: most fields are keys of the document itself, and an import reads each several times.
  if (Object.hasOwn(document, name)) {
    return [{ parent: document, key: name, value: document[name], inArray: false }]
  }
  if (path === undefined) return []
  const found: Leaf[] = []
  const collect = (leaf: Leaf) => found.push(leaf)
  walk(document, name, path, undefined, () => undefined, collect)
  return found
}

/**
 * Follows a dotted name through objects and arrays of objects. All code that reads or changes a field's values goes
 * through this function.
 * @param path the parts of the name; undefined for a field of the top level
 * @param beside a companion of the document, such as the copy of it that a caller builds
 * @param enter makes the companion of a node from the companion of the node around it
 * @param found is called for each value, in order, with the companion of the node that holds it
 */
export function walk<Beside>(
  document: Record<string, unknown>,
  name: string,
  path: readonly string[] | undefined,
  beside: Beside,
  enter: (beside: Beside, key: string | number, node: unknown) => Beside,
  found: (leaf: Leaf, beside: Beside) => void,
): void {
  // Own properties only: a field may be called `constructor`. A name with dots may be a key of its own.
  if (Object.hasOwn(document, name)) {
    found({ parent: document, key: name, value: document[name], inArray: false }, beside)
    return
  }
  if (path === undefined) return
  const along = (node: unknown, depth: number, inArray: boolean, beside: Beside): void => {
    if (Array.isArray(node)) {
      for (const [index, element] of node.entries())
        along(element, depth, true, enter(beside, index, element))
      return
    }
    const key = path[depth]!
    // In a caller's copy `__proto__` would be the prototype of every object, not a key.
    if (key === '__proto__' || !isObject(node) || !Object.hasOwn(node, key)) return
    if (depth === path.length - 1) found({ parent: node, key, value: node[key], inArray }, beside)
    else along(node[key], depth + 1, inArray, enter(beside, key, node[key]))
  }
  along(document, 0, false, beside)
}

/** The values of a field by its name, dotted or not, without nulls. The elements of a list count one by one. */
export const valuesAt = (document: Record<string, unknown>, name: string): unknown[] =>
  leaves(document, name, partsOf(name))
    .flatMap(({ value }) => value)
    .filter((value) => value !== null && value !== undefined)

/** The strings among {@link valuesAt}. */
export const stringsAt = (document: Record<string, unknown>, name: string): string[] =>
  valuesAt(document, name).filter((value): value is string => typeof value === 'string')

/** The parts of a dotted name; undefined for a name of the top level. */
export const partsOf = (name: string): string[] | undefined =>
  name.includes('.') ? name.split('.') : undefined

/** Puts a value in a leaf's place; undefined removes it. */
export function replace(leaf: Leaf, value: unknown): void {
  const parent = leaf.parent as Record<string | number, unknown>
  if (value === undefined) delete parent[leaf.key]
  else parent[leaf.key] = value
}

/** Merges a patch into a document, in place: objects merge deeply, null removes, everything else replaces. */
export function merge(document: Record<string, unknown>, patch: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(patch)) {
    const old = Object.hasOwn(document, key) ? document[key] : undefined
    if (value === null) delete document[key]
    else if (isObject(value) && isObject(old)) merge(old, value)
    // An assignment to `__proto__` would change the prototype instead of adding a property.
    else if (key !== '__proto__') document[key] = value
  }
}

/**
 * Puts a value at a dotted name. If one of the objects on the way is missing, the whole name becomes a key of the
 * document.
 */
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
