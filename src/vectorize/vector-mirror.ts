/**
 * Sends a collection's vectors to Vectorize, and finds out when they have arrived.
 *
 * Vectorize accepts a mutation at once and shows it seconds or minutes later. It tells which mutation it has
 * processed last. In an index that other collections write to as well, that is seldom one of ours. So documents of
 * the mutation are read back too: once they are there, the whole mutation is.
 */

import type { Alarm } from '../durable/objects'
import { logFailure } from '../errors'
import { backoff, jittered } from '../lib/waiting'
import type { FieldSlot } from '../search/schema/layout'
import type { Field } from '../search/types'
import { fromBlob, norm } from '../search/vectors/packed-vectors'
import {
  embeddedIndex,
  type Report,
  type VectorIndex,
  type VectorIndexes,
} from '../search/vectors/vector-index'
import type { Background, Surroundings } from '../search/work'
import { type Awaited, agree, type VectorizedField, VectorOutbox, within } from './outbox'
import {
  BYTES,
  MAX_DELETE,
  MAX_GET,
  MAX_TOP_K,
  MAX_UPSERT,
  namespaceOf,
  seqOf,
  type VectorizeBinding,
  VectorizeIndex,
  vectorId,
  vectorizeFor,
} from './vectorize-index'

/** Changes are collected for this long before they are sent. */
const GATHER_MS = 500
/** Processing a mutation takes seconds, and longer if there are many. */
const LOOK_MS = 5_000
const LAST_LOOK_MS = 60_000
/**
 * A mutation is sent again if it is not visible although Vectorize has processed others written this many
 * milliseconds later,
 */
const LOST_MS = 600_000
/** or after this many milliseconds in any case: perhaps nothing has been written since. */
const STUCK_MS = 6 * 3_600_000
/** How long a search waits for Vectorize, and how long no search asks it after a failure, in milliseconds. */
const QUERY_MS = 2_000
const REST_MS = 5_000
/** How long any other call may take, in milliseconds. After that its outcome is unknown, and the call is repeated. */
const CALL_MS = 30_000
/** Deletions that one alarm sends for a deleted collection. */
const REMOVAL_STEPS = 50
/** Mutations that one call checks. Each has two witnesses. */
const LOOKED_FOR = MAX_GET / 2

export class VectorMirror implements VectorIndexes {
  readonly outbox: VectorOutbox
  #sql: SqlStorage
  #env: Cloudflare.Env
  #objectId: string
  #alarm: Alarm
  #recovered = false
  #waking = false
  #failures = 0
  /** A vector that Vectorize refuses must not hold up others, so each failure halves the next batch. */
  #batch = MAX_UPSERT
  /** in unix milliseconds */
  #restsUntil = 0

  /** @param bytes sizes from which Vectorize is asked; smaller in tests */
  constructor(
    { storage, env, objectId, alarm }: Surroundings,
    private readonly isClosed: () => boolean = () => false,
    private readonly bytes = BYTES,
  ) {
    this.outbox = new VectorOutbox(storage.sql)
    this.#sql = storage.sql
    this.#env = env
    this.#objectId = objectId
    this.#alarm = alarm
  }

