/** What a document brings to the index: a text for each searched field, typed values for the others. */

import type { StoredSchema } from '../schema/layout'
import type { FieldPlan } from '../schema/plan'
import { leaves } from '../schema/values'
import { normalForm } from '../text/words'
import type { Draft } from './document'

/** The values of a field, lists and arrays of objects laid flat. Whatever is of a wrong type is left out. */
function valuesOf(plan: FieldPlan, draft: Draft): unknown[] {
  const values: unknown[] = []
  for (const { value, inArray } of leaves(draft, plan.name, plan.path)) {
    if (value === null || value === undefined) continue
    const isPoint = plan.kind === 'geopoint' && Array.isArray(value) && typeof double(value[0]) === 'number'
    if (Array.isArray(value) && !isPoint && (plan.array || inArray)) values.push(...value)
    else values.push(value)
  }
  return values
}

/** A list becomes one text with a line for each element. */
export function textOf(plan: FieldPlan, draft: Draft): string | undefined {
  const values = valuesOf(plan, draft).filter((value) => typeof value === 'string')
  return values.length === 0 ? undefined : values.join('\n')
}

/** What a column holds. A BigInt is a whole number of 64 bits that a double cannot hold. */
export type Cell = string | number | bigint | null

/** What stands in `s<slot>` (and `n<slot>`) for a value, or `value` and `norm` for an element of a list. */
function cells(plan: FieldPlan, value: unknown, schema: StoredSchema): Cell[] {
  if (plan.kind === 'string') {
    return typeof value === 'string' ? [value, normalForm(value, schema)] : [null, null]
  }
  if (plan.kind === 'geopoint') {
    const point = Array.isArray(value) ? value.map(double) : []
    return typeof point[0] === 'number' && typeof point[1] === 'number' ? [point[0], point[1]] : [null, null]
  }
  if (typeof value === 'boolean') return [value ? 1 : 0]
  if (typeof value === 'bigint') return [plan.kind === 'int64' ? value : Number(value)]
  return [typeof value === 'number' ? value : null]
}

const double = (value: unknown): unknown => (typeof value === 'bigint' ? Number(value) : value)

/** The cells of a field with one value. */
export const scalarOf = (plan: FieldPlan, draft: Draft, schema: StoredSchema): Cell[] =>
  cells(plan, valuesOf(plan, draft)[0], schema)

/** The cells of a field with several. */
export const listOf = (plan: FieldPlan, draft: Draft, schema: StoredSchema): Cell[][] =>
  valuesOf(plan, draft)
    .map((value) => cells(plan, value, schema))
    .filter(([value]) => value !== null)
