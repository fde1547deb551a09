/**
 * Which vectors are still to be made: a row for each document and embedding field, written in the transaction
 * that writes the document. Fields go by their slots, which are never used twice, so that a row cannot outlive
 * its field. What a model will not take has a row as well, until the document changes.
 */
import type { FieldSlot } from '../schema/layout'

export class PendingEmbeddings {
  #sql: SqlStorage

  /** Called inside the transaction that gives a slot something to do. */
  onMark: ((slot: number) => void) | undefined

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  /** The document's vector is to be made, or made anew. */
  mark({ slot }: FieldSlot, seq: number): void {
    this.#sql.exec('INSERT OR IGNORE INTO pending_embeddings (slot, seq) VALUES (?, ?)', slot, seq)
    this.#sql.exec('DELETE FROM refused_embeddings WHERE slot = ? AND seq = ?', slot, seq)
    this.onMark?.(slot)
  }

  /** Every document's vector is to be made. */
  markAll({ slot }: FieldSlot): void {
    this.#sql.exec('INSERT OR IGNORE INTO pending_embeddings (slot, seq) SELECT ?, seq FROM documents', slot)
    this.onMark?.(slot)
  }

  /** The document has its vector, or needs none. */
  settle({ slot }: FieldSlot, seq: number): void {
    this.#sql.exec('DELETE FROM pending_embeddings WHERE slot = ? AND seq = ?', slot, seq)
    this.#sql.exec('DELETE FROM refused_embeddings WHERE slot = ? AND seq = ?', slot, seq)
  }

  /** The model does not take the document's text. */
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

  /** Documents whose vectors are to be made, oldest first. */
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

  /** How many vectors are to be made, by slot. */
  counts(): Map<number, number> {
    const rows = this.#sql.exec<{ slot: number; count: number }>(
      'SELECT slot, count(*) AS count FROM pending_embeddings GROUP BY slot',
    )
    return new Map(rows.toArray().map(({ slot, count }) => [slot, count]))
  }

  /** What was refused: how many, and one of them. */
  refused(): { count: number; id: string; error: string } | undefined {
    const [row] = this.#sql
      .exec<{ count: number; id: string; error: string }>(
        `SELECT count(*) OVER () AS count, id, error FROM refused_embeddings JOIN documents USING (seq)
          ORDER BY slot, seq LIMIT 1`,
      )
      .toArray()
    return row
  }

  /** Has the models asked once more about everything that they refused. */
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
