/**
 * Tells whether a collection has changed since something was cached. SQLite counts every row that is written, also
 * those that only move inside an index, so work that changes no content is counted apart.
 */

/** Rows that a collection's object wrote only to give an index another form, since it woke. */
const REFORMED = new WeakMap<SqlStorage, number>()

/** Rows that were written to the object's tables since it woke, those of rolled back transactions too. */
const writesOf = (sql: SqlStorage): number =>
  sql.exec<{ changes: number }>('SELECT total_changes() AS changes').one().changes

const reformedIn = (sql: SqlStorage): number => REFORMED.get(sql) ?? 0

/** `writesOf` without the rows of `reform`: while it stays the same, every search finds the same. */
export const changesOf = (sql: SqlStorage): number => writesOf(sql) - reformedIn(sql)

/**
 * Does work that changes the form of an index and not what it says, such as merging its segments. Caches stay valid.
 * @returns how many rows the work wrote
 */
export function reform(sql: SqlStorage, work: () => void): number {
  const before = writesOf(sql)
  try {
    work()
  } finally {
    REFORMED.set(sql, reformedIn(sql) + writesOf(sql) - before)
  }
  return writesOf(sql) - before
}
