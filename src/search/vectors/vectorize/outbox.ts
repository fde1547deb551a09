/**
 * What the Vectorize index does not show yet, durable, in the object's SQLite.
 *
 *     vectorize_fields(slot, dimensions, retired, labelled, proven, tried_at)   fields whose vectors are in the index
 *     vector_outbox(slot, seq, mutation, attempts, relabelled)   vectors whose present state the index does not show
 *     vector_mutations(number, slot, mutation_id, sent_at)   what was sent and is awaited
 *
 * A change of a vector leaves a row with mutation 0, in the same transaction. What is sent is the vector's
 * present state, an upsert or a deletion, whatever it went through before. A row that is being sent bears the
 * number of its mutation; a change in the meantime sets it back to 0. So nothing is lost by a failure at any
 * point, and sending twice does no harm. The row goes when the index shows the mutation: until then the
 * document is found through the outbox. Where only labels have changed (labels.ts) a query without a filter
 * can be trusted with the document all the same.
 */
import { fragment, type SqlFragment } from '../../fragment'

export interface VectorizedField {
  slot: number
  dimensions: number
  /** the field or the collection is gone: its vectors are to be removed */
  retired: boolean
  /** its vectors have labels in the index, but for those in the outbox */
  labelled: boolean
  /** the index was seen to find this field's vectors by their labels */
  proven: boolean
  /** when it was last seen not to, in unix milliseconds */
  triedAt: number | undefined
}

/** A mutation that was sent, with some of its documents, whose vectors tell whether it is visible. */
export interface Awaited {
  number: number
  mutationId: string
  /** in unix milliseconds */
  sentAt: number
  witnesses: number[]
}

const table = (slot: number): string => `vectors_${slot}`

