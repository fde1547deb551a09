/** A vector with its labels: as it is to be in Vectorize, or as Vectorize shows it. */
import { fromBlob, isSameDirection, norm } from '../vector-math'
import { type Labels, readLabels, sameLabels } from './labels'

export interface Kept {
  vector: Float32Array
  /** undefined in a collection that has nothing to filter by */
  labels: Labels | undefined
}

/**
 * Vectors as they are to be in Vectorize, by sequence number. One of zeros has no direction and is left out: cosine
 * has no place for it.
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

/** Whether Vectorize shows what it should: a vector with its labels, or none. */
export function agree(wanted: Kept | undefined, shown: Kept | undefined): boolean {
  if (wanted === undefined || shown === undefined) return wanted === shown
  if (wanted.labels !== undefined && !sameLabels(wanted.labels, shown.labels ?? {})) return false
  return isSameDirection(wanted.vector, shown.vector)
}
