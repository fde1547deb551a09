/** The text that a vector is made from. */
import { ApiError } from '../../errors'
import type { FieldSlot } from '../schema/layout'
import type { FieldPlan, Plan } from '../schema/plan'
import { leaves } from '../schema/values'
import type { Draft } from './document'

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
  #sql: SqlStorage

  /** Called when a slot gets work, inside the transaction. */
  onMark: ((slot: number) => void) | undefined

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  /** Records that a document needs a new vector. */
  mark({ slot }: FieldSlot, seq: number): void {
    this.#sql.exec('INSERT OR IGNORE INTO pending_embeddings (slot, seq) VALUES (?, ?)', slot, seq)
    this.#sql.exec('DELETE FROM refused_embeddings WHERE slot = ? AND seq = ?', slot, seq)
    this.onMark?.(slot)
  }

  /** Records that every document needs a new vector. */
  markAll({ slot }: FieldSlot): void {
    this.#sql.exec('INSERT OR IGNORE INTO pending_embeddings (slot, seq) SELECT ?, seq FROM documents', slot)
    this.onMark?.(slot)
  }

  /** Records that a document has its vector, or no longer needs one. */
  settle({ slot }: FieldSlot, seq: number): void {
    this.#sql.exec('DELETE FROM pending_embeddings WHERE slot = ? AND seq = ?', slot, seq)
    this.#sql.exec('DELETE FROM refused_embeddings WHERE slot = ? AND seq = ?', slot, seq)
  }

  /** Records that the model refused a document's text. */
  refuse(slot: FieldSlot, seq: number, error: string): void {
    this.settle(slot, seq)
    this.#sql.exec(
      'INSERT INTO refused_embeddings (slot, seq, error) VALUES (?, ?, ?)',
      slot.slot,
      seq,
      error,
    )
  }

  has({ slot }: FieldSlot, seq: number): boolean {
    const rows = this.#sql.exec('SELECT 1 FROM pending_embeddings WHERE slot = ? AND seq = ?', slot, seq)
    return rows.toArray().length > 0
  }

  /** Documents that need a vector, oldest first. */
  next({ slot }: FieldSlot, limit: number): number[] {
    return this.#sql
      .exec<{ seq: number }>(
        'SELECT seq FROM pending_embeddings WHERE slot = ? ORDER BY seq LIMIT ?',
        slot,
        limit,
      )
      .toArray()
      .map(({ seq }) => seq)
  }

  /** How many vectors are pending, by slot. */
  counts(): Map<number, number> {
    const rows = this.#sql.exec<{ slot: number; count: number }>(
      'SELECT slot, count(*) AS count FROM pending_embeddings GROUP BY slot',
    )
    return new Map(rows.toArray().map(({ slot, count }) => [slot, count]))
  }

  /** How many texts were refused, and one of them. */
  refused(): { count: number; id: string; error: string } | undefined {
    const [row] = this.#sql
      .exec<{ count: number; id: string; error: string }>(
        `SELECT count(*) OVER () AS count, id, error FROM refused_embeddings JOIN documents USING (seq)
          ORDER BY slot, seq LIMIT 1`,
      )
      .toArray()
    return row
  }

  /** Makes all refused texts pending again. */
  retryRefused(): void {
    this.#sql.exec(
      'INSERT OR IGNORE INTO pending_embeddings (slot, seq) SELECT slot, seq FROM refused_embeddings',
    )
    this.#sql.exec('DELETE FROM refused_embeddings')
  }

  forgetSlot({ slot }: FieldSlot): void {
    this.#sql.exec('DELETE FROM pending_embeddings WHERE slot = ?', slot)
    this.#sql.exec('DELETE FROM refused_embeddings WHERE slot = ?', slot)
  }

  clear(): void {
    this.#sql.exec('DELETE FROM pending_embeddings')
    this.#sql.exec('DELETE FROM refused_embeddings')
  }
}
