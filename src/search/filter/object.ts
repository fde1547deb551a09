/** Filters on the objects of an array: `ingredients.{name: cheese && share:<50}`. */
import { ApiError } from '../../errors'
import { isBool, isGeopoint, isNumber, isString } from '../schema/layout'
import { isObject, partsOf, valuesAt, walk } from '../schema/values'
import { rulesOf } from '../text/rules'
import type { Field } from '../types'
import { type FilterContext, filterError } from './context'
import { areasTest } from './geopoint'
import { boolValues, numberTests, passesNumber } from './number'
import { type FilterClause, type FilterNode, isNegated, isPresence } from './parse'
import { comparedForm, comparesWhole, isUseful, matches, patternsOf } from './string'

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

/** Whether values of a field meet a clause. @throws ApiError 400 for a value that the field cannot have, and for a field that is not stored */
export function clauseTest(
  context: FilterContext,
  field: Field,
  clause: FilterClause,
): (values: unknown[]) => boolean {
  // The values of such fields are in one list for the whole document, not by object.
  if (!field.store) {
    throw filterError(field.name, 'A field with `store: false` cannot be filtered inside of an object.')
  }
  const some = isPresence(clause) ? isPresent : valuesTest(context, field, clause)
  return isNegated(clause) ? (values) => !some(values) : some
}

const isPresent = (values: unknown[]): boolean => values.length > 0

function valuesTest(
  { sql, schema }: FilterContext,
  field: Field,
  clause: FilterClause,
): (values: unknown[]) => boolean {
  if (isNumber(field)) {
    const tests = numberTests(field, clause)
    const numeric = (value: unknown) => typeof value === 'number' || typeof value === 'bigint'
    return (values) => {
      const numbers = values.filter(numeric) as (number | bigint)[]
      return (
        numbers.some((value) => passesNumber(tests, value)) ||
        tests.unequal.some((other) => numbers.every((value) => value < other || value > other))
      )
    }
  }
  if (isBool(field)) {
    const wanted = boolValues(field, clause)
    return (values) => values.some((value) => wanted.includes(Number(value)))
  }
  if (isString(field)) {
    const whole = comparesWhole(clause)
    const rules = rulesOf(schema, field)
    const patterns = patternsOf(clause, rules, field.locale).filter((pattern) => isUseful(pattern, whole))
    return (values) =>
      values.some(
        (value) =>
          typeof value === 'string' &&
          patterns.some((pattern) => matches(comparedForm(value, rules), pattern, whole)),
      )
  }
  if (isGeopoint(field)) {
    const area = areasTest(field, clause)
    return (values) => {
      // A point is a pair of numbers, but the values arrive one by one.
      const [latitude, longitude] = values.flat().map(Number)
      if (latitude === undefined || longitude === undefined) return false
      const inside = area({ value: `(${latitude})`, norm: `(${longitude})` })
      return sql.exec(`SELECT 1 WHERE ${inside.sql}`, ...inside.bindings).toArray().length > 0
    }
  }
  throw filterError(field.name, 'This type of field cannot be filtered inside of an object.')
}
