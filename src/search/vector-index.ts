/**
 * Exact nearest neighbours over a `vectors_<slot>` table.
 *
 * The rows are the truth: little-endian float32, a blob a document. Beside them a matrix of int8 is kept in
 * memory, loaded at the first search, a quarter of the size and quick to multiply: 10,000 vectors of 384
 * dimensions are 3.8 MB and take a few milliseconds. It chooses more candidates than are asked for, and those
 * are measured again with the rows, so that distances and their order are exact.
 */
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

/** @param distance how far two vectors are from each other: `vec_dist` of the field */
export function createVectorIndex(sql: SqlStorage, table: string, distance: 'cosine' | 'ip'): VectorIndex {
  return new ScannedIndex(sql, table, distance)
}

// The quantised order errs by a little, so enough more candidates are measured exactly.
const oversampled = (k: number): number => 4 * k + 100

const READ_BATCH = 500

class ScannedIndex implements VectorIndex {
  #sql: SqlStorage
  #table: string
  #distance: 'cosine' | 'ip'
  #matrix: Int8Matrix | undefined

  constructor(sql: SqlStorage, table: string, distance: 'cosine' | 'ip') {
    this.#sql = sql
    this.#table = table
    this.#distance = distance
  }

  put(seq: number, vector: Float32Array): void {
    this.#sql.exec(`INSERT OR REPLACE INTO ${this.#table} (seq, vector) VALUES (?, ?)`, seq, toBlob(vector))
    this.#matrix?.put(seq, vector)
  }

  remove(seq: number): void {
    this.#sql.exec(`DELETE FROM ${this.#table} WHERE seq = ?`, seq)
    this.#matrix?.remove(seq)
  }

  get(seq: number): Float32Array | undefined {
    const [row] = this.#sql
      .exec<{ vector: ArrayBuffer }>(`SELECT vector FROM ${this.#table} WHERE seq = ?`, seq)
      .toArray()
    return row && fromBlob(row.vector)
  }

  reset(): void {
    this.#matrix = undefined
  }

  get size(): number {
    return this.#matrix?.size ?? this.#count()
  }

  #count(): number {
    return this.#sql.exec<{ count: number }>(`SELECT count(*) AS count FROM ${this.#table}`).one().count
  }

  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Neighbour[] {
    if (k <= 0 || allowed?.size === 0) return []
    const sample = oversampled(k)
    const candidates =
      allowed !== undefined && allowed.size <= sample
        ? [...allowed]
        : this.#load().nearest(query, sample, this.#distance, allowed)
    return this.#measure(query, candidates).slice(0, k)
  }

  /** Exact distances of the candidates that have a vector, in order. */
  #measure(query: Float32Array, candidates: number[]): Neighbour[] {
    const neighbours: Neighbour[] = []
    const queryNorm = norm(query)
    for (let start = 0; start < candidates.length; start += READ_BATCH) {
      const rows = this.#sql.exec<{ seq: number; vector: ArrayBuffer }>(
        `SELECT seq, vector FROM ${this.#table} WHERE seq IN (SELECT value FROM json_each(?))`,
        JSON.stringify(candidates.slice(start, start + READ_BATCH)),
      )
      for (const { seq, vector } of rows) {
        neighbours.push({ seq, distance: this.#measureOne(query, queryNorm, fromBlob(vector)) })
      }
    }
    return neighbours.sort((a, b) => a.distance - b.distance || b.seq - a.seq)
  }

  #measureOne(query: Float32Array, queryNorm: number, vector: Float32Array): number {
    const product = dot(query, vector)
    if (this.#distance === 'ip') return 1 - product
    const norms = queryNorm * norm(vector)
    // A zero vector has no direction; it is as far as a perpendicular one.
    return norms === 0 ? 1 : Math.min(2, Math.max(0, 1 - product / norms))
  }

  #load(): Int8Matrix {
    if (this.#matrix !== undefined) return this.#matrix
    const matrix = new Int8Matrix(this.#count())
    const rows = this.#sql.exec<{ seq: number; vector: ArrayBuffer }>(
      `SELECT seq, vector FROM ${this.#table}`,
    )
    for (const { seq, vector } of rows) matrix.put(seq, fromBlob(vector))
    this.#matrix = matrix
    return matrix
  }
}

/** Vectors as int8, each scaled by its own largest component, in rows that are refilled when one goes. */
class Int8Matrix {
  #capacity: number
  #dimensions = 0
  #rows = new Int8Array(0)
  #seqs: Float64Array
  /** multiplied with an int8 product this gives the cosine, or for `ip` the inner product */
  #cosineScale: Float32Array
  #innerScale: Float32Array
  #rowOf = new Map<number, number>()

  constructor(capacity: number) {
    this.#capacity = Math.max(64, capacity)
    this.#seqs = new Float64Array(this.#capacity)
    this.#cosineScale = new Float32Array(this.#capacity)
    this.#innerScale = new Float32Array(this.#capacity)
  }

