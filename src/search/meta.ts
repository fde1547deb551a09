import * as v from 'valibot'
import { parseExact } from '../lib/json'
import { hasRows } from './fragment'

/**
 * Reads a row of the object's own state.
 * @param shape checks the value. The value itself is returned, since valibot's copy drops keys such as `constructor`,
 *   which a field may have as its name
 * @returns undefined when there is no such row
 * @throws ValiError for a value that no version has written
 */
export function readMeta<Shape extends v.GenericSchema>(
  sql: SqlStorage,
  key: string,
  shape: Shape,
): v.InferInput<Shape> | undefined {
  const [row] = sql.exec<{ value: string }>('SELECT value FROM meta WHERE key = ?', key).toArray()
  if (row === undefined) return undefined
  const value: unknown = parseExact(row.value)
  v.assert(shape, value)
  return value
}

/** Whether the row exists. Flags are rows. */
export const hasMeta = (sql: SqlStorage, key: string): boolean =>
  hasRows(sql, 'SELECT 1 FROM meta WHERE key = ?', key)

/** @param value undefined removes the row */
export function writeMeta(sql: SqlStorage, key: string, value: unknown): void {
  if (value === undefined) sql.exec('DELETE FROM meta WHERE key = ?', key)
  else sql.exec('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)', key, JSON.stringify(value))
}
