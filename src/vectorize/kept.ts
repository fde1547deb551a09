/** A vector and its labels, as Vectorize should have them or as it shows them. */
import { fromBlob, isSameDirection, norm } from '../search/vectors/vector-math'
import { type Labels, readLabels, sameLabels } from './labels'

export interface Kept {
  vector: Float32Array
  /** undefined in a collection without fields to filter by */
  labels: Labels | undefined
}

/**
 * Vectors as Vectorize should have them, by sequence number. A zero vector has no direction, and a cosine index
 * cannot hold it.
 */
export function readKept(sql: SqlStorage, slot: number, seqs: number[]): Map<number, Kept> {
  const labels = readLabels(sql, seqs)
  const rows = sql.exec<{ seq: number; vector: ArrayBuffer }>(
    `SELECT seq, vector FROM vectors_${slot} WHERE seq IN (SELECT value FROM json_each(?))`,
    JSON.stringify(seqs),
  )
  const kept = new Map<number, Kept>()
  for (const row of rows) {
    const vector = fromBlob(row.vector)
    if (norm(vector) > 0) kept.set(row.seq, { vector, labels: labels.get(row.seq) })
  }
  return kept
}

/** Whether Vectorize shows what it should: the vector with its labels, or nothing. */
export function agree(wanted: Kept | undefined, shown: Kept | undefined): boolean {
  if (wanted === undefined || shown === undefined) return wanted === shown
  if (wanted.labels !== undefined && !sameLabels(wanted.labels, shown.labels ?? {})) return false
  return isSameDirection(wanted.vector, shown.vector)
}
