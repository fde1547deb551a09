/** A condition on a field's typed values: see schema/layout.ts for where they lie. */
import type { SqlFragment } from '../fragment'
import {
  columnsTable,
  isArray,
  normColumn,
  type StoredSchema,
  scalarColumn,
  valuesTable,
} from '../schema/layout'
import type { Field } from '../types'

/** How a condition names a field's value, and its second column: norm of a string, longitude of a point. */
export interface Columns {
  value: string
  norm: string
}

/**
 * True of the documents with a value that meets the condition; of an array, any element.
 * @param condition makes the condition from the names of the columns
 */
export function someValue(
  schema: StoredSchema,
  field: Field,
  condition: (columns: Columns) => SqlFragment,
): SqlFragment {
  const slot = schema.slots[field.name]!
  const table = isArray(field) ? valuesTable(slot) : columnsTable(slot)
  const columns = isArray(field)
    ? { value: 'c.value', norm: 'c.norm' }
    : { value: `c.${scalarColumn(slot)}`, norm: `c.${normColumn(slot)}` }
  const { sql, bindings } = condition(columns)
  return { sql: `EXISTS (SELECT 1 FROM ${table} c WHERE c.seq = d.seq AND (${sql}))`, bindings }
}
