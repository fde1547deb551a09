/**
 * A vector field whose vectors are in Vectorize too.
 *
 * The rows of `vectors_<slot>` stay the truth. Vectorize only says among which documents the nearest are; their
 * distances are measured with the rows, so neither approximate scores nor a vector that has changed since can be
 * seen in a result. Documents that Vectorize does not show yet are candidates without being asked for.
 *
 * A small collection, or a filter that leaves few documents, is searched in the object: that is exact, and done
 * before Vectorize could have answered.
 */
import { fragment, type SqlFragment } from '../fragment'
import { vectorsTable } from '../layout'
import {
  byDistance,
  type Candidates,
  type Neighbour,
  ScannedIndex,
  type VectorIndex,
  VectorsUnavailable,
} from '../vector-index'
import { MAX_TOP_K } from './binding'
import type { VectorOutbox } from './outbox'

/** Vectors of this many bytes as int8 are searched here. They are kept in memory, or read in some 30 ms. */
const EXACT_BYTES = 5 << 20
/** Vectors of this many bytes are rather read, in a tenth of a second, than that a neighbour is missing. */
const COMPLETE_BYTES = 20 << 20
/** Vectors of this many bytes as int8 are read one after the other when Vectorize cannot say: half a second. */
const SCAN_BYTES = 100 << 20
/** Vectors that are read before others get their turn: 6 ms of 1024 dimensions. */
const SCAN_STEP = 1_000

/** Asks Vectorize for the documents of the nearest vectors. */
export type Ask = (query: Float32Array) => Promise<number[]>

export class VectorizeIndex implements VectorIndex {
  #sql: SqlStorage
  #slot: number
  #rows: ScannedIndex
  #outbox: VectorOutbox
  #ask: Ask
  #onChange: () => void

  /** @param onChange there is something to send */
  constructor(
    sql: SqlStorage,
    field: { slot: number; dimensions: number },
    outbox: VectorOutbox,
    ask: Ask,
    onChange: () => void,
  ) {
    this.#sql = sql
    this.#slot = field.slot
    this.#rows = new ScannedIndex(sql, vectorsTable(field), {
      distance: 'cosine',
      dimensions: field.dimensions,
      matrixBytes: EXACT_BYTES,
    })
    this.#outbox = outbox
    this.#ask = ask
    this.#onChange = onChange
    // The field is new, or Vectorize is: what is there is sent like what comes.
    if (!outbox.knows(field.slot)) {
      outbox.adopt(field.slot, field.dimensions)
      onChange()
    }
  }

  put(seq: number, vector: Float32Array): void {
    const old = this.#rows.get(seq)
    if (old?.every((component, i) => component === vector[i])) return
    this.#rows.put(seq, vector)
    this.#changed(seq)
  }

  remove(seq: number): void {
    if (!this.#rows.has(seq)) return
    this.#rows.remove(seq)
    this.#changed(seq)
  }

  #changed(seq: number): void {
    this.#outbox.mark(this.#slot, seq)
    this.#onChange()
  }

  clear(): void {
    this.#outbox.markAll(this.#slot)
    this.#rows.clear()
    this.#onChange()
  }

  has(seq: number): boolean {
    return this.#rows.has(seq)
  }

  get(seq: number): Float32Array | undefined {
    return this.#rows.get(seq)
  }

  get size(): number {
    return this.#rows.size
  }

  /** Nothing that grows with the collection is kept in memory. */
  memory(): number {
    return 0
  }

  nearest(query: Float32Array, k: number, allowed?: ReadonlySet<number>): Neighbour[] {
    return this.#rows.nearest(query, k, allowed)
  }

  async seek(
    query: Float32Array,
    k: number,
    enough: number,
    filter: SqlFragment,
  ): Promise<Candidates | undefined> {
    const passing = this.#countPassing(filter)
    if (this.#fits(passing, EXACT_BYTES)) return undefined
    // Looked up before Vectorize is asked: what it shows from then on is in its answer.
    const unseen = this.#outbox.unseen(this.#slot, filter)
    const isReadable = this.#fits(passing, SCAN_BYTES)
    const needed = this.#fits(passing, COMPLETE_BYTES) ? k : enough
    // Where Vectorize shows less than half of it, as much is read with its help as without.
    if (needed > MAX_TOP_K || (isReadable && 2 * unseen.length > passing)) {
      return await this.#scan(query, k, this.#passing(filter))
    }
    const waiting = this.#fits(unseen.length, EXACT_BYTES) ? unseen : await this.#scan(query, k, unseen)
    let shown: number[]
    try {
      shown = await this.#ask(query)
    } catch (error) {
      if (!isReadable) throw new VectorsUnavailable(String(error))
      return await this.#scan(query, k, this.#passing(filter))
    }
    const known = this.#known(shown, filter)
    // What waits does not count: nearer ones may be among those that Vectorize shows and has not named.
    if (known.length < needed) return await this.#scan(query, k, this.#passing(filter))
    return new Set([...waiting, ...known])
  }

  #fits(vectors: number, bytes: number): boolean {
    return this.#rows.memory(vectors) <= bytes
  }

  /** How many documents pass a filter, counted no further than it matters. */
  #countPassing(filter: SqlFragment): number {
    if (filter.sql === '1') return this.size
    const most = Math.ceil(SCAN_BYTES / this.#rows.memory(1)) + 1
    return this.#sql
      .exec<{ count: number }>(
        `SELECT count(*) AS count FROM (SELECT 1 FROM documents d WHERE ${filter.sql} LIMIT ?)`,
        ...filter.bindings,
        most,
      )
      .one().count
  }

  #passing(filter: SqlFragment): number[] {
    return this.#select(fragment('1'), filter)
  }

  /** Those that have a vector and pass the filter. What Vectorize should not show any more is removed there. */
  #known(shown: number[], filter: SqlFragment): number[] {
    const among = fragment('v.seq IN (SELECT value FROM json_each(?))', JSON.stringify(shown))
    const present = new Set(this.#select(among, fragment('1')))
    for (const seq of shown) {
      if (!present.has(seq) && !this.#outbox.has(this.#slot, seq)) this.#changed(seq)
    }
    return filter.sql === '1' ? [...present] : this.#select(among, filter)
  }

  #select(among: SqlFragment, filter: SqlFragment): number[] {
    return this.#sql
      .exec<{ seq: number }>(
        `SELECT v.seq FROM ${vectorsTable({ slot: this.#slot })} v JOIN documents d ON d.seq = v.seq
          WHERE ${among.sql} AND (${filter.sql})`,
        ...among.bindings,
        ...filter.bindings,
      )
      .toArray()
      .map(({ seq }) => seq)
  }

  /** The nearest of these, exactly. Others get their turn in between. */
  async #scan(query: Float32Array, k: number, seqs: number[]): Promise<Set<number>> {
    let best: Neighbour[] = []
    for (let start = 0; start < seqs.length; start += SCAN_STEP) {
      if (start > 0) await scheduler.wait(0)
      const found = this.#rows.nearest(query, k, new Set(seqs.slice(start, start + SCAN_STEP)))
      best = [...best, ...found].sort(byDistance).slice(0, k)
    }
    return new Set(best.map(({ seq }) => seq))
  }
}
