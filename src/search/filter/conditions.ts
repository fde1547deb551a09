/**
 * The part of a filter that an index outside of the object can apply: conditions that every matching document meets,
 * on fields with one typed value. They are never narrower than the filter. Negations, alternatives, words, prefixes,
 * places, ids and lists of values are left out, and the object applies the whole filter in the end (filter.ts).
 */

import { findField } from '../schema/find-field'
import { hasValues, isArray, isBool, isNumber, isString, type StoredSchema } from '../schema/layout'
import { rulesOf } from '../text/rules'
import type { TokenRules } from '../text/words'
import type { Field } from '../types'
import { boolValues, type Numeric, numberTests } from './number'
import { type FilterClause, type FilterNode, isNegated, isPresence, parseFilter } from './parse'
import { patternsOf } from './string'

export interface Bound {
  value: number
  /** excludes the value itself */
  open: boolean
}

/** A missing bound is infinite. */
export interface Range {
  from?: Bound
  to?: Bound
}

/**
 * A condition on the typed value in a slot. Strings are in normal form (text/compared.ts), 64-bit whole numbers are the
 * nearest double.
 */
export type Condition =
  | { slot: number; among: readonly (string | number)[] }
  | { slot: number; within: Range }

/**
 * The conditions that a filter implies. All of them hold for every document that passes it.
 * @param filterBy a filter that compiles
 * @throws ApiError 400 for a filter that does not parse
 */
export function impliedConditions(schema: StoredSchema, filterBy: string): Condition[] {
  const tree = parseFilter(filterBy)
  return tree === undefined ? [] : required(tree).flatMap((clause) => conditionOf(schema, clause) ?? [])
}

/** The clauses that a document has to pass in any case. */
function required(node: FilterNode): FilterClause[] {
  if (node.kind === 'clause') return [node]
  // The outside index knows nothing of other collections, so leave joins out.
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
  return isString(field) ? stringCondition(slot, rulesOf(schema, field), clause) : undefined
}

function stringCondition(slot: number, rules: TokenRules, clause: FilterClause): Condition | undefined {
  // The typed values are not stemmed.
  if (clause.operator !== ':=' || rules.stem !== undefined) return undefined
  const patterns = patternsOf(clause, rules, '')
  if (patterns.some(({ prefix, phrase }) => prefix || phrase)) return undefined
  return { slot, among: patterns.map(({ form }) => form) }
}

function numberCondition(slot: number, field: Field, clause: FilterClause): Condition | undefined {
  const { equal, unequal, ranges, compared } = numberTests(field, clause)
  if (unequal.length > 0) return undefined
  if (ranges.length === 0 && compared.length === 0) return { slot, among: equal.map(Number) }
  const within = hull([
    ...equal.map((value): Range => closed(value, value)),
    ...ranges.map(([from, to]): Range => closed(from, to)),
    ...compared.map(({ sign, bound }): Range => {
      // A bound that was rounded may equal values on either side of the true one, so it is included.
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

/** The narrowest range that contains all of them. */
function hull(ranges: Range[]): Range {
  const froms = ranges.map(({ from }) => from)
  const tos = ranges.map(({ to }) => to)
  const from = froms.includes(undefined) ? undefined : (froms as Bound[]).reduce((a, b) => outer(a, b, -1))
  const to = tos.includes(undefined) ? undefined : (tos as Bound[]).reduce((a, b) => outer(a, b, 1))
  return { ...(from && { from }), ...(to && { to }) }
}

/** The outer one of two bounds. @param side -1 for lower bounds, 1 for upper ones */
function outer(a: Bound, b: Bound, side: 1 | -1): Bound {
  if (a.value === b.value) return a.open ? b : a
  return (a.value - b.value) * side > 0 ? a : b
}

/** The values in both ranges. */
export function intersection(a: Range, b: Range): Range {
  const from = a.from && b.from ? inner(a.from, b.from, 1) : (a.from ?? b.from)
  const to = a.to && b.to ? inner(a.to, b.to, -1) : (a.to ?? b.to)
  return { ...(from && { from }), ...(to && { to }) }
}

/** The inner one of two bounds. @param side 1 for lower bounds, -1 for upper ones */
function inner(a: Bound, b: Bound, side: 1 | -1): Bound {
  if (a.value === b.value) return a.open ? a : b
  return (a.value - b.value) * side > 0 ? a : b
}
