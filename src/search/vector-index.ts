/** (written by the search part: exact nearest neighbours over a vectors_<slot> table) */
export interface Neighbour {
  seq: number
  /** cosine distance 0..2, or the inner product's complement for vec_dist ip */
  distance: number
}

export interface VectorIndex {
  /** Stores a document's vector, in the table and in memory. */
  put(seq: number, vector: Float32Array): void
  remove(seq: number): void
  get(seq: number): Float32Array | undefined
  /** Forgets what is in memory: after a transaction was rolled back. */
  reset(): void
  /** @param allowed restricts the candidates @returns nearest first, ties by age, newest first */
  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Neighbour[]
  readonly size: number
}
