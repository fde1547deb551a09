/**
 * What every document that passes a filter is sure to meet, on fields with one typed value each: the part of a filter
 * that an index outside of the object can be told. It is never narrower than the filter. What cannot be said simply
 * (negations, alternatives, words, beginnings, places, ids, lists of values) is left out, and SQL decides in the end.
 */

import { findField } from '../schema/find-field'
import { hasValues, isArray, isBool, isNumber, isString, type StoredSchema } from '../schema/layout'
import type { Field } from '../types'
import { boolValues, type Numeric, numberTests } from './number'
import { type FilterClause, type FilterNode, isNegated, isPresence, parseFilter } from './parse'
import { patternsOf } from './string'

export interface Bound {
  value: number
  /** the value itself is outside */
  open: boolean
}

/** A missing bound is infinite. */
export interface Range {
  from?: Bound
  to?: Bound
}

/**
 * What the typed value in a slot is: strings stand for their normal form (text/words.ts), whole numbers of 64 bits for the
 * nearest double.
 */
export type Condition =
  | { slot: number; among: readonly (string | number)[] }
  | { slot: number; within: Range }

/**
 * The conditions that a filter implies, all of which hold for every document that passes it.
 * @param filterBy a filter that compiles
 * @throws ApiError 400 for a filter that does not parse
 */
export function impliedConditions(schema: StoredSchema, filterBy: string): Condition[] {
  const tree = parseFilter(filterBy)
  return tree === undefined ? [] : required(tree).flatMap((clause) => conditionOf(schema, clause) ?? [])
}

/** The clauses that a document has to pass whatever the others say. */
function required(node: FilterNode): FilterClause[] {
  if (node.kind === 'clause') return [node]
  return node.kind === 'and' ? node.children.flatMap(required) : []
}

function conditionOf(schema: StoredSchema, clause: FilterClause): Condition | undefined {
  const field = findField(schema, clause.field)
  if (field === undefined || isNegated(clause) || isPresence(clause) || isArray(field) || !hasValues(field))
    return undefined
  const slot = schema.slots[field.name]?.slot
  if (slot === undefined) return undefined
  if (isNumber(field)) return numberCondition(slot, field, clause)
  if (isBool(field)) return { slot, among: boolValues(field, clause) }
  return isString(field) ? stringCondition(slot, schema, clause) : undefined
}

function stringCondition(slot: number, schema: StoredSchema, clause: FilterClause): Condition | undefined {
  if (clause.operator !== ':=') return undefined
  const patterns = patternsOf(clause, schema)
  if (patterns.some(({ prefix }) => prefix)) return undefined
  return { slot, among: patterns.map(({ tokens }) => tokens.join(' ')) }
}

function numberCondition(slot: number, field: Field, clause: FilterClause): Condition | undefined {
  const { equal, ranges, compared } = numberTests(field, clause)
  if (ranges.length === 0 && compared.length === 0) return { slot, among: equal.map(Number) }
  const within = hull([
    ...equal.map((value): Range => closed(value, value)),
    ...ranges.map(([from, to]): Range => closed(from, to)),
    ...compared.map(({ sign, bound }): Range => {
      // Rounded, the bound itself may stand for values on either side of it.
      const end = { value: Number(bound), open: sign.length === 1 && typeof bound === 'number' }
      return sign.startsWith('>') ? { from: end } : { to: end }
    }),
  ])
  return within.from === undefined && within.to === undefined ? undefined : { slot, within }
}

const closed = (from: Numeric, to: Numeric): Range => ({
  from: { value: Number(from), open: false },
  to: { value: Number(to), open: false },
})

/** The narrowest range that contains all of these. */
function hull(ranges: Range[]): Range {
  const froms = ranges.map(({ from }) => from)
  const tos = ranges.map(({ to }) => to)
  const from = froms.includes(undefined) ? undefined : (froms as Bound[]).reduce((a, b) => outer(a, b, -1))
  const to = tos.includes(undefined) ? undefined : (tos as Bound[]).reduce((a, b) => outer(a, b, 1))
  return { ...(from && { from }), ...(to && { to }) }
}

/** The bound further out. @param side -1 for lower bounds, 1 for upper ones */
function outer(a: Bound, b: Bound, side: 1 | -1): Bound {
  if (a.value === b.value) return a.open ? b : a
  return (a.value - b.value) * side > 0 ? a : b
}

/** What lies in both. */
export function intersection(a: Range, b: Range): Range {
  const from = a.from && b.from ? inner(a.from, b.from, 1) : (a.from ?? b.from)
  const to = a.to && b.to ? inner(a.to, b.to, -1) : (a.to ?? b.to)
  return { ...(from && { from }), ...(to && { to }) }
}

/** The bound further in. @param side 1 for lower bounds, -1 for upper ones */
function inner(a: Bound, b: Bound, side: 1 | -1): Bound {
  if (a.value === b.value) return a.open ? a : b
  return (a.value - b.value) * side > 0 ? a : b
}
