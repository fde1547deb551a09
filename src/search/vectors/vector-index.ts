/**
 * Exact nearest neighbours over a `vectors_<slot>` table.
 *
 * The rows are the truth: little-endian float32, a blob a document. Beside them a matrix of int8 is kept in
 * memory, loaded at the first search, a quarter of the size and quick to multiply: 10,000 vectors of 384
 * dimensions are 3.8 MB and take a few milliseconds. It chooses more candidates than are asked for, and those
 * are measured again with the rows, so that distances and their order are exact. Where the matrix would take
 * too much memory the rows are read one after the other instead: slower, and as exact.
 */
import type { Condition } from '../filter/conditions'
import type { SqlFragment } from '../fragment'
import { MAX_MATRIX_BYTES } from '../limits'
import { type FieldSlot, type StoredSchema, vectorsTable } from '../schema/layout'
import type { Field } from '../types'
import { Int8Matrix, matrixBytes } from './int8-matrix'
import { cosineDistance, dot, fromBlob, norm, toBlob } from './vector-math'

export interface Neighbour {
  seq: number
  /** cosine distance 0..2, or the inner product's complement for vec_dist ip */
  distance: number
}

/** Documents among which the nearest are, found outside of the object. */
export type Candidates = ReadonlySet<number>

/** How many neighbours are looked for. */
export interface Wanted {
  /** how many at most */
  k: number
  /** how many will do, where finding `k` takes long */
  enough: number
}

/** Which documents are searched. */
export interface Restriction {
  /** those, exactly; `1` for all */
  filter: SqlFragment
  /** what all of them meet, as far as it can be said simply */
  conditions(): Condition[]
}

export interface VectorIndex {
  /** Stores a document's vector, in the table and in memory. */
  put(seq: number, vector: Float32Array): void
  remove(seq: number): void
  /** Removes every vector. */
  clear(): void
  has(seq: number): boolean
  get(seq: number): Float32Array | undefined
  /** @param allowed restricts the candidates @returns nearest first, ties by age, newest first */
  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Neighbour[]
  /**
   * Finds out, with a wait, among which documents the nearest are, where the index lies outside of the object.
   * @returns undefined: among all that pass the filter
   * @throws VectorsUnavailable
   */
  seek?(query: Float32Array, wanted: Wanted, among: Restriction): Promise<Candidates | undefined>
  readonly size: number
  /** Bytes of memory that this many vectors take or may take; 0 where they lie elsewhere. */
  memory(vectors: number): number
}

/** The index lies outside, does not answer, and is too large to be searched without it. */
export class VectorsUnavailable extends Error {
  override readonly name = 'VectorsUnavailable'
}

/** Where the indexes of vector fields come from. */
export interface VectorIndexes {
  /** Makes the index of a field, whose table is there. */
  index(field: Field, slot: FieldSlot): VectorIndex
  /** The vectors of a slot are not asked for any more. Their table is still there, and the caller's to drop. */
  retire(slot: number): void
  /** Learns of the fields that documents can be filtered by. Belongs in the transaction that changes the schema. */
  describe(schema: StoredSchema): void
  /** Calls `write`, which changes what a document can be filtered by. */
  rewrite(seq: number, write: () => void): void
}

/** An index that lies in the object alone. */
export const embeddedIndex = (sql: SqlStorage, field: Field, slot: FieldSlot): VectorIndex =>
  new ScannedIndex(sql, vectorsTable(slot), {
    distance: field.vec_dist ?? 'cosine',
    dimensions: field.num_dim as number,
    matrixBytes: MAX_MATRIX_BYTES,
  })

export const embeddedIndexes = (sql: SqlStorage): VectorIndexes => ({
  index: (field, slot) => embeddedIndex(sql, field, slot),
  retire() {},
  describe() {},
  rewrite: (_, write) => write(),
})

// The quantised order errs by a little, so enough more candidates are measured exactly.
const oversampled = (k: number): number => 4 * k + 100

const READ_BATCH = 500

export interface Measure {
  /** how far two vectors are from each other: `vec_dist` of the field */
  distance: 'cosine' | 'ip'
  dimensions: number
  /** the largest matrix that may be held in memory, in bytes */
  matrixBytes: number
}

export class ScannedIndex implements VectorIndex {
  #sql: SqlStorage
  #table: string
  #measure: Measure
  #matrix: Int8Matrix | undefined
  /** counting the rows of a large table takes as long as a search */
  #size: number | undefined

