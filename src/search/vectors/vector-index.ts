/**
 * Exact nearest neighbours over a `vectors_<slot>` table.
 *
 * The rows are the truth: little-endian float32, one blob a document. An int8 matrix in memory, loaded at the first
 * search, has a quarter of the size and multiplies fast: 10,000 vectors of 384 dimensions take 3.8 MB and a few
 * milliseconds. It yields more candidates than asked for. Those are measured again from the rows, so distances and
 * order are exact. If the matrix would take too much memory, the rows are read one by one: slower, and equally exact.
 */
import type { Condition } from '../filter/conditions'
import type { SqlFragment } from '../fragment'
import { MAX_MATRIX_BYTES } from '../limits'
import { MemoryBudget } from '../memory-budget'
import { type FieldSlot, type StoredSchema, vectorsTable } from '../schema/layout'
import type { Field, VectorDistance } from '../types'
import { Int8Matrix, matrixBytes } from './int8-matrix'
import { cosineDistance, dot, fromBlob, norm, squaredDistance, toBlob } from './vector-math'

export interface Neighbour {
  seq: number
  /** cosine distance 0..2; for `ip` 1 minus the inner product; for `l2` the squared Euclidean distance */
  distance: number
}

/** Documents that include the nearest ones, found by an outside index. */
export type Candidates = ReadonlySet<number>

/** How many neighbours to look for. */
export interface Wanted {
  /** at most */
  k: number
  /** if finding `k` takes long, this many are enough */
  enough: number
}

/** Which documents are searched. */
export interface Restriction {
  /** the exact condition; `1` for all documents */
  filter: SqlFragment
  /** conditions that all of these documents meet, for an index that takes no SQL */
  conditions(): Condition[]
}

/** Takes an error for the log. */
export type Report = (error: unknown) => void

export interface VectorIndex {
  /** Stores a document's vector, in the table and in memory. */
  put(seq: number, vector: Float32Array): void
  remove(seq: number): void
  /** Removes every vector. */
  clear(): void
  has(seq: number): boolean
  get(seq: number): Float32Array | undefined
  /**
   * Loads some of what `nearest` needs into memory, so that others can be served in between.
   * @returns rows that were read, 0 if nothing is missing. Absent where nothing is loaded
   */
  load?(): number
  /** @param allowed restricts the candidates @returns nearest first; among equals, newest first */
  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Neighbour[]
  /**
   * Asks an outside index which documents may be the nearest. Absent where the index is in the object.
   * @param report gets what an outside index refuses or fails with, even if the search succeeds without it
   * @returns undefined: all that pass the filter
   * @throws VectorsUnavailable
   */
  seek?(
    query: Float32Array,
    wanted: Wanted,
    among: Restriction,
    report: Report,
  ): Promise<Candidates | undefined>
  readonly size: number
  /** Bytes of memory that this many vectors take; 0 for an outside index. */
  memory(vectors: number): number
}

/** The outside index does not answer, and the field is too large to be searched without it. */
export class VectorsUnavailable extends Error {
  override readonly name = 'VectorsUnavailable'
}

/** Creates the indexes of vector fields. */
export interface VectorIndexes {
  /** Opens the index of a field. Its table exists. */
  index(field: Field, slot: FieldSlot): VectorIndex
  /** The vectors of a slot are not needed any more. The caller drops the table. */
  retire(slot: number): void
  /** Learns which fields documents can be filtered by. Belongs in the transaction that changes the schema. */
  describe(schema: StoredSchema): void
  /** Runs `write`, which changes values that documents can be filtered by. */
  rewrite(seq: number, write: () => void): void
}

/** An index that is only in the object. */
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

// The order by quantised vectors is slightly off, so this many candidates are measured exactly. On MTRAG, 1.2 k + 20 already
// find the same neighbours.
const oversampled = (k: number): number => 2 * k + 100

const READ_BATCH = 500
/** Rows that are loaded into memory between rests. */
const LOADED_AT_ONCE = 2_000

/** of this isolate */
const matrices = new MemoryBudget(MAX_MATRIX_BYTES)

