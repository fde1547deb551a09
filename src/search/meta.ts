import { parseExact } from '../exact-json'

/** A row of the object's own state. */
export function readMeta<T>(sql: SqlStorage, key: string): T | undefined {
  const [row] = sql.exec<{ value: string }>('SELECT value FROM meta WHERE key = ?', key).toArray()
  return row === undefined ? undefined : (parseExact(row.value) as T)
}

/** @param value undefined removes the row */
export function writeMeta(sql: SqlStorage, key: string, value: unknown): void {
  if (value === undefined) sql.exec('DELETE FROM meta WHERE key = ?', key)
  else sql.exec('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)', key, JSON.stringify(value))
}