  /** Logs what becomes of the collection's vectors in Vectorize. */
  log(event: string, error?: unknown): void {
    logFailure(event, error, { collection: this.#objectId })
  }

  /** The index of a vector field, in Vectorize or in the object, depending on settings and bindings. */
  index(field: Field, slot: FieldSlot): VectorIndex {
    const dimensions = field.num_dim as number
    // The metric is the whole index's, which is cosine.
    const binding =
      (field.vec_dist ?? 'cosine') === 'cosine' ? vectorizeFor(this.#env, dimensions) : undefined
    if (binding === undefined) {
      // Forget the field: its changes are not recorded from now on, so everything is sent again if the binding comes
      // back.
      if (this.outbox.knows(slot.slot)) this.outbox.forget(slot.slot)
      return embeddedIndex(this.#sql, field, slot)
    }
    // The field or the Vectorize index is new: queue all vectors that exist.
    if (!this.outbox.knows(slot.slot)) {
      this.outbox.adopt(slot.slot, dimensions)
      this.#wake()
    }
    return new VectorizeIndex(
      this.#sql,
      { slot: slot.slot, dimensions, bytes: this.bytes },
      this.outbox,
      (query, report) => this.#ask(binding, slot.slot, query, report),
      () => this.#wake(),
    )
  }

  /** Queues the removal of a slot's vectors from Vectorize. */
  retire(slot: number): void {
    if (!this.outbox.knows(slot)) return
    this.outbox.retire(slot)
    this.#wake()
  }

  /** Continues what was under way when the object fell asleep. */
  resume(): void {
    if (this.outbox.fields().length > 0) this.#wake()
  }

  get works(): Background[] {
    return [
      { name: 'vectors to Vectorize', step: () => this.send() },
      { name: 'vectors in Vectorize', step: () => this.look() },
    ]
  }

  /** Sets the alarm, but not within a transaction: a rollback would remove the alarm too. */
  #wake(): void {
    if (this.#waking) return
    this.#waking = true
    queueMicrotask(() => {
      this.#waking = false
      if (!this.isClosed()) this.#alarm.within(GATHER_MS)
    })
  }

  /** Documents of the nearest vectors, as Vectorize sees them. @throws Error when it does not answer in time */
  async #ask(
    binding: VectorizeBinding,
    slot: number,
    query: Float32Array,
    report: Report,
  ): Promise<number[]> {
    if (Date.now() < this.#restsUntil) throw new Error('Vectorize has failed a moment ago')
    try {
      const options = { topK: MAX_TOP_K, namespace: namespaceOf(this.#objectId, slot) }
      const answer = await within(QUERY_MS, binding.query(query, options))
      return answer.matches.map(({ id }) => seqOf(id)).filter(Number.isSafeInteger)
    } catch (error) {
      this.#restsUntil = Date.now() + REST_MS
      report(error)
      throw error
    }
  }

  /** Sends one batch. @returns milliseconds until the next one; undefined when all is sent */
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
        this.log('vectors could not be sent to Vectorize', error)
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
          [...vectors].map(([seq, values]) => ({
            id: vectorId(this.#objectId, field.slot, seq),
            namespace: namespaceOf(this.#objectId, field.slot),
            values,
          })),
        ),
      )
    }
    const gone = seqs.filter((seq) => !vectors.has(seq)).slice(0, MAX_DELETE)
    if (gone.length > 0 && !this.isClosed()) {
      await this.#mutate(field.slot, gone, () => binding.deleteByIds(this.ids(field.slot, gone)))
    }
  }

  async #mutate(slot: number, seqs: number[], send: () => Promise<{ mutationId: string }>): Promise<void> {
    const number = this.outbox.sending(slot, seqs)
    try {
      const { mutationId } = await within(CALL_MS, send())
      if (this.isClosed()) return
      this.outbox.sent(number, mutationId, Date.now())
      this.#alarm.within(LOOK_MS)
    } catch (error) {
      if (!this.isClosed()) this.outbox.failed(number)
      throw error
    }
  }

  /**
   * Checks whether Vectorize shows what was sent.
   * @returns milliseconds until the next check; undefined when it shows everything
   */
  async look(): Promise<number | undefined> {
    let next: number | undefined
    for (const [dimensions, fields] of Map.groupBy(this.outbox.fields(), (field) => field.dimensions)) {
      const binding = vectorizeFor(this.#env, dimensions)
      const slots = fields.map(({ slot }) => slot)
      if (binding === undefined || slots.every((slot) => this.outbox.awaited(slot, 1).length === 0)) continue
      // Their types say number. They are a UUID and a date.
      const { processedUpToMutation, processedUpToDatetime } = await within(CALL_MS, binding.describe())
      if (this.isClosed()) return undefined
      this.outbox.visibleUpTo(String(processedUpToMutation), slots)
      for (const field of fields) {
        const wait = await this.#lookAt(binding, field, Date.parse(String(processedUpToDatetime)))
        if (this.isClosed()) return undefined
        if (wait !== undefined) next = Math.min(wait, next ?? wait)
      }
    }
    return next
  }

  /** @param processedTo when the last processed mutation was written, in unix milliseconds; NaN if unknown */
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
    if (this.isClosed()) return undefined
    let next = 0
    for (const mutation of awaited) {
      const age = Date.now() - mutation.sentAt
      if (this.#shows(field, mutation, found)) {
        this.outbox.visible(mutation.number)
      } else if (processedTo - mutation.sentAt > LOST_MS || age > STUCK_MS) {
        this.log(`a mutation was lost by Vectorize and is sent again: ${mutation.mutationId}`)
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
   * Takes a step towards removing everything from Vectorize, for a deleted collection.
   * @returns milliseconds until the next step; undefined when all is removed
   */
  async removeAll(): Promise<number | undefined> {
    for (const { slot, retired } of this.outbox.fields()) if (!retired) this.outbox.retire(slot)
    for (let step = 0; step < REMOVAL_STEPS; step++) {
      const wait = await this.send()
      if (wait !== 0) return wait
    }
    return 0
  }

  /** Sends a vector, or its deletion, again. */
  resend(slot: number, seq: number): void {
    this.outbox.mark(slot, seq)
    this.#wake()
  }

  /**
   * Vectors as Vectorize should have them, by sequence number. A zero vector has no direction, and a cosine index cannot hold it.
   */
  read(slot: number, seqs: number[]): Map<number, Float32Array> {
    const rows = this.#sql.exec<{ seq: number; vector: ArrayBuffer }>(
      `SELECT seq, vector FROM vectors_${slot} WHERE seq IN (SELECT value FROM json_each(?))`,
      JSON.stringify(seqs),
    )
    const vectors = new Map(rows.toArray().map(({ seq, vector }) => [seq, fromBlob(vector)]))
    return new Map([...vectors].filter(([, vector]) => norm(vector) > 0))
  }

  /** Vectors as Vectorize shows them. @param seqs at most MAX_GET */
  async fetch(binding: VectorizeBinding, slot: number, seqs: number[]): Promise<Map<number, Float32Array>> {
    if (seqs.length === 0) return new Map()
    const found = await within(CALL_MS, binding.getByIds(this.ids(slot, seqs)))
    return new Map(found.map(({ id, values }) => [seqOf(id), Float32Array.from(values)]))
  }

  ids(slot: number, seqs: number[]): string[] {
    return seqs.map((seq) => vectorId(this.#objectId, slot, seq))
  }
}
