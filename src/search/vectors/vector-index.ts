/**
 * Exact nearest neighbours of a field's vectors.
 *
 * The rows of `vectors_<slot>` are the truth: little-endian float32, one blob a document. `packed_<slot>` has the same as int8,
 * up to 256 vectors in a row, a quarter of the size: 10,000 vectors are 40 rows. A search reads these rows, or finds them in
 * memory, and has more candidates than asked for. Those are measured again from the vectors themselves, so distances and order
 * are exact.
 */

import { hasRows, type SqlFragment } from '../fragment'
import { Kept, type Memory } from '../memory'
import { type FieldSlot, packedTable, vectorsTable } from '../schema/layout'
import { atOnce, type Steps } from '../steps'
import type { Field } from '../types'
import {
  BoundedHeap,
  cosineDistance,
  dot,
  fromBlob,
  type Measure,
  norm,
  PackedVectors,
  Query,
  spanOf,
  squaredDistance,
  toBlob,
  vectorBytes,
} from './packed-vectors'

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

/** Takes an error for the log. */
export type Report = (error: unknown) => void

export interface VectorIndex {
  /** Stores a document's vector. Call `flush` at the end of the transaction. */
  put(seq: number, vector: Float32Array): void
  remove(seq: number): void
  /** Packs what was put and removed. */
  flush(): void
  /** Forgets what is in memory, after a rollback. */
  reset(): void
  /** Removes every vector. */
  clear(): void
  has(seq: number): boolean
  get(seq: number): Float32Array | undefined
  /** @param allowed restricts the candidates @returns nearest first; among equals, newest first */
  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Neighbour[]
  /** The same in steps, so that others can be served in between. */
  search(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Steps<Neighbour[]>
  /**
   * Asks an outside index which documents may be the nearest. Absent where the index is in the object.
   * @param filter of the documents that are searched; `1` for all
   * @param report gets what an outside index refuses or fails with, even if the search succeeds without it
   * @returns undefined: all that pass the filter
   * @throws VectorsUnavailable
   */
  seek?(
    query: Float32Array,
    wanted: Wanted,
    filter: SqlFragment,
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
}

/** An index that is only in the object. */
export const embeddedIndex = (sql: SqlStorage, field: Field, slot: FieldSlot): ScannedIndex =>
  new ScannedIndex(sql, slot, {
    distance: field.vec_dist ?? 'cosine',
    dimensions: field.num_dim as number,
  })

export const embeddedIndexes = (sql: SqlStorage): VectorIndexes => ({
  index: (field, slot) => embeddedIndex(sql, field, slot),
  retire() {},
})

/** As many candidates are kept, and as many more than asked for are measured at least: the order by int8 is slightly off. */
const oversampled = (k: number): number => 2 * k + 100
const MORE = 20

const READ_BATCH = 500
/** Bytes of vectors that take as long as to read a row: to read them, and to compare those that are in memory. */
const [READ_A_ROW, COMPARED_A_ROW] = [512, 2_048]
/** To compare a block takes as long as to measure so many vectors, whether it is in memory or has to be read. */
const [KEPT_BLOCK, READ_BLOCK] = [3, 16]

export class ScannedIndex implements VectorIndex {
  readonly #vectors: string
  readonly #packed: string
  /** sequence numbers of a block */
  readonly #span: number
  /** by the number of a block */
  readonly #blocks: Kept<number, PackedVectors>
  /** the numbers of all blocks in order, once a search has read them */
  #numbers: number[] | undefined
  /** the search that reads them now */
  #listing: object | undefined
  /** what is not packed yet */
  #changes = new Map<number, Float32Array | null>()
  /** cached: counting the rows of a large table takes as long as a search */
  #size: number | undefined

  constructor(
    protected readonly sql: SqlStorage,
    slot: FieldSlot,
    private readonly measure: Measure,
    memory?: Memory,
  ) {
    this.#vectors = vectorsTable(slot)
    this.#packed = packedTable(slot)
    this.#span = spanOf(measure)
    this.#blocks = new Kept(memory)
  }

  put(seq: number, vector: Float32Array): void {
    const added = this.has(seq) ? 0 : 1
    const size = this.size
    this.sql.exec(`INSERT OR REPLACE INTO ${this.#vectors} (seq, vector) VALUES (?, ?)`, seq, toBlob(vector))
    this.#changes.set(seq, vector)
    this.#size = size + added
  }

  remove(seq: number): void {
    if (!this.has(seq)) return
    const size = this.size
    this.sql.exec(`DELETE FROM ${this.#vectors} WHERE seq = ?`, seq)
    this.#changes.set(seq, null)
    this.#size = size - 1
  }

  flush(): void {
    if (this.#changes.size === 0) return
    const byBlock = Map.groupBy(this.#changes, ([seq]) => Math.floor(seq / this.#span))
    this.#changes = new Map()
    for (const [number, changes] of byBlock) {
      const before = this.#read(number)
      const first = number * this.#span
      const block = PackedVectors.with(before, first, new Map(changes), this.measure)
      if (block === undefined) {
        this.sql.exec(`DELETE FROM ${this.#packed} WHERE seq = ?`, first)
        this.#blocks.delete(number)
      } else {
        this.sql.exec(
          `INSERT OR REPLACE INTO ${this.#packed} (seq, count, vectors) VALUES (?, ?, ?)`,
          first,
          block.count,
          block.bytes,
        )
        if (this.#blocks.has(number)) this.#keep(number, block)
      }
      // They are listed again.
      if ((before === undefined) !== (block === undefined)) this.#numbers = this.#listing = undefined
    }
  }

  /** Packs all vectors anew from their rows, a batch at a time. */
  repack(): void {
    for (let after = -1; ; ) {
      const rows = this.sql
        .exec<{ seq: number; vector: ArrayBuffer }>(
          `SELECT seq, vector FROM ${this.#vectors} WHERE seq > ? ORDER BY seq LIMIT ${READ_BATCH}`,
          after,
        )
        .toArray()
      const last = rows.at(-1)
      if (last === undefined) return
      for (const { seq, vector } of rows) this.#changes.set(seq, fromBlob(vector))
      this.flush()
      after = last.seq
    }
  }

  clear(): void {
    this.reset()
    this.sql.exec(`DELETE FROM ${this.#vectors}`)
    this.sql.exec(`DELETE FROM ${this.#packed}`)
  }

  reset(): void {
    this.#blocks.clear()
    this.#numbers = this.#listing = undefined
    this.#changes.clear()
    this.#size = undefined
  }

  has(seq: number): boolean {
    return hasRows(this.sql, `SELECT 1 FROM ${this.#vectors} WHERE seq = ?`, seq)
  }

  get(seq: number): Float32Array | undefined {
    const [row] = this.sql
      .exec<{ vector: ArrayBuffer }>(`SELECT vector FROM ${this.#vectors} WHERE seq = ?`, seq)
      .toArray()
    return row && fromBlob(row.vector)
  }

  get size(): number {
    if (this.#size === undefined) {
      this.flush()
      this.#size = this.sql
        .exec<{ count: number }>(`SELECT total(count) AS count FROM ${this.#packed}`)
        .one().count
    }
    return this.#size
  }

  memory(vectors: number): number {
    return vectorBytes(vectors, this.measure.dimensions)
  }

  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Neighbour[] {
    return atOnce(this.search(query, k, allowed))
  }

  *search(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Steps<Neighbour[]> {
    if (k <= 0 || allowed?.size === 0) return []
    this.flush()
    const sample = oversampled(k)
    const wanted = allowed && [...new Set(Array.from(allowed, (seq) => Math.floor(seq / this.#span)))]
    if (allowed !== undefined && allowed.size <= Math.max(sample, this.#costOf(wanted!))) {
      return (yield* this.#measured(query, [...allowed])).slice(0, k)
    }
    const best = new BoundedHeap(sample)
    const packed = new Query(query, this.measure)
    for (const { block, isRead } of this.#all(wanted)) {
      block.offer(packed, best, allowed)
      const { byteLength } = block.bytes
      yield byteLength / COMPARED_A_ROW + (isRead ? byteLength / READ_A_ROW : 0)
    }
    return (yield* this.#measured(query, best.likely(k, MORE))).slice(0, k)
  }

  /** How many vectors are measured in the time that it takes to compare these blocks. */
  #costOf(numbers: readonly number[]): number {
    return numbers.reduce((sum, number) => sum + (this.#blocks.has(number) ? KEPT_BLOCK : READ_BLOCK), 0)
  }

  /** All blocks in order. @param wanted the numbers of those that are needed; undefined for all */
  *#all(wanted: readonly number[] | undefined): Generator<{ block: PackedVectors; isRead: boolean }> {
    const numbers = wanted ?? this.#numbers
    if (numbers === undefined) return yield* this.#walk()
    for (const number of numbers) {
      const known = this.#blocks.get(number)
      const block = known ?? this.#read(number)
      if (block === undefined) continue
      if (known === undefined) this.#keep(number, block)
      yield { block, isRead: known === undefined }
    }
  }

  /** Reads all blocks. Then they are listed. */
  *#walk(): Generator<{ block: PackedVectors; isRead: true }> {
    const numbers: number[] = []
    const listing = {}
    this.#listing = listing
    for (let after = -1; ; ) {
      const block = this.#readWhere('seq > ? ORDER BY seq LIMIT 1', after)
      if (block === undefined) break
      const number = block.first / this.#span
      numbers.push(number)
      this.#keep(number, block)
      after = block.first
      yield { block, isRead: true }
    }
    if (this.#listing === listing) this.#numbers = numbers
  }

  #read(number: number): PackedVectors | undefined {
    return this.#readWhere('seq = ?', number * this.#span)
  }

  #readWhere(condition: string, seq: number): PackedVectors | undefined {
    const [row] = this.sql
      .exec<{ seq: number; vectors: ArrayBuffer }>(
        `SELECT seq, vectors FROM ${this.#packed} WHERE ${condition}`,
        seq,
      )
      .toArray()
    return row && new PackedVectors(row.seq, row.vectors, this.measure)
  }

  #keep(number: number, block: PackedVectors): void {
    this.#blocks.set(number, block, block.bytes.byteLength)
  }

  /** Exact distances of the candidates that have a vector, nearest first. */
  *#measured(query: Float32Array, candidates: number[]): Steps<Neighbour[]> {
    const neighbours: Neighbour[] = []
    const distance = this.#distanceTo(query)
    for (let start = 0; start < candidates.length; start += READ_BATCH) {
      const some = candidates.slice(start, start + READ_BATCH)
      // One by one: with a list, SQLite reads three rows for each.
      for (const seq of some) {
        const vector = this.get(seq)
        if (vector !== undefined) neighbours.push({ seq, distance: distance(vector) })
      }
      yield (some.length * query.byteLength) / READ_A_ROW
    }
    return neighbours.sort(byDistance)
  }

  #distanceTo(query: Float32Array): (vector: Float32Array) => number {
    if (this.measure.distance === 'ip') return (vector) => 1 - dot(query, vector)
    if (this.measure.distance === 'l2') return (vector) => squaredDistance(query, vector)
    const queryNorm = norm(query)
    return (vector) => cosineDistance(query, queryNorm, vector)
  }
}

/** Nearest first; among equals, newest first. */
export const byDistance = (a: Neighbour, b: Neighbour): number => a.distance - b.distance || b.seq - a.seq
