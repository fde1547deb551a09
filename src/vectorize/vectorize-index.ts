/** The bound Vectorize indexes, and the ids and namespaces that a collection uses in them. */
import { inBackground, outgoing } from '../lib/waiting'
import { columnOf, fragment, type SqlFragment } from '../search/fragment'
import { vectorsTable } from '../search/schema/layout'
import {
  byDistance,
  type Candidates,
  type Neighbour,
  type Report,
  ScannedIndex,
  VectorsUnavailable,
  type Wanted,
} from '../search/vectors/vector-index'
import type { VectorOutbox } from './outbox'

/** The calls of a Vectorize index that Parley makes. */
export type VectorizeBinding = Pick<Vectorize, 'query' | 'upsert' | 'deleteByIds' | 'getByIds' | 'describe'>

/** The most ids that a query returns without values and metadata. */
export const MAX_TOP_K = 100
/** Vectors in an upsert. 1,000 are allowed, but 500 of 1536 dimensions are 3 MB, and several times that as JSON. */
export const MAX_UPSERT = 500
/** The most ids that `deleteByIds` takes. */
export const MAX_DELETE = 100
/** The most ids that `getByIds` takes. */
export const MAX_GET = 20

/**
 * The index for vectors of this many dimensions.
 * @returns undefined unless VECTORS is "vectorize" and such an index is bound
 */
export function vectorizeFor(env: Cloudflare.Env, dimensions: number): VectorizeBinding | undefined {
  if (env.VECTORS !== 'vectorize') return undefined
  const bound: Record<number, unknown> = {
    384: env.VECTORIZE_384,
    768: env.VECTORIZE_768,
    1024: env.VECTORIZE_1024,
    1536: env.VECTORIZE_1536,
  }
  const index = bound[dimensions] as VectorizeBinding | undefined
  return index && counted(index, env)
}

/** The index, with its calls among those of the object. */
const counted = (index: VectorizeBinding, env: Cloudflare.Env): VectorizeBinding => ({
  query: (...given) => outgoing(env, () => index.query(...given)),
  upsert: (...given) => outgoing(inBackground(env), () => index.upsert(...given)),
  deleteByIds: (...given) => outgoing(inBackground(env), () => index.deleteByIds(...given)),
  getByIds: (...given) => outgoing(inBackground(env), () => index.getByIds(...given)),
  describe: () => outgoing(inBackground(env), () => index.describe()),
})

/**
 * A namespace for each field of each collection. An object's id has 36 bytes, so this stays below the limit of 64.
 */
export const namespaceOf = (objectId: string, slot: number): string => `${objectId}:${slot}`

/**
 * A vector's id. It is unique in the index, which all collections share, and below the limit of 64 bytes. Sequence
 * numbers and slots are never reused, so every id that a collection ever sent can be made again.
 */
export const vectorId = (objectId: string, slot: number, seq: number): string => `${objectId}:${slot}:${seq}`

/** The sequence number of a vector's document. */
export const seqOf = (id: string): number => Number(id.slice(id.lastIndexOf(':') + 1))

// =============================================================================
// A vector field whose vectors are in Vectorize too.
//
// The rows of `vectors_<slot>` are the truth. Vectorize only names documents that may be nearest. Their distances are
// computed from the rows, so approximate scores and outdated vectors never show in a result. Documents that Vectorize
// does not show yet are always candidates.
//
// A small collection, or a filter that leaves few documents, is searched in the object: exact, and faster than
// Vectorize can answer. Vectorize knows nothing of filters. If too few of the hundred vectors that it names pass, all
// that pass are compared here (docs/decisions/0034-filters-without-labels.md).

/** The largest size for each kind of search, in bytes of the searched vectors as int8. */
export const BYTES = {
  /** Held in memory and searched here. Loading takes a tenth of a second, as long as a query of Vectorize, which is billed. */
  held: 16 << 20,
  /** Read from the rows, in some 30 ms. */
  exact: 5 << 20,
  /** Read from the rows, in a tenth of a second, if Vectorize might miss a neighbour. */
  complete: 20 << 20,
  /** Read row by row, in half a second, when Vectorize cannot answer. */
  scan: 100 << 20,
}
/** Vectors read before other requests get a turn: 6 ms at 1024 dimensions. */
const SCAN_STEP = 1_000

/** Asks Vectorize for documents of the nearest vectors. @throws Error when it refuses or does not answer */
type Ask = (query: Float32Array, report: Report) => Promise<number[]>

/** A search and the documents that it is restricted to. */
interface Search {
  query: Float32Array
  k: number
  /** how many that pass Vectorize has to name */
  needed: number
  /** how many documents pass the filter, counted only as far as it matters */
  passing: number
  filter: SqlFragment
  report: Report
}

export class VectorizeIndex extends ScannedIndex {
  #slot: number
  #bytes: typeof BYTES