export interface Measure {
  /** `vec_dist` of the field */
  distance: VectorDistance
  dimensions: number
  /** the largest matrix to hold in memory, in bytes */
  matrixBytes: number
}

export class ScannedIndex implements VectorIndex {
  #sql: SqlStorage
  #table: string
  #measure: Measure
  #budget: MemoryBudget
  #matrix: Int8Matrix | undefined
  /** a matrix of the rows up to `last`, while it is loaded */
  #loading: { matrix: Int8Matrix; last: number } | undefined
  /** cached: counting the rows of a large table takes as long as a search */
  #size: number | undefined

  /** @param budget that all matrices share */
  constructor(sql: SqlStorage, table: string, measure: Measure, budget = matrices) {
    this.#sql = sql
    this.#table = table
    this.#measure = measure
    this.#budget = budget
  }

  put(seq: number, vector: Float32Array): void {
    const added = this.has(seq) ? 0 : 1
    const size = this.size
    this.#sql.exec(`INSERT OR REPLACE INTO ${this.#table} (seq, vector) VALUES (?, ?)`, seq, toBlob(vector))
    if (this.#matrix !== undefined) this.#budget.use(this, this.memory(size + added))
    const matrix = this.#matrix ?? this.#loading?.matrix
    matrix?.put(seq, vector)
    this.#size = size + added
  }

  remove(seq: number): void {
    if (!this.has(seq)) return
    const size = this.size
    this.#sql.exec(`DELETE FROM ${this.#table} WHERE seq = ?`, seq)
    this.#matrix?.remove(seq)
    this.#loading?.matrix.remove(seq)
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

  /** Frees memory. The next search loads the matrix again. */
  evict(): void {
    this.#matrix = undefined
  }

  #forget(): void {
    this.evict()
    this.#loading = undefined
    this.#budget.release(this)
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
    const candidates = this.#loaded().nearest(query, sample, this.#measure.distance, allowed)
    return this.#measured(query, candidates).slice(0, k)
  }

  /** Exact distances of the candidates that have a vector, nearest first. */
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

  /** The nearest of all rows, read one by one. */
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
    if (this.#measure.distance === 'l2') return (vector) => squaredDistance(query, vector)
    const queryNorm = norm(query)
    return (vector) => cosineDistance(query, queryNorm, vector)
  }

  load(): number {
    if (this.#matrix !== undefined) {
      this.#budget.use(this, this.memory(this.size))
      return 0
    }
    if (this.memory(this.size) > this.#measure.matrixBytes) return 0
    this.#loading ??= {
      matrix: new Int8Matrix(this.#measure.distance === 'l2' ? this.#mean() : undefined),
      last: Number.MIN_SAFE_INTEGER,
    }
    const { matrix, last } = this.#loading
    const rows = this.#sql.exec<{ seq: number; vector: ArrayBuffer }>(
      `SELECT seq, vector FROM ${this.#table} WHERE seq > ? ORDER BY seq LIMIT ${LOADED_AT_ONCE}`,
      last,
    )
    let read = 0
    for (const { seq, vector } of rows) {
      matrix.put(seq, fromBlob(vector))
      this.#loading.last = seq
      read++
    }
    if (read === LOADED_AT_ONCE) return read
    // Not before: two that are loaded in turns would evict each other for ever.
    this.#budget.use(this, this.memory(this.size))
    this.#matrix = matrix
    this.#loading = undefined
    return 0
  }

  #loaded(): Int8Matrix {
    for (let read = 1; read > 0; ) read = this.load()
    return this.#matrix!
  }

  #mean(): Float32Array {
    const sums = new Float64Array(this.#measure.dimensions)
    let count = 0
    for (const { vector } of this.#rows()) {
      for (const [at, value] of fromBlob(vector).entries()) sums[at]! += value
      count++
    }
    return Float32Array.from(sums, (sum) => (count === 0 ? 0 : sum / count))
  }

  #rows() {
    return this.#sql.exec<{ seq: number; vector: ArrayBuffer }>(`SELECT seq, vector FROM ${this.#table}`)
  }
}

/** Nearest first; among equals, newest first. */
export const byDistance = (a: Neighbour, b: Neighbour): number => a.distance - b.distance || b.seq - a.seq
