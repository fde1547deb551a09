/**
 * A collection's vectors on their way to Vectorize, and what is known of their arrival.
 *
 * Vectorize takes a mutation now and shows it seconds or minutes later. It says which mutation it has processed
 * last; in an index that other collections write to as well, that is seldom one of ours, so documents of the
 * mutation are read back too: once they are there, all of it is.
 */

import type { Alarm } from '../../alarm'
import { backoff } from '../../backoff'
import { reasonOf } from '../../errors'
import type { Background } from '../background'
import type { FieldSlot } from '../layout'
import type { Surroundings } from '../open'
import type { Field } from '../types'
import { embeddedIndex, type VectorIndex, type VectorIndexes } from '../vector-index'
import { fromBlob, isSameDirection, norm } from '../vector-math'
import {
  MAX_DELETE,
  MAX_GET,
  MAX_TOP_K,
  MAX_UPSERT,
  namespaceOf,
  seqOf,
  type VectorizeBinding,
  vectorId,
  vectorizeFor,
} from './binding'
import { type Awaited, type VectorizedField, VectorOutbox } from './outbox'
import { VectorizeIndex } from './vectorize-index'

/** Changes are gathered for this long before they are sent. */
const GATHER_MS = 500
/** A mutation takes seconds to be processed, and longer when there are many. */
const LOOK_MS = 5_000
const LAST_LOOK_MS = 60_000
/** What is not to be seen when Vectorize has processed mutations that came so much later is sent again, */
const LOST_MS = 600_000
/** and what is not to be seen after this time in any case: nobody may have written since. */
const STUCK_MS = 6 * 3_600_000
/** How long a search waits for Vectorize, and for how long it is not asked after it has failed. */
const QUERY_MS = 2_000
const REST_MS = 5_000
/** How long any other call may take. Past it the outcome is unknown, and the call is made again. */
const CALL_MS = 30_000
/** Deletions that one alarm sends for a collection that is gone. */
const REMOVAL_STEPS = 50
/** Mutations that are looked for at once: each has two witnesses. */
const LOOKED_FOR = MAX_GET / 2

export class VectorMirror implements VectorIndexes {
  readonly outbox: VectorOutbox
  #sql: SqlStorage
  #env: Cloudflare.Env
  #objectId: string
  #alarm: Alarm
  #isClosed: () => boolean
  #recovered = false
  #waking = false
  #failures = 0
  /** A vector that Vectorize will not take must not keep others out: after a failure fewer are sent together. */
  #batch = MAX_UPSERT
  /** in unix milliseconds */
  #restsUntil = 0

  constructor({ storage, env, objectId, alarm }: Surroundings, isClosed: () => boolean = () => false) {
    this.outbox = new VectorOutbox(storage.sql)
    this.#sql = storage.sql
    this.#env = env
    this.#objectId = objectId
    this.#alarm = alarm
    this.#isClosed = isClosed
  }

