/**
 * Records which documents analytics rules have made from queries. Beyond its limit, a rule deletes the rarest of its
 * own documents. Typesense deletes any documents of the destination; here documents that were loaded, or that another
 * rule keeps, stay.
 */
import type { Store } from '../search/documents/store'

/** Documents deleted in one step. */
const TRIMMED = 200

export class KeptQueries {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Selects the documents that rules have made. */
  made(seqs: Iterable<number>): Set<number> {
    const rows = this.#store.sql.exec<{ seq: number }>(
      'SELECT DISTINCT seq FROM analytics_documents WHERE seq IN (SELECT value FROM json_each(?))',
      JSON.stringify([...seqs]),
    )
    return new Set(rows.toArray().map(({ seq }) => seq))
  }

  keep(rule: string, seq: number): void {
    this.#store.sql.exec('INSERT OR IGNORE INTO analytics_documents (seq, rule) VALUES (?, ?)', seq, rule)
  }

  /** Deletes some of a rule's documents beyond the most frequent ones. @returns whether all are deleted */
  trim(rule: string, most: number): boolean {
    const { sql } = this.#store
    // Documents that somebody deleted sort last.
    const rare = sql
      .exec<{ seq: number; id: string | null }>(
        `SELECT kept.seq, id FROM analytics_documents AS kept LEFT JOIN documents ON documents.seq = kept.seq
          WHERE rule = ? ORDER BY body->>'$.count' DESC, kept.seq DESC LIMIT ? OFFSET ?`,
        rule,
        TRIMMED,
        most,
      )
      .toArray()
    for (const { seq, id } of rare) {
      sql.exec('DELETE FROM analytics_documents WHERE seq = ? AND rule = ?', seq, rule)
      if (id !== null && this.made([seq]).size === 0) this.#store.remove(seq, id)
    }
    return rare.length < TRIMMED
  }
}
