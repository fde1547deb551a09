/**
 * Compares a collection's vectors with what Vectorize shows, and repairs differences.
 *
 * A binding cannot list the ids of an index. But every id that a collection ever sent consists of a slot and a
 * sequence number below the next one, so all of them can be fetched by id: those of documents must show their
 * vectors, the others nothing. This cannot see vectors that somebody else wrote into the collection's namespace with
 * another form of id. Searches ignore those.
 */
import * as v from 'valibot'
import { ApiError } from '../errors'
import { once } from '../lib/once'
import { readMeta, writeMeta } from '../search/meta'
import type { Background, Surroundings } from '../search/work'
import { agree, type VectorizedField } from './outbox'
import type { VectorMirror } from './vector-mirror'
import { MAX_GET, type VectorizeBinding, vectorizeFor } from './vectorize-index'

/** The collection's documents. */
interface Documents {
  /** the sequence number of the next document */
  readonly nextSeq: number
  /** the collection is gone */
  readonly closed: boolean
}

/** Where a comparison continues: the next id's slot and sequence number. */
const placeShape = once(() => v.object({ slot: v.number(), seq: v.number() }))

export type Place = v.InferOutput<ReturnType<typeof placeShape>>

/** The background makes this many calls at a time, hourly, and starts over a week after it has finished. */
const SLICE_CALLS = 10
const SLICE_PAUSE_MS = 3_600_000
/** Calls of Vectorize that one request makes for a collection. */
const RUN_CALLS = 50
const WALK_PAUSE_MS = 7 * 24 * 3_600_000

/** The outcome of a comparison: numbers of vectors. */
export type Reconciliation = ReturnType<typeof nothing>

export const nothing = () => ({
  /** ids fetched, of documents and of gaps */
  checked: 0,
  /** documents without a vector in Vectorize */
  missing: 0,
  /** documents with another vector there */
  stale: 0,
  /** vectors there without a document */
  extra: 0,
  /** not compared, because they are queued anyway */
  waiting: 0,
})

function parseCursor(cursor: string): Place {
  if (cursor === '') return { slot: 0, seq: 0 }
  const [, slot, seq] = /^(\d{1,9}):(\d{1,15})$/.exec(cursor) ?? []
  if (slot === undefined) throw new ApiError(400, 'Parameter `after` takes the `cursor` of the last answer.')
  return { slot: Number(slot), seq: Number(seq) }
}

export class Reconciler {
  #sql: SqlStorage
  #env: Cloudflare.Env

  constructor(
    { storage, env }: Surroundings,
    private readonly mirror: VectorMirror,
    private readonly documents: Documents,
  ) {
    this.#sql = storage.sql
    this.#env = env
  }

  /**
   * Compares the ids of one call, and queues what differs.
   * @param counts gets the results added
   * @returns where to continue; undefined at the end
   * @throws Error when Vectorize does not answer
   */
  async step(place: Place, counts: Reconciliation): Promise<Place | undefined> {
    const field = this.mirror.outbox.fields().find(({ slot }) => slot >= place.slot)
    if (field === undefined) return undefined
    const binding = vectorizeFor(this.#env, field.dimensions)
    const from = field.slot === place.slot ? place.seq : 0
    const end = Math.min(from + MAX_GET, this.documents.nextSeq)
    if (binding === undefined || from >= end) return { slot: field.slot + 1, seq: 0 }
    await this.#compare(binding, field, from, end, counts)
    return { slot: field.slot, seq: end }
  }

  async #compare(
    binding: VectorizeBinding,
    field: VectorizedField,
    from: number,
    end: number,
    counts: Reconciliation,
  ): Promise<void> {
    const { outbox } = this.mirror
    const all = Array.from({ length: end - from }, (_, offset) => from + offset)
    const asked = all.filter((seq) => !outbox.has(field.slot, seq))
    counts.waiting += all.length - asked.length
    const shown = await this.mirror.fetch(binding, field.slot, asked)
    if (this.documents.closed) return
    // Vectors that changed during the call are queued already.
    const settled = asked.filter((seq) => !outbox.has(field.slot, seq))
    const wanted = field.retired ? new Map<number, Float32Array>() : this.mirror.read(field.slot, settled)
    counts.waiting += asked.length - settled.length
    counts.checked += settled.length
    for (const seq of settled) {
      const [ours, theirs] = [wanted.get(seq), shown.get(seq)]
      if (agree(ours, theirs)) continue
      if (ours === undefined) counts.extra++
      else if (theirs === undefined) counts.missing++
      else counts.stale++
      this.mirror.resend(field.slot, seq)
    }
  }

  /**
   * Compares as many ids as one request may.
   * @param after the last answer's cursor, '' at first
   * @returns the results, and the cursor, which is '' at the end
   * @throws ApiError 400 for an invalid cursor, 503 when Vectorize does not answer
   */
  async run(after: string): Promise<Reconciliation & { cursor: string }> {
    let place: Place | undefined = parseCursor(after)
    const counts = nothing()
    for (let call = 0; call < RUN_CALLS && place !== undefined && !this.documents.closed; call++) {
      try {
        place = await this.step(place, counts)
      } catch (error) {
        this.mirror.log('vectors could not be compared with Vectorize', error)
        throw new ApiError(503, 'Vectorize did not answer. Ask again, from the last cursor on.')
      }
    }
    return { ...counts, cursor: place === undefined ? '' : `${place.slot}:${place.seq}` }
  }

  /** Compares slowly and endlessly, so that no unnoticed damage lasts. */
  get work(): Background {
    return { name: 'vectors compared with Vectorize', step: () => this.#slice() }
  }

  async #slice(): Promise<number | undefined> {
    if (this.mirror.outbox.fields().length === 0) return undefined
    const due = readMeta(this.#sql, 'reconcile_at', v.number())
    // Vectors that were just sent cannot be compared yet.
    if (due === undefined) return this.#pause(SLICE_PAUSE_MS)
    if (due > Date.now()) return due - Date.now()
    let place: Place | undefined = readMeta(this.#sql, 'reconcile_place', placeShape()) ?? { slot: 0, seq: 0 }
    const counts = nothing()
    for (let call = 0; call < SLICE_CALLS && place !== undefined; call++) {
      place = await this.step(place, counts)
      if (this.documents.closed) return undefined
    }
    if (counts.missing + counts.stale + counts.extra > 0) {
      this.mirror.log(`vectors differed in Vectorize and are sent again: ${JSON.stringify(counts)}`)
    }
    if (place === undefined) return this.#finish()
    writeMeta(this.#sql, 'reconcile_place', place)
    return this.#pause(SLICE_PAUSE_MS)
  }

  #pause(milliseconds: number): number {
    writeMeta(this.#sql, 'reconcile_at', Date.now() + milliseconds)
    return milliseconds
  }

  #finish(): number {
    const { outbox } = this.mirror
    // A retired field is done once Vectorize shows all of its deletions.
    for (const { slot, retired } of outbox.fields())
      if (retired && outbox.count(slot) === 0) outbox.forget(slot)
    writeMeta(this.#sql, 'reconcile_place', undefined)
    return this.#pause(WALK_PAUSE_MS)
  }
}
