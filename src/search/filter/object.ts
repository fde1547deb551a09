/** Filters on the objects of an array: `ingredients.{name: cheese && share:<50}`. */
import { ApiError } from '../../errors'
import { isObject, partsOf, valuesAt, walk } from '../schema/values'
import { type FilterClause, type FilterNode, isNegated } from './parse'

type Json = Record<string, unknown>

/** The objects at a dotted name, those of arrays one by one. */
export function objectsAt(document: unknown, name: string): Json[] {
  const found: Json[] = []
  if (!isObject(document)) return found
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (isObject(value)) found.push(value)
  }
  walk(
    document,
    name,
    partsOf(name),
    undefined,
    () => undefined,
    ({ value }) => collect(value),
  )
  return found
}

/** Whether an object meets a filter. @param test makes the test of a clause from the values of its field */
export function objectTest(
  node: FilterNode,
  test: (clause: FilterClause) => (values: unknown[]) => boolean,
): (object: Json) => boolean {
  // The parser finds no joins in objects.
  if (node.kind === 'object' || node.kind === 'join') {
    throw new ApiError(400, 'Object filters cannot be nested.')
  }
  if (node.kind === 'clause') {
    const passes = test(node)
    return (object) => passes(valuesAt(object, node.field))
  }
  const tests = node.children.map((child) => objectTest(child, test))
  return node.kind === 'and'
    ? (object) => tests.every((passes) => passes(object))
    : (object) => tests.some((passes) => passes(object))
}

/**
 * The filter that a filter on objects implies for the whole document: its positive clauses, met by any of the
 * objects.
 * @returns undefined if it implies nothing
 */
export function impliedBy(node: FilterNode, path: string): FilterNode | undefined {
  if (node.kind === 'object' || node.kind === 'join') return undefined
  if (node.kind === 'clause') {
    return isNegated(node) || hasUnequal(node) ? undefined : { ...node, field: `${path}.${node.field}` }
  }
  const implied = node.children.map((child) => impliedBy(child, path))
  const known = implied.filter((child) => child !== undefined)
  if (known.length === 0 || (node.kind === 'or' && known.length < implied.length)) return undefined
  return known.length === 1 ? known[0] : { kind: node.kind, children: known }
}

/** A value like `!=5` in a list is about the numbers of one object. Another object of the document may have a 5. */
const hasUnequal = ({ list, values }: FilterClause): boolean =>
  list && values.some(({ text }) => text.startsWith('!'))
