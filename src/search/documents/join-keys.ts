/**
 * Join keys, the values that relate documents of two collections: those of reference fields, and those of fields that
 * other collections refer to. `join_keys` has a row for each. The ids of documents need none.
 */

import { ApiError } from '../../errors'
import { columnOf, fragment, type SqlFragment } from '../fragment'
import type { FieldSlot, StoredSchema } from '../schema/layout'
import type { FieldPlan, Plan } from '../schema/plan'
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

// =============================================================================
// The text that a vector is made from.

/** The text that a document's vector is made from; undefined when all of its sources are missing. */
export function embeddingText(plan: FieldPlan, sources: Plan, draft: Draft): string | undefined {
  const { embed } = plan.field
  const values: string[] = []
  for (const name of embed?.from ?? []) {
    const path = sources.fields.find((field) => field.name === name)?.path
    for (const { value } of leaves(draft, name, path)) {
      for (const part of Array.isArray(value) ? value : [value])
        if (typeof part === 'string') values.push(part)
    }
  }
  if (values.length === 0) return undefined
  const prefix = embed?.model_config.indexing_prefix?.trimEnd() ?? ''
  return (prefix === '' ? '' : `${prefix} `) + values.map((value) => `${value} `).join('')
}

/**
 * Checks that a new document has the sources of its vector.
 * @throws ApiError 400
 */
export function requireSources(plan: FieldPlan, sources: Plan, draft: Draft): void {
  for (const name of plan.field.embed?.from ?? []) {
    const source = sources.fields.find((field) => field.name === name)
    if (source === undefined) {
      throw new ApiError(400, `Field \`${plan.name}\` has invalid fields to create embeddings from.`)
    }
    if (!source.field.optional && leaves(draft, name, source.path).length === 0) {
      throw new ApiError(400, `Field \`${name}\` is needed to create embedding.`)
    }
  }
  if (!plan.field.optional && embeddingText(plan, sources, draft) === undefined) {
    throw new ApiError(
      400,
      `No valid fields found to create embedding for \`${plan.name}\`, please provide at least one valid field or make the embedding field optional.`,
    )
  }
}

// =============================================================================
// Records the vectors that are still to be made. Each has a row, written in the transaction that writes the document.
// Fields are identified by slots, which are never reused, so a row cannot outlive its field. Texts that a model
// refused have rows too, until the document changes.

export class PendingEmbeddings {
  /** Called when a slot gets work, inside the transaction. */
  onMark: ((slot: number) => void) | undefined

  constructor(private readonly sql: SqlStorage) {}

  /** Records that a document needs a new vector. */
  mark({ slot }: FieldSlot, seq: number): void {
    this.sql.exec('INSERT OR IGNORE INTO pending_embeddings (slot, seq) VALUES (?, ?)', slot, seq)
    this.sql.exec('DELETE FROM refused_embeddings WHERE slot = ? AND seq = ?', slot, seq)
    this.onMark?.(slot)
  }

  /** Records that every document needs a new vector. */
  markAll({ slot }: FieldSlot): void {
    this.sql.exec('INSERT OR IGNORE INTO pending_embeddings (slot, seq) SELECT ?, seq FROM documents', slot)
    this.onMark?.(slot)
  }

  /** Records that a document has its vector, or no longer needs one. */
  settle({ slot }: FieldSlot, seq: number): void {
    this.sql.exec('DELETE FROM pending_embeddings WHERE slot = ? AND seq = ?', slot, seq)
    this.sql.exec('DELETE FROM refused_embeddings WHERE slot = ? AND seq = ?', slot, seq)
  }

  /** Records that the model refused a document's text. */
  refuse(slot: FieldSlot, seq: number, error: string): void {
    this.settle(slot, seq)
    this.sql.exec('INSERT INTO refused_embeddings (slot, seq, error) VALUES (?, ?, ?)', slot.slot, seq, error)
  }

  has({ slot }: FieldSlot, seq: number): boolean {
    const rows = this.sql.exec('SELECT 1 FROM pending_embeddings WHERE slot = ? AND seq = ?', slot, seq)
    return rows.toArray().length > 0
  }

  /** Documents that need a vector, oldest first. */
  next({ slot }: FieldSlot, limit: number): number[] {
    return columnOf<number>(
      this.sql,
      'SELECT seq FROM pending_embeddings WHERE slot = ? ORDER BY seq LIMIT ?',
      slot,
      limit,
    )
  }

  /** How many vectors are pending, by slot. */
  counts(): Map<number, number> {
    const rows = this.sql.exec<{ slot: number; count: number }>(
      'SELECT slot, count(*) AS count FROM pending_embeddings GROUP BY slot',
    )
    return new Map(rows.toArray().map(({ slot, count }) => [slot, count]))
  }

  /** How many texts were refused, and one of them. */
  refused(): { count: number; id: string; error: string } | undefined {
    const [row] = this.sql
      .exec<{ count: number; id: string; error: string }>(
        `SELECT count(*) OVER () AS count, id, error FROM refused_embeddings JOIN documents USING (seq)
          ORDER BY slot, seq LIMIT 1`,
      )
      .toArray()
    return row
  }

  /** Makes all refused texts pending again. */
  retryRefused(): void {
    this.sql.exec(
      'INSERT OR IGNORE INTO pending_embeddings (slot, seq) SELECT slot, seq FROM refused_embeddings',
    )
    this.sql.exec('DELETE FROM refused_embeddings')
  }

  forgetSlot({ slot }: FieldSlot): void {
    this.sql.exec('DELETE FROM pending_embeddings WHERE slot = ?', slot)
    this.sql.exec('DELETE FROM refused_embeddings WHERE slot = ?', slot)
  }

  clear(): void {
    this.sql.exec('DELETE FROM pending_embeddings')
    this.sql.exec('DELETE FROM refused_embeddings')
  }
}
