/**
 * Changes that the Vectorize index does not show yet, stored in the object's SQLite.
 *
 *     vectorize_fields(slot, dimensions, retired)   fields whose vectors are in the index
 *     vector_outbox(slot, seq, mutation, attempts)   vectors whose present state the index does not show
 *     vector_mutations(number, slot, mutation_id, sent_at)   mutations that were sent and are not visible yet
 *
 * A change of a vector adds a row with mutation 0, in the same transaction. Parley sends the vector's present state,
 * as an upsert or a deletion, whatever happened before. A row that is being sent holds the number of its mutation; a
 * change in the meantime resets it to 0. So a failure at any point loses nothing, and sending twice does no harm. The
 * row is deleted when the index shows the mutation; until then searches find the document through the outbox. Objects of
 * earlier versions have further columns, which nothing reads (docs/decisions/0034-filters-without-labels.md).
 */
import { settlesWithin } from '../lib/waiting'
import { columnOf, hasRows, type SqlFragment } from '../search/fragment'
import { isSameDirection } from '../search/vectors/packed-vectors'

/** A row of `vectorize_fields`. */
export type VectorizedField = {
  slot: number
  dimensions: number
  /** 1: the field or the collection is gone, and its vectors have to be removed; 0: not */
  retired: number
}

/** A mutation that was sent. Its witnesses are documents whose vectors show whether it has arrived. */
export interface Awaited {
  number: number
  mutationId: string
  /** in unix milliseconds */
  sentAt: number
  witnesses: number[]
}

const table = (slot: number): string => `vectors_${slot}`

export class VectorOutbox {
  constructor(private readonly sql: SqlStorage) {}

  fields(): VectorizedField[] {
    return this.sql
      .exec<VectorizedField>('SELECT slot, dimensions, retired FROM vectorize_fields ORDER BY slot')
      .toArray()
  }

  /** Registers a field whose vectors go to the index, and queues those that it has. */
  adopt(slot: number, dimensions: number): void {
    this.sql.exec(
      'INSERT OR REPLACE INTO vectorize_fields (slot, dimensions, retired) VALUES (?, ?, 0)',
      slot,
      dimensions,
    )
    this.markAll(slot)
  }

  /** Records that a field is gone, and queues the removal of its vectors. */
  retire(slot: number): void {
    this.sql.exec('UPDATE vectorize_fields SET retired = 1 WHERE slot = ?', slot)
    this.markAll(slot)
  }

  forget(slot: number): void {
    for (const name of ['vectorize_fields', 'vector_outbox', 'vector_mutations']) {
      this.sql.exec(`DELETE FROM ${name} WHERE slot = ?`, slot)
    }
  }

  mark(slot: number, seq: number): void {
    this.sql.exec('INSERT OR REPLACE INTO vector_outbox (slot, seq) VALUES (?, ?)', slot, seq)
  }

  markAll(slot: number): void {
    this.sql.exec(`INSERT OR REPLACE INTO vector_outbox (slot, seq) SELECT ?, seq FROM ${table(slot)}`, slot)
  }

  knows(slot: number): boolean {
    return hasRows(this.sql, 'SELECT 1 FROM vectorize_fields WHERE slot = ?', slot)
  }

  has(slot: number, seq: number): boolean {
    return hasRows(this.sql, 'SELECT 1 FROM vector_outbox WHERE slot = ? AND seq = ?', slot, seq)
  }

  /** Documents that pass a filter, for which a query of the index cannot be trusted. */
  unseen(slot: number, filter: SqlFragment): number[] {
    return columnOf<number>(
      this.sql,
      `SELECT o.seq FROM vector_outbox o JOIN documents d ON d.seq = o.seq
          WHERE o.slot = ? AND (${filter.sql})`,
      slot,
      ...filter.bindings,
    )
  }

  /** Whether anything is still to be sent. */
  get queued(): boolean {
    return hasRows(this.sql, 'SELECT 1 FROM vector_outbox WHERE mutation = 0 LIMIT 1')
  }

  /** Documents of a field whose present state the index does not show. */
  count(slot: number): number {
    return this.sql
      .exec<{ count: number }>('SELECT count(*) AS count FROM vector_outbox WHERE slot = ?', slot)
      .one().count
  }