export class VectorOutbox {
  #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  fields(): VectorizedField[] {
    return this.#sql
      .exec<{
        slot: number
        dimensions: number
        retired: number
        labelled: number
        proven: number
        tried_at: number | null
      }>('SELECT * FROM vectorize_fields ORDER BY slot')
      .toArray()
      .map(({ slot, dimensions, retired, labelled, proven, tried_at }) => ({
        slot,
        dimensions,
        retired: retired === 1,
        labelled: labelled === 1,
        proven: proven === 1,
        triedAt: tried_at ?? undefined,
      }))
  }

  /**
   * Notes that a field's vectors go to the index, and those that it has already.
   * @param labelled whether they have labels
   */
  adopt(slot: number, dimensions: number, labelled: boolean): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO vectorize_fields (slot, dimensions, retired, labelled) VALUES (?, ?, 0, ?)',
      slot,
      dimensions,
      Number(labelled),
    )
    this.markAll(slot)
  }

  /** Notes that all vectors of a field have other labels than they had, or none any more. */
  relabel(slot: number, labelled: boolean): void {
    this.#sql.exec('UPDATE vectorize_fields SET labelled = ? WHERE slot = ?', Number(labelled), slot)
    if (labelled) this.#markLabels(slot, fragment('1'))
  }

  /** Notes whether the index finds the field's vectors by their labels. @param triedAt when it did not */
  prove(slot: number, proven: boolean, triedAt: number | null = null): void {
    this.#sql.exec(
      'UPDATE vectorize_fields SET proven = ?, tried_at = ? WHERE slot = ?',
      Number(proven),
      triedAt,
      slot,
    )
  }

  /** The oldest documents whose vectors the index shows as they are, of those that are the oldest of all. */
  oldest(slot: number): number[] {
    return this.#sql
      .exec<{ seq: number }>(
        `SELECT v.seq FROM (SELECT seq FROM ${table(slot)} ORDER BY seq LIMIT 20) v
          WHERE NOT EXISTS (SELECT 1 FROM vector_outbox o WHERE o.slot = ? AND o.seq = v.seq) ORDER BY v.seq`,
        slot,
      )
      .toArray()
      .map(({ seq }) => seq)
  }

  /** Notes that a field is gone, and that all its vectors are to go. */
  retire(slot: number): void {
    this.#sql.exec('UPDATE vectorize_fields SET retired = 1 WHERE slot = ?', slot)
    this.markAll(slot)
  }

  /** Forgets a field. */
  forget(slot: number): void {
    for (const name of ['vectorize_fields', 'vector_outbox', 'vector_mutations']) {
      this.#sql.exec(`DELETE FROM ${name} WHERE slot = ?`, slot)
    }
  }

  mark(slot: number, seq: number): void {
    this.#sql.exec('INSERT OR REPLACE INTO vector_outbox (slot, seq) VALUES (?, ?)', slot, seq)
  }

  /** Notes that a document's labels have changed. Its vector may not have, or not be there. */
  markLabels(slot: number, seq: number): void {
    this.#markLabels(slot, fragment('seq = ?', seq))
  }

  #markLabels(slot: number, which: SqlFragment): void {
    this.#sql.exec(
      `INSERT INTO vector_outbox (slot, seq, relabelled) SELECT ?, seq, 1 FROM ${table(slot)} WHERE ${which.sql}
         ON CONFLICT (slot, seq) DO UPDATE SET mutation = 0`,
      slot,
      ...which.bindings,
    )
  }

  markAll(slot: number): void {
    this.#sql.exec(`INSERT OR REPLACE INTO vector_outbox (slot, seq) SELECT ?, seq FROM ${table(slot)}`, slot)
  }

  knows(slot: number): boolean {
    return this.#sql.exec('SELECT 1 FROM vectorize_fields WHERE slot = ?', slot).toArray().length > 0
  }

  has(slot: number, seq: number): boolean {
    return (
      this.#sql.exec('SELECT 1 FROM vector_outbox WHERE slot = ? AND seq = ?', slot, seq).toArray().length > 0
    )
  }

  /** Documents that a query of the index cannot be trusted with. @param byLabels the query has a filter */
  unseen(slot: number, filter: SqlFragment, byLabels: boolean): number[] {
    return this.#sql
      .exec<{ seq: number }>(
        `SELECT o.seq FROM vector_outbox o JOIN documents d ON d.seq = o.seq
          WHERE o.slot = ? AND o.relabelled <= ? AND (${filter.sql})`,
        slot,
        Number(byLabels),
        ...filter.bindings,
      )
      .toArray()
      .map(({ seq }) => seq)
  }

  /** Whether something is still to be sent. */
  get queued(): boolean {
    return this.#sql.exec('SELECT 1 FROM vector_outbox WHERE mutation = 0 LIMIT 1').toArray().length > 0
  }

  /** Documents of a field whose present state the index does not show. */
  count(slot: number): number {
    return this.#sql
      .exec<{ count: number }>('SELECT count(*) AS count FROM vector_outbox WHERE slot = ?', slot)
      .one().count
  }

  /** The next documents to send, those first that have failed least. */
  next(slot: number, count: number): number[] {
    return this.#sql
      .exec<{ seq: number }>(
        'SELECT seq FROM vector_outbox WHERE slot = ? AND mutation = 0 ORDER BY attempts LIMIT ?',
        slot,
        count,
      )
      .toArray()
      .map(({ seq }) => seq)
  }

  /** Notes that these are about to be sent. @returns the mutation's number */
  sending(slot: number, seqs: number[]): number {
    const { number } = this.#sql
      .exec<{ number: number }>('INSERT INTO vector_mutations (slot) VALUES (?) RETURNING number', slot)
      .one()
    this.#sql.exec(
      'UPDATE vector_outbox SET mutation = ? WHERE slot = ? AND seq IN (SELECT value FROM json_each(?))',
      number,
      slot,
      JSON.stringify(seqs),
    )
    return number
  }

  /** @param sentAt in unix milliseconds */
  sent(number: number, mutationId: string, sentAt: number): void {
    this.#sql.exec(
      'UPDATE vector_mutations SET mutation_id = ?, sent_at = ? WHERE number = ?',
      mutationId,
      sentAt,
      number,
    )
  }

  /** What was sent with this number has to be sent again. */
  failed(number: number): void {
    this.#sql.exec(
      'UPDATE vector_outbox SET mutation = 0, attempts = attempts + 1 WHERE mutation = ?',
      number,
    )
    this.#sql.exec('DELETE FROM vector_mutations WHERE number = ?', number)
  }

  /** Queues again what was being sent when the object died: it may have arrived or not. */
  recover(): void {
    this.#sql.exec(
      `UPDATE vector_outbox SET mutation = 0
         WHERE mutation IN (SELECT number FROM vector_mutations WHERE mutation_id IS NULL)`,
    )
    this.#sql.exec('DELETE FROM vector_mutations WHERE mutation_id IS NULL')
  }

  /** The index shows everything of this mutation. */
  visible(number: number): void {
    this.#sql.exec('DELETE FROM vector_outbox WHERE mutation = ?', number)
    this.#sql.exec('DELETE FROM vector_mutations WHERE number = ?', number)
  }

  /** The index has processed this mutation, and with it all that were sent before to these fields. */
  visibleUpTo(mutationId: string, slots: number[]): void {
    const earlier = this.#sql.exec<{ number: number }>(
      `SELECT number FROM vector_mutations
        WHERE mutation_id IS NOT NULL AND slot IN (SELECT value FROM json_each(?))
          AND number <= (SELECT number FROM vector_mutations WHERE mutation_id = ?)`,
      JSON.stringify(slots),
      mutationId,
    )
    for (const { number } of earlier.toArray()) this.visible(number)
  }

  /** The oldest mutations of a field that are awaited. */
  awaited(slot: number, count: number): Awaited[] {
    // A mutation without documents has been overtaken by later ones.
    this.#sql.exec(
      `DELETE FROM vector_mutations WHERE slot = ? AND mutation_id IS NOT NULL
         AND number NOT IN (SELECT mutation FROM vector_outbox WHERE slot = ?)`,
      slot,
      slot,
    )
    return this.#sql
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
