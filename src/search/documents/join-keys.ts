/**
 * Join keys, the values that relate documents of two collections: those of reference fields, and those of fields that
 * other collections refer to. `join_keys` has a row for each. The ids of documents need none.
 */
import { fragment, type SqlFragment } from '../fragment'
import type { StoredSchema } from '../schema/layout'
import type { FieldPlan } from '../schema/plan'
import { leaves } from '../schema/values'
import type { Draft } from './document'

/** The keys of a document in one field. Only texts and whole numbers can be referred to. */
export const keysOf = ({ name, path }: FieldPlan, draft: Draft): unknown[] =>
  leaves(draft, name, path)
    .flatMap(({ value }) => value)
    .filter((value) => typeof value === 'string' || typeof value === 'bigint' || Number.isInteger(value))

/**
 * A relation of `seq` and `key` for a condition on the keys.
 * @param by `seq` for a condition on the documents. Otherwise SQLite would read all keys of the field for each
 *   document, because it does not know how few keys a document has. The `+` stops it from using the index by field.
 */
export const keysIn = (field: string, by: 'key' | 'seq' = 'key'): SqlFragment =>
  field === 'id'
    ? fragment('(SELECT seq, id AS key FROM documents)')
    : fragment(`(SELECT seq, key FROM join_keys WHERE ${by === 'seq' ? '+' : ''}field = ?)`, field)

/** Keys that are sent to the referring collections in one call. */
const KEYS_A_STEP = 500

/** Notes the keys of documents that are about to be deleted, in their transaction. @param seq undefined: of all */
export function noteRemoved(sql: SqlStorage, { linked }: StoredSchema, seq?: number): void {
  if (linked === undefined) return
  const cascading = linked.referrers.filter(({ cascades }) => cascades)
  for (const target of new Set(cascading.map((referrer) => referrer.target))) {
    const keys = keysIn(target, seq === undefined ? 'key' : 'seq')
    sql.exec(
      `INSERT OR IGNORE INTO cascades (field, key) SELECT ?, key FROM ${keys.sql} k ${seq === undefined ? '' : 'WHERE k.seq = ?'}`,
      target,
      ...keys.bindings,
      ...(seq === undefined ? [] : [seq]),
    )
  }
}

/** The next keys that no document has any more, as a JSON list; undefined when there are none. */
export function nextRemoved(sql: SqlStorage): { field: string; keys: string } | undefined {
  for (;;) {
    const [first] = sql.exec<{ field: string }>('SELECT field FROM cascades LIMIT 1').toArray()
    if (first === undefined) return undefined
    const { field } = first
    const { keys: some } = sql
      .exec<{ keys: string }>(
        'SELECT json_group_array(key) AS keys FROM (SELECT key FROM cascades WHERE field = ? LIMIT ?)',
        field,
        KEYS_A_STEP,
      )
      .one()
    const keys = stillRemoved(sql, field, some)
    if (keys !== '[]') return { field, keys }
  }
}

/** Drops keys of documents that were written again. @returns the remaining keys, as a JSON list */
export function stillRemoved(sql: SqlStorage, field: string, keys: string): string {
  const present = keysIn(field)
  const given = 'field = ? AND key IN (SELECT value FROM json_each(?))'
  sql.exec(
    `DELETE FROM cascades WHERE ${given} AND EXISTS (SELECT 1 FROM ${present.sql} k WHERE k.key = cascades.key)`,
    field,
    keys,
    ...present.bindings,
  )
  return sql
    .exec<{ keys: string }>(`SELECT json_group_array(key) AS keys FROM cascades WHERE ${given}`, field, keys)
    .one().keys
}

export const settleRemoved = (sql: SqlStorage, field: string, keys: string): void =>
  void sql.exec(
    'DELETE FROM cascades WHERE field = ? AND key IN (SELECT value FROM json_each(?))',
    field,
    keys,
  )
