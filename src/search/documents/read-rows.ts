/** Reads the rows of documents. What is still buffered is not in them: the store writes its buffer first. */
import { readExactObject } from '../../lib/stored-json'
import type { Document } from '../types'

/** Sequence numbers of documents, by id. Missing ones are left out. */
export function findRows(sql: SqlStorage, ids: readonly string[]): Map<string, number> {
  const rows = sql.exec<{ id: string; seq: number }>(
    'SELECT id, seq FROM documents WHERE id IN (SELECT value FROM json_each(?))',
    JSON.stringify(ids),
  )
  return new Map(rows.toArray().map(({ id, seq }) => [id, seq]))
}

/** Documents as they are stored, in order of insertion. Missing ones are left out. */
export const readBodies = (sql: SqlStorage, seqs: readonly number[]): [seq: number, body: string][] =>
  sql
    .exec<{ seq: number; body: string }>(
      'SELECT seq, body FROM documents WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq',
      JSON.stringify(seqs),
    )
    .toArray()
    .map(({ seq, body }) => [seq, body])

/** Gives documents the values that are indexed and not stored with them. */
export function restoreUnstored(sql: SqlStorage, documents: ReadonlyMap<number, Document>): void {
  const rows = sql.exec<{ seq: number; body: string }>(
    'SELECT seq, body FROM unstored WHERE seq IN (SELECT value FROM json_each(?))',
    JSON.stringify([...documents.keys()]),
  )
  for (const { seq, body } of rows.toArray()) Object.assign(documents.get(seq)!, readExactObject(body))
}
