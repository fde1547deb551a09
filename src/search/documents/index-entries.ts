/** The index entries of a document: the text of each searched field, typed values of the others. */

import type { StoredSchema } from '../schema/layout'
import type { FieldPlan } from '../schema/plan'
import { leaves } from '../schema/values'
import { normalForm } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { Draft } from './document'

/** The values of a field, with lists and arrays of objects flattened. Values of a wrong type are left out. */
function writtenValues(plan: FieldPlan, draft: Draft): unknown[] {
  const values: unknown[] = []
  for (const { value, inArray } of leaves(draft, plan.name, plan.path)) {
    if (value === null || value === undefined) continue
    const isPoint = plan.kind === 'geopoint' && Array.isArray(value) && typeof double(value[0]) === 'number'
    if (Array.isArray(value) && !isPoint && (plan.array || inArray)) values.push(...value)
    else values.push(value)
  }
  return values
}

/** The text of a field. A list becomes one text, a line for each element. */
export function textOf(plan: FieldPlan, draft: Draft): string | undefined {
  const values = writtenValues(plan, draft).filter((value) => typeof value === 'string')
  return values.length === 0 ? undefined : values.join('\n')
}

/** The value of a column. A BigInt is a 64-bit whole number that a double cannot hold. */
export type Cell = string | number | bigint | null

/** `s<slot>` (and `n<slot>`) of a value, or `value` and `norm` of an element of a list. */
function cells(plan: FieldPlan, value: unknown, schema: StoredSchema): Cell[] {
  if (plan.kind === 'string') {
    return typeof value === 'string' ? [value, normalForm(value, rulesOf(schema, plan.field))] : [null, null]
  }
  if (plan.kind === 'geopoint') {
    const point = Array.isArray(value) ? value.map(double) : []
    return typeof point[0] === 'number' && typeof point[1] === 'number' ? [point[0], point[1]] : [null, null]
  }
  if (plan.kind === 'geopolygon') return [Array.isArray(value) ? JSON.stringify(value.map(double)) : null]
  if (typeof value === 'boolean') return [value ? 1 : 0]
  if (typeof value === 'bigint') return [plan.kind === 'int64' ? value : Number(value)]
  return [typeof value === 'number' ? value : null]
}

const double = (value: unknown): unknown => (typeof value === 'bigint' ? Number(value) : value)

/** The cells of a field with one value. */
export const scalarOf = (plan: FieldPlan, draft: Draft, schema: StoredSchema): Cell[] =>
  cells(plan, writtenValues(plan, draft)[0], schema)

/** The cells of a list field, one array for each element. */
export const listOf = (plan: FieldPlan, draft: Draft, schema: StoredSchema): Cell[][] =>
  writtenValues(plan, draft)
    .map((value) => cells(plan, value, schema))
    .filter(([value]) => value !== null)