  constructor(sql: SqlStorage, table: string, measure: Measure) {
    this.#sql = sql
    this.#table = table
    this.#measure = measure
  }

  put(seq: number, vector: Float32Array): void {
    const added = this.has(seq) ? 0 : 1
    const size = this.size
    this.#sql.exec(`INSERT OR REPLACE INTO ${this.#table} (seq, vector) VALUES (?, ?)`, seq, toBlob(vector))
    this.#matrix?.put(seq, vector)
    this.#size = size + added
  }

  remove(seq: number): void {
    if (!this.has(seq)) return
    const size = this.size
    this.#sql.exec(`DELETE FROM ${this.#table} WHERE seq = ?`, seq)
    this.#matrix?.remove(seq)
    this.#size = size - 1
  }

  clear(): void {
    this.#sql.exec(`DELETE FROM ${this.#table}`)
    this.#forget()
  }

  has(seq: number): boolean {
    return this.#sql.exec(`SELECT 1 FROM ${this.#table} WHERE seq = ?`, seq).toArray().length > 0
  }

  get(seq: number): Float32Array | undefined {
    const [row] = this.#sql
      .exec<{ vector: ArrayBuffer }>(`SELECT vector FROM ${this.#table} WHERE seq = ?`, seq)
      .toArray()
    return row && fromBlob(row.vector)
  }

  #forget(): void {
    this.#matrix = undefined
    this.#size = undefined
  }

  get size(): number {
    this.#size ??= this.#sql
      .exec<{ count: number }>(`SELECT count(*) AS count FROM ${this.#table}`)
      .one().count
    return this.#size
  }

  memory(vectors: number): number {
    return matrixBytes(vectors, this.#measure.dimensions)
  }

  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Neighbour[] {
    if (k <= 0 || allowed?.size === 0) return []
    const sample = oversampled(k)
    const fits = this.memory(this.size) <= this.#measure.matrixBytes
    if (allowed !== undefined && (allowed.size <= sample || !fits)) {
      return this.#measured(query, [...allowed]).slice(0, k)
    }
    if (!fits) return this.#scanned(query, k)
    const candidates = this.#load().nearest(query, sample, this.#measure.distance, allowed)
    return this.#measured(query, candidates).slice(0, k)
  }

  /** Exact distances of the candidates that have a vector, in order. */
  #measured(query: Float32Array, candidates: number[]): Neighbour[] {
    const neighbours: Neighbour[] = []
    const distance = this.#distanceTo(query)
    for (let start = 0; start < candidates.length; start += READ_BATCH) {
      const rows = this.#sql.exec<{ seq: number; vector: ArrayBuffer }>(
        `SELECT seq, vector FROM ${this.#table} WHERE seq IN (SELECT value FROM json_each(?))`,
        JSON.stringify(candidates.slice(start, start + READ_BATCH)),
      )
      for (const { seq, vector } of rows) neighbours.push({ seq, distance: distance(fromBlob(vector)) })
    }
    return neighbours.sort(byDistance)
  }

  /** The nearest of all rows, read one after the other. */
  #scanned(query: Float32Array, k: number): Neighbour[] {
    const distance = this.#distanceTo(query)
    let best: Neighbour[] = []
    for (const { seq, vector } of this.#rows()) {
      best.push({ seq, distance: distance(fromBlob(vector)) })
      if (best.length >= 2 * k + READ_BATCH) best = best.sort(byDistance).slice(0, k)
    }
    return best.sort(byDistance).slice(0, k)
  }

  #distanceTo(query: Float32Array): (vector: Float32Array) => number {
    if (this.#measure.distance === 'ip') return (vector) => 1 - dot(query, vector)
    const queryNorm = norm(query)
    return (vector) => cosineDistance(query, queryNorm, vector)
  }

  #load(): Int8Matrix {
    if (this.#matrix !== undefined) return this.#matrix
    const matrix = new Int8Matrix()
    for (const { seq, vector } of this.#rows()) matrix.put(seq, fromBlob(vector))
    this.#matrix = matrix
    return matrix
  }

  #rows() {
    return this.#sql.exec<{ seq: number; vector: ArrayBuffer }>(`SELECT seq, vector FROM ${this.#table}`)
  }
}

/** Nearest first, the newest first among equals. */
export const byDistance = (a: Neighbour, b: Neighbour): number => a.distance - b.distance || b.seq - a.seq