  /** The index of a vector field, by what is set and bound. */
  index(field: Field, slot: FieldSlot): VectorIndex {
    const dimensions = field.num_dim as number
    // Vectorize ranks by the metric of the whole index, which is cosine.
    const binding = field.vec_dist === 'ip' ? undefined : vectorizeFor(this.#env, dimensions)
    if (binding === undefined) {
      // What changes from now on is not noted. Should Vectorize come back, everything is sent again.
      if (this.outbox.knows(slot.slot)) this.outbox.forget(slot.slot)
      return embeddedIndex(this.#sql, field, slot)
    }
    return new VectorizeIndex(
      this.#sql,
      { slot: slot.slot, dimensions },
      this.outbox,
      (query) => this.#ask(binding, slot.slot, query),
      () => this.#wake(),
    )
  }

  /** Has the vectors of a slot removed from Vectorize. */
  retire(slot: number): void {
    if (!this.outbox.knows(slot)) return
    this.outbox.retire(slot)
    this.#wake()
  }

  /** Goes on with what was under way when the object fell asleep. */
  resume(): void {
    if (this.outbox.fields().length > 0) this.#wake()
  }

  get works(): Background[] {
    return [
      { name: 'vectors to Vectorize', step: () => this.send() },
      { name: 'vectors in Vectorize', step: () => this.look() },
    ]
  }

  /** Sees to it that the alarm rings. Not within a transaction: rolled back, it would take the alarm along. */
  #wake(): void {
    if (this.#waking) return
    this.#waking = true
    queueMicrotask(() => {
      this.#waking = false
      if (!this.#isClosed()) this.#alarm.within(GATHER_MS)
    })
  }

  /** The documents of the nearest vectors that Vectorize shows. @throws Error when it does not answer in time */
  async #ask(binding: VectorizeBinding, slot: number, query: Float32Array): Promise<number[]> {
    if (Date.now() < this.#restsUntil) throw new Error('Vectorize has failed a moment ago')
    try {
      const namespace = namespaceOf(this.#objectId, slot)
      const answer = await within(QUERY_MS, binding.query(query, { topK: MAX_TOP_K, namespace }))
      return answer.matches.map(({ id }) => seqOf(id)).filter(Number.isSafeInteger)
    } catch (error) {
      this.#restsUntil = Date.now() + REST_MS
      console.warn('Vectorize could not be searched', reasonOf(error))
      throw error
    }
  }

  /** Sends one batch. @returns when to go on, in milliseconds; undefined when all is sent */
  async send(): Promise<number | undefined> {
    if (!this.#recovered) this.outbox.recover()
    this.#recovered = true
    for (const field of this.outbox.fields()) {
      const binding = vectorizeFor(this.#env, field.dimensions)
      if (binding === undefined) continue
      const seqs = this.outbox.next(field.slot, this.#batch)
      if (seqs.length === 0) continue
      try {
        await this.#sendTo(binding, field, seqs)
        this.#failures = 0
        this.#batch = Math.min(MAX_UPSERT, this.#batch * 2)
      } catch (error) {
        console.warn('vectors could not be sent to Vectorize', reasonOf(error))
        this.#batch = Math.max(1, this.#batch >> 1)
        return jittered(backoff(this.#failures++))
      }
      return 0
    }
    return undefined
  }

  async #sendTo(binding: VectorizeBinding, field: VectorizedField, seqs: number[]): Promise<void> {
    const vectors = field.retired ? new Map<number, Float32Array>() : this.read(field.slot, seqs)
    const present = [...vectors.keys()]
    if (present.length > 0) {
      await this.#mutate(field.slot, present, () =>
        binding.upsert(
          present.map((seq) => ({
            id: vectorId(this.#objectId, field.slot, seq),
            namespace: namespaceOf(this.#objectId, field.slot),
            values: vectors.get(seq) as Float32Array,
          })),
        ),
      )
    }
    const gone = seqs.filter((seq) => !vectors.has(seq)).slice(0, MAX_DELETE)
    if (gone.length > 0 && !this.#isClosed()) {
      await this.#mutate(field.slot, gone, () => binding.deleteByIds(this.ids(field.slot, gone)))
    }
  }

  async #mutate(slot: number, seqs: number[], send: () => Promise<{ mutationId: string }>): Promise<void> {
    const number = this.outbox.sending(slot, seqs)
    try {
      const { mutationId } = await within(CALL_MS, send())
      if (this.#isClosed()) return
      this.outbox.sent(number, mutationId, Date.now())
      this.#alarm.within(LOOK_MS)
    } catch (error) {
      if (!this.#isClosed()) this.outbox.failed(number)
      throw error
    }
  }

  /** Looks whether Vectorize shows what was sent. @returns when to look again; undefined when it shows all */
  async look(): Promise<number | undefined> {
    let next: number | undefined
    for (const [dimensions, fields] of Map.groupBy(this.outbox.fields(), (field) => field.dimensions)) {
      const binding = vectorizeFor(this.#env, dimensions)
      const slots = fields.map(({ slot }) => slot)
      if (binding === undefined || slots.every((slot) => this.outbox.awaited(slot, 1).length === 0)) continue
      // Typed as numbers, they are a UUID and a date.
      const { processedUpToMutation, processedUpToDatetime } = await within(CALL_MS, binding.describe())
      if (this.#isClosed()) return undefined
      this.outbox.visibleUpTo(String(processedUpToMutation), slots)
      for (const field of fields) {
        const wait = await this.#lookAt(binding, field, Date.parse(String(processedUpToDatetime)))
        if (this.#isClosed()) return undefined
        if (wait !== undefined) next = Math.min(wait, next ?? wait)
      }
    }
    return next
  }

  /** @param processedTo when what Vectorize has processed was written, in unix milliseconds; NaN: not known */
  async #lookAt(
    binding: VectorizeBinding,
    field: VectorizedField,
    processedTo: number,
  ): Promise<number | undefined> {
    const awaited = this.outbox.awaited(field.slot, LOOKED_FOR)
    if (awaited.length === 0) return undefined
    const found = await this.fetch(
      binding,
      field.slot,
      awaited.flatMap(({ witnesses }) => witnesses),
    )
    if (this.#isClosed()) return undefined
    let next = 0
    for (const mutation of awaited) {
      const age = Date.now() - mutation.sentAt
      if (this.#shows(field, mutation, found)) {
        this.outbox.visible(mutation.number)
      } else if (processedTo - mutation.sentAt > LOST_MS || age > STUCK_MS) {
        console.warn('a mutation was lost by Vectorize and is sent again', mutation.mutationId)
        this.outbox.failed(mutation.number)
        this.#wake()
      } else {
        next ||= Math.min(LAST_LOOK_MS, Math.max(LOOK_MS, age / 2))
      }
    }
    return next
  }

  #shows(field: VectorizedField, { witnesses }: Awaited, found: Map<number, Float32Array>): boolean {
    const vectors = field.retired ? new Map<number, Float32Array>() : this.read(field.slot, witnesses)
    return witnesses.every((seq) => agree(vectors.get(seq), found.get(seq)))
  }

  /**
   * Removes everything from Vectorize, or some of it: the collection is going.
   * @returns when to go on, in milliseconds; undefined when all is removed
   */
  async removeAll(): Promise<number | undefined> {
    for (const { slot, retired } of this.outbox.fields()) if (!retired) this.outbox.retire(slot)
    for (let step = 0; step < REMOVAL_STEPS; step++) {
      const wait = await this.send()
      if (wait !== 0) return wait
    }
    return 0
  }

  /** Has a vector sent again, or its absence. */
  resend(slot: number, seq: number): void {
    this.outbox.mark(slot, seq)
    this.#wake()
  }

  /** Vectors as they are to be in Vectorize. One of zeros has no direction and is left out: cosine has no place for it. */
  read(slot: number, seqs: number[]): Map<number, Float32Array> {
    const rows = this.#sql.exec<{ seq: number; vector: ArrayBuffer }>(
      `SELECT seq, vector FROM vectors_${slot} WHERE seq IN (SELECT value FROM json_each(?))`,
      JSON.stringify(seqs),
    )
    const vectors = new Map<number, Float32Array>()
    for (const row of rows) {
      const vector = fromBlob(row.vector)
      if (norm(vector) > 0) vectors.set(row.seq, vector)
    }
    return vectors
  }

  /** Vectors as Vectorize shows them. @param seqs at most MAX_GET */
  async fetch(binding: VectorizeBinding, slot: number, seqs: number[]): Promise<Map<number, Float32Array>> {
    const found = await within(CALL_MS, binding.getByIds(this.ids(slot, seqs)))
    return new Map(found.map(({ id, values }) => [seqOf(id), Float32Array.from(values)]))
  }

  ids(slot: number, seqs: number[]): string[] {
    return seqs.map((seq) => vectorId(this.#objectId, slot, seq))
  }
}

/** @throws Error when there is no answer in time */
async function within<T>(milliseconds: number, answer: Promise<T>): Promise<T> {
  const answered = new AbortController()
  const late = scheduler.wait(milliseconds, { signal: answered.signal }).then(() => {
    throw new Error(`no answer within ${milliseconds} ms`)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    late.catch(() => {})
    answered.abort()
  }
}

/** Whether Vectorize shows what it should: a vector, or none. */
export const agree = (wanted: Float32Array | undefined, shown: Float32Array | undefined): boolean =>
  wanted === undefined || shown === undefined ? wanted === shown : isSameDirection(wanted, shown)

/** Full jitter over the upper half: collections that failed together do not come back together. */
const jittered = (milliseconds: number): number => milliseconds * (0.5 + Math.random() / 2)