  /** @param onChange called when there is something to send */
  constructor(
    sql: SqlStorage,
    field: { slot: number; dimensions: number; bytes: typeof BYTES },
    private readonly outbox: VectorOutbox,
    private readonly ask: Ask,
    private readonly onChange: () => void,
  ) {
    super(sql, field, { distance: 'cosine', dimensions: field.dimensions })
    this.#slot = field.slot
    this.#bytes = field.bytes
  }

  override put(seq: number, vector: Float32Array): void {
    const old = this.get(seq)
    if (old?.every((component, i) => component === vector[i])) return
    super.put(seq, vector)
    this.#changed(seq)
  }

  override remove(seq: number): void {
    if (!this.has(seq)) return
    super.remove(seq)
    this.#changed(seq)
  }

  #changed(seq: number): void {
    this.outbox.mark(this.#slot, seq)
    this.onChange()
  }

  override clear(): void {
    this.outbox.markAll(this.#slot)
    super.clear()
    this.onChange()
  }

  /** An outside index holds nothing in memory that grows with the collection. */
  override memory(): number {
    return 0
  }

  async seek(
    query: Float32Array,
    { k, enough }: Wanted,
    filter: SqlFragment,
    report: Report,
  ): Promise<Candidates | undefined> {
    if (this.#fits(this.size, this.#bytes.held)) return undefined
    const passing = this.#countPassing(filter)
    if (this.#fits(passing, this.#bytes.exact)) return undefined
    const isReadable = this.#fits(passing, this.#bytes.scan)
    // The last that Vectorize names are uncertain. If all that pass a filter can be read, that is done unless it names twice as many.
    const margin = filter.sql !== '1' && isReadable ? 2 : 1
    const needed = margin * (this.#fits(passing, this.#bytes.complete) ? k : enough)
    const search = { query, k, needed, passing, filter, report }
    if (needed <= MAX_TOP_K) {
      try {
        const found = await this.#asked(search, isReadable)
        if (found !== undefined) return found
      } catch (error) {
        if (!isReadable) throw new VectorsUnavailable(String(error))
      }
    }
    return await this.#scan(query, k, this.#passing(filter))
  }

  /**
   * What Vectorize names, plus what it does not show yet.
   * @returns undefined when it names too few @throws Error when it does not answer
   */
  async #asked(
    { query, k, needed, passing, filter, report }: Search,
    isReadable: boolean,
  ): Promise<Candidates | undefined> {
    // Read this before the query. A vector that becomes visible in between is then in both, and none is missed.
    const unseen = this.outbox.unseen(this.#slot, filter)
    // If Vectorize shows less than half of the documents, its help saves no reading.
    if (isReadable && 2 * unseen.length > passing) return undefined
    const shown = await this.ask(query, report)
    const isUnseen = new Set(unseen)
    // Do not count documents that wait in the outbox, even if Vectorize named them: it ranked their old vectors, and
    // these may have displaced nearer ones.
    const known = this.#known(shown, filter).filter((seq) => !isUnseen.has(seq))
    if (known.length < needed) return undefined
    const waiting = this.#fits(unseen.length, this.#bytes.exact) ? unseen : await this.#scan(query, k, unseen)
    return new Set([...waiting, ...known])
  }

  #fits(vectors: number, bytes: number): boolean {
    return super.memory(vectors) <= bytes
  }

  /** How many documents pass a filter. Counting stops where more makes no difference. */
  #countPassing(filter: SqlFragment): number {
    if (filter.sql === '1') return this.size
    const most = Math.ceil(this.#bytes.scan / super.memory(1)) + 1
    return this.sql
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

  /**
   * The documents that have a vector and pass the filter. Vectors that Vectorize should not have any more are queued
   * for removal.
   */
  #known(shown: number[], filter: SqlFragment): number[] {
    const among = fragment('v.seq IN (SELECT value FROM json_each(?))', JSON.stringify(shown))
    const present = new Set(this.#select(among, fragment('1')))
    for (const seq of shown) {
      if (!present.has(seq) && !this.outbox.has(this.#slot, seq)) this.#changed(seq)
    }
    return filter.sql === '1' ? [...present] : this.#select(among, filter)
  }

  #select(among: SqlFragment, filter: SqlFragment): number[] {
    return columnOf<number>(
      this.sql,
      `SELECT v.seq FROM ${vectorsTable({ slot: this.#slot })} v JOIN documents d ON d.seq = v.seq
          WHERE ${among.sql} AND (${filter.sql})`,
      ...among.bindings,
      ...filter.bindings,
    )
  }

  /** Finds the nearest of these documents, exactly. Other requests get turns in between. */
  async #scan(query: Float32Array, k: number, seqs: number[]): Promise<Set<number>> {
    let best: Neighbour[] = []
    for (let start = 0; start < seqs.length; start += SCAN_STEP) {
      if (start > 0) await scheduler.wait(0)
      const found = this.nearest(query, k, new Set(seqs.slice(start, start + SCAN_STEP)))
      best = [...best, ...found].sort(byDistance).slice(0, k)
    }
    return new Set(best.map(({ seq }) => seq))
  }
}
