/** A condition on a field's typed values (schema/layout.ts has the tables). */
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

/** The columns of a value. The second one is the norm of a string, or the longitude of a point. */
export interface Columns {
  value: string
  norm: string
}

/** Where a field's values are: a table, which a query calls c, and its columns. */
export function storedValues(schema: StoredSchema, field: Field): { table: string; columns: Columns } {
  const slot = schema.slots[field.name]!
  return isArray(field)
    ? { table: valuesTable(slot), columns: { value: 'c.value', norm: 'c.norm' } }
    : {
        table: columnsTable(slot),
        columns: { value: `c.${scalarColumn(slot)}`, norm: `c.${normColumn(slot)}` },
      }
}

/**
 * Documents with a value that meets the condition. For an array, one element is enough.
 * @param condition makes the condition from the names of the columns
 */
export function someValue(
  schema: StoredSchema,
  field: Field,
  condition: (columns: Columns) => SqlFragment,
): SqlFragment {
  const { table, columns } = storedValues(schema, field)
  const { sql, bindings } = condition(columns)
  return { sql: `EXISTS (SELECT 1 FROM ${table} c WHERE c.seq = d.seq AND (${sql}))`, bindings }
}