  /** The next documents to send, those with the fewest failures first. */
  next(slot: number, count: number): number[] {
    return columnOf<number>(
      this.sql,
      'SELECT seq FROM vector_outbox WHERE slot = ? AND mutation = 0 ORDER BY attempts LIMIT ?',
      slot,
      count,
    )
  }

  /** Records that these are about to be sent. @returns the mutation's number */
  sending(slot: number, seqs: number[]): number {
    const { number } = this.sql
      .exec<{ number: number }>('INSERT INTO vector_mutations (slot) VALUES (?) RETURNING number', slot)
      .one()
    this.sql.exec(
      'UPDATE vector_outbox SET mutation = ? WHERE slot = ? AND seq IN (SELECT value FROM json_each(?))',
      number,
      slot,
      JSON.stringify(seqs),
    )
    return number
  }

  /** @param sentAt in unix milliseconds */
  sent(number: number, mutationId: string, sentAt: number): void {
    this.sql.exec(
      'UPDATE vector_mutations SET mutation_id = ?, sent_at = ? WHERE number = ?',
      mutationId,
      sentAt,
      number,
    )
  }

  /** A mutation failed: its documents have to be sent again. */
  failed(number: number): void {
    this.sql.exec('UPDATE vector_outbox SET mutation = 0, attempts = attempts + 1 WHERE mutation = ?', number)
    this.sql.exec('DELETE FROM vector_mutations WHERE number = ?', number)
  }

  /** Queues what was being sent when the object died. It may or may not have arrived. */
  recover(): void {
    this.sql.exec(
      `UPDATE vector_outbox SET mutation = 0
         WHERE mutation IN (SELECT number FROM vector_mutations WHERE mutation_id IS NULL)`,
    )
    this.sql.exec('DELETE FROM vector_mutations WHERE mutation_id IS NULL')
  }

  /** The index shows everything of this mutation. */
  visible(number: number): void {
    this.sql.exec('DELETE FROM vector_outbox WHERE mutation = ?', number)
    this.sql.exec('DELETE FROM vector_mutations WHERE number = ?', number)
  }

  /** The index has processed this mutation, and so all earlier ones of these fields. */
  visibleUpTo(mutationId: string, slots: number[]): void {
    const earlier = this.sql.exec<{ number: number }>(
      `SELECT number FROM vector_mutations
        WHERE mutation_id IS NOT NULL AND slot IN (SELECT value FROM json_each(?))
          AND number <= (SELECT number FROM vector_mutations WHERE mutation_id = ?)`,
      JSON.stringify(slots),
      mutationId,
    )
    for (const { number } of earlier.toArray()) this.visible(number)
  }

  /** The oldest awaited mutations of a field. */
  awaited(slot: number, count: number): Awaited[] {
    // A mutation without documents has been superseded by later ones.
    this.sql.exec(
      `DELETE FROM vector_mutations WHERE slot = ? AND mutation_id IS NOT NULL
         AND number NOT IN (SELECT mutation FROM vector_outbox WHERE slot = ?)`,
      slot,
      slot,
    )
    return this.sql
      .exec<{ number: number; mutation_id: string; sent_at: number; first: number; last: number }>(
        `SELECT m.number, m.mutation_id, m.sent_at, min(o.seq) AS first, max(o.seq) AS last
           FROM vector_mutations m JOIN vector_outbox o ON o.slot = m.slot AND o.mutation = m.number
          WHERE m.slot = ? AND m.mutation_id IS NOT NULL GROUP BY m.number ORDER BY m.number LIMIT ?`,
        slot,
        count,
      )
      .toArray()
      .map(({ number, mutation_id, sent_at, first, last }) => ({
        number,
        mutationId: mutation_id,
        sentAt: sent_at,
        witnesses: first === last ? [first] : [first, last],
      }))
  }
}

/** Whether Vectorize shows what it should: the vector, or nothing. */
export const agree = (wanted: Float32Array | undefined, shown: Float32Array | undefined): boolean =>
  wanted === undefined || shown === undefined ? wanted === shown : isSameDirection(wanted, shown)

// =============================================================================
// Limits the time of calls that may never be answered.

/** A call was not answered in time. Its outcome is unknown. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

/** @throws NoAnswer when there is no answer in time */
export async function within<T>(milliseconds: number, answer: Promise<T>): Promise<T> {
  if (await settlesWithin(milliseconds, answer)) return answer
  throw new NoAnswer(`no answer within ${milliseconds} ms`)
}