  get size(): number {
    return this.#rowOf.size
  }

  put(seq: number, vector: Float32Array): void {
    if (this.#dimensions === 0) {
      this.#dimensions = vector.length
      this.#rows = new Int8Array(this.#capacity * vector.length)
    }
    let row = this.#rowOf.get(seq)
    if (row === undefined) {
      row = this.#rowOf.size
      if (row === this.#capacity) this.#grow()
      this.#rowOf.set(seq, row)
      this.#seqs[row] = seq
    }
    const largest = vector.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
    const length = norm(vector)
    const step = largest / 127
    const start = row * this.#dimensions
    for (let i = 0; i < this.#dimensions; i++) {
      this.#rows[start + i] = step === 0 ? 0 : Math.round(vector[i]! / step)
    }
    this.#innerScale[row] = step
    this.#cosineScale[row] = length === 0 ? 0 : step / length
  }

  remove(seq: number): void {
    const row = this.#rowOf.get(seq)
    if (row === undefined) return
    this.#rowOf.delete(seq)
    const last = this.#rowOf.size
    if (row === last) return
    // The last row moves into the gap.
    const lastSeq = this.#seqs[last]!
    this.#rows.copyWithin(row * this.#dimensions, last * this.#dimensions, (last + 1) * this.#dimensions)
    this.#seqs[row] = lastSeq
    this.#cosineScale[row] = this.#cosineScale[last]!
    this.#innerScale[row] = this.#innerScale[last]!
    this.#rowOf.set(lastSeq, row)
  }

  #grow(): void {
    this.#capacity = Math.ceil(this.#capacity * 1.5)
    const larger = <T extends Int8Array | Float32Array | Float64Array>(old: T, made: T): T => {
      made.set(old)
      return made
    }
    this.#rows = larger(this.#rows, new Int8Array(this.#capacity * this.#dimensions))
    this.#seqs = larger(this.#seqs, new Float64Array(this.#capacity))
    this.#cosineScale = larger(this.#cosineScale, new Float32Array(this.#capacity))
    this.#innerScale = larger(this.#innerScale, new Float32Array(this.#capacity))
  }

  /** The `k` most similar rows' numbers, in no order. */
  nearest(
    query: Float32Array,
    k: number,
    distance: 'cosine' | 'ip',
    allowed: ReadonlySet<number> | undefined,
  ): number[] {
    const scales = distance === 'cosine' ? this.#cosineScale : this.#innerScale
    const dimensions = this.#dimensions
    const rows = this.#rows
    const largest = query.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
    const scaled = new Int8Array(dimensions)
    for (let i = 0; i < dimensions; i++) {
      scaled[i] = largest === 0 ? 0 : Math.round(((query[i] ?? 0) * 127) / largest)
    }
    const best = new BoundedHeap(Math.min(k, this.size))
    for (let row = 0; row < this.size; row++) {
      if (allowed !== undefined && !allowed.has(this.#seqs[row]!)) continue
      let product = 0
      const start = row * dimensions
      for (let i = 0; i < dimensions; i++) product += rows[start + i]! * scaled[i]!
      best.offer(product * scales[row]!, row)
    }
    return best.items().map((row) => this.#seqs[row]!)
  }
}

/** Keeps the items with the highest scores: a binary heap with the least of them on top. */
export class BoundedHeap {
  #limit: number
  #scores: number[] = []
  #items: number[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  offer(score: number, item: number): void {
    if (this.#items.length < this.#limit) {
      this.#scores.push(score)
      this.#items.push(item)
      this.#up(this.#items.length - 1)
    } else if (this.#limit > 0 && score > this.#scores[0]!) {
      this.#scores[0] = score
      this.#items[0] = item
      this.#down(0)
    }
  }

  items(): number[] {
    return this.#items
  }

  #up(start: number): void {
    for (let at = start; at > 0; ) {
      const parent = (at - 1) >> 1
      if (this.#scores[parent]! <= this.#scores[at]!) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #down(start: number): void {
    for (let at = start; ; ) {
      const left = 2 * at + 1
      if (left >= this.#items.length) return
      const right = left + 1
      const least = right < this.#items.length && this.#scores[right]! < this.#scores[left]! ? right : left
      if (this.#scores[at]! <= this.#scores[least]!) return
      this.#swap(at, least)
      at = least
    }
  }

  #swap(a: number, b: number): void {
    const score = this.#scores[a]!
    const item = this.#items[a]!
    this.#scores[a] = this.#scores[b]!
    this.#items[a] = this.#items[b]!
    this.#scores[b] = score
    this.#items[b] = item
  }
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) sum += a[i]! * b[i]!
  return sum
}

const norm = (vector: Float32Array): number => Math.sqrt(dot(vector, vector))

// Workers run on little-endian machines, so a float32 array's own bytes are what the table holds.
const toBlob = (vector: Float32Array): ArrayBuffer => vector.slice().buffer

const fromBlob = (blob: ArrayBuffer): Float32Array => new Float32Array(blob)
