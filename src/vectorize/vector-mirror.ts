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
import type { Condition } from '../search/filter/filter'
import { type FieldSlot, isVector, type StoredSchema } from '../search/schema/layout'
import type { Field } from '../search/types'
import { fromBlob, norm } from '../search/vectors/packed-vectors'
import {
  embeddedIndex,
  type Report,
  type VectorIndex,
  type VectorIndexes,
} from '../search/vectors/vector-index'
import type { Background, Surroundings } from '../search/work'
import {
  chooseLabels,
  type LabelFilter,
  type Labels,
  labelFilter,
  PROPERTIES,
  readLabelling,
  readLabels,
  sameLabels,
  writeLabelling,
} from './labels'
import {
  type Awaited,
  agree,
  type Kept,
  NoAnswer,
  type VectorizedField,
  VectorOutbox,
  within,
} from './outbox'
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
/** The least time between two tests of labels of which the first failed, in milliseconds. */
const RETRY_MS = 3_600_000
/** Deletions that one alarm sends for a deleted collection. */
const REMOVAL_STEPS = 50
/** Mutations that one call checks. Each has two witnesses. */
const LOOKED_FOR = MAX_GET / 2

export class VectorMirror implements VectorIndexes {
  readonly outbox: VectorOutbox
  /** slots for which a search wanted a filter */
  readonly #wanted = new Set<number>()
  #schema: StoredSchema | undefined
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
      this.outbox.adopt(slot.slot, dimensions, this.#hasLabels)
      this.#wake()
    }
    return new VectorizeIndex(
      this.#sql,
      { slot: slot.slot, dimensions, bytes: this.bytes },
      this.outbox,
      {
        ask: (query, filter, report) => this.#ask(binding, slot.slot, { query, filter, report }),
        filterFor: (conditions) => this.#filterFor(slot.slot, conditions),
        doubt: () => this.outbox.prove(slot.slot, false, Date.now()),
      },
      () => this.#wake(),
    )
  }

  /** Whether the collection has fields to filter by. */
  get #hasLabels(): boolean {
    return Object.keys(readLabelling(this.#sql)).length > 0
  }

  /** Chooses the fields that become labels. Belongs in the transaction that changes the schema. */
  describe(schema: StoredSchema): void {
    this.#schema = schema
    if (this.#env.VECTORS !== 'vectorize' || !schema.fields.some(isVector)) return
    const old = readLabelling(this.#sql)
    const chosen = chooseLabels(schema, old)
    if (PROPERTIES.some((property) => old[property] !== chosen[property])) writeLabelling(this.#sql, chosen)
    // A property that was unused has the same value in every vector. Indexing the documents again changes it.
    const hasMoved = PROPERTIES.some((name) => old[name] !== undefined && old[name] !== chosen[name])
    const labels = this.#hasLabels
    for (const { slot, retired, labelled } of this.outbox.fields()) {
      if (retired || (Boolean(labelled) === labels && !(labels && hasMoved))) continue
      this.outbox.relabel(slot, labels)
      this.#wake()
    }
  }

  /** Runs `write`, and queues the document's vectors if that changed their labels. */
  rewrite(seq: number, write: () => void): void {
    const fields = this.outbox.fields().filter(({ retired, labelled }) => labelled && !retired)
    const before = fields.length === 0 ? undefined : this.#labelsOf([seq]).get(seq)
    write()
    if (before === undefined || sameLabels(before, this.#labelsOf([seq]).get(seq) ?? {})) return
    for (const { slot } of fields) this.outbox.markLabels(slot, seq)
    this.#wake()
  }

  #labelsOf(seqs: number[]): Map<number, Labels> {
    return this.#schema === undefined ? new Map() : readLabels(this.#sql, this.#schema, seqs)
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

  /** The Vectorize filter for these conditions. Undefined if there is none, or if it is not proven to work. */
  #filterFor(slot: number, conditions: Condition[]): LabelFilter | undefined {
    const filter = labelFilter(readLabelling(this.#sql), conditions)
    const field = this.outbox.fields().find((other) => other.slot === slot)
    if (filter === undefined || !field?.labelled) return undefined
    if (field.proven) return filter
    this.#wanted.add(slot)
    if (this.#isDue(field)) this.#wake()
    return undefined
  }

  /** Documents of the nearest vectors, as Vectorize sees them. @throws Error when it does not answer in time */
  async #ask(
    binding: VectorizeBinding,
    slot: number,
    { query, filter, report }: { query: Float32Array; filter: LabelFilter | undefined; report: Report },
  ): Promise<number[]> {
    if (Date.now() < this.#restsUntil) throw new Error('Vectorize has failed a moment ago')
    try {
      return await this.#query(binding, slot, query, filter)
    } catch (error) {
      // A refused filter says nothing about the next query.
      if (filter === undefined || error instanceof NoAnswer) this.#restsUntil = Date.now() + REST_MS
      report(error)
      throw error
    }
  }

  async #query(
    binding: VectorizeBinding,
    slot: number,
    query: Float32Array,
    filter?: LabelFilter,
  ): Promise<number[]> {
    const namespace = namespaceOf(this.#objectId, slot)
    const options = { topK: MAX_TOP_K, namespace, ...(filter && { filter }) }
    const answer = await within(QUERY_MS, binding.query(query, options))
    return answer.matches.map(({ id }) => seqOf(id)).filter(Number.isSafeInteger)
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
    const vectors = field.retired ? new Map<number, Kept>() : this.read(field.slot, seqs)
    const present = [...vectors.keys()]
    if (present.length > 0) {
      await this.#mutate(field.slot, present, () =>
        binding.upsert(
          [...vectors].map(([seq, { vector, labels }]) => ({
            id: vectorId(this.#objectId, field.slot, seq),
            namespace: namespaceOf(this.#objectId, field.slot),
            values: vector,
            ...(labels && { metadata: labels }),
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
   * Checks whether Vectorize shows what was sent, and whether it finds vectors by their labels.
   * @returns milliseconds until the next check; undefined when it shows everything
   */
  async look(): Promise<number | undefined> {
    const next = await this.#lookAtAll()
    if (!this.isClosed()) await this.#prove()
    return next
  }

  async #lookAtAll(): Promise<number | undefined> {
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

  #shows(field: VectorizedField, { witnesses }: Awaited, found: Map<number, Kept>): boolean {
    const vectors = field.retired ? new Map<number, Kept>() : this.read(field.slot, witnesses)
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
  read(slot: number, seqs: number[]): Map<number, Kept> {
    const labels = this.#labelsOf(seqs)
    const rows = this.#sql.exec<{ seq: number; vector: ArrayBuffer }>(
      `SELECT seq, vector FROM vectors_${slot} WHERE seq IN (SELECT value FROM json_each(?))`,
      JSON.stringify(seqs),
    )
    const kept = new Map<number, Kept>()
    for (const row of rows) {
      const vector = fromBlob(row.vector)
      if (norm(vector) > 0) kept.set(row.seq, { vector, labels: labels.get(row.seq) })
    }
    return kept
  }

  /** Vectors as Vectorize shows them. @param seqs at most MAX_GET */
  async fetch(binding: VectorizeBinding, slot: number, seqs: number[]): Promise<Map<number, Kept>> {
    const found = await within(CALL_MS, binding.getByIds(this.ids(slot, seqs)))
    return new Map(
      found.map(({ id, values, metadata }) => [
        seqOf(id),
        { vector: Float32Array.from(values), labels: metadata as Labels | undefined },
      ]),
    )
  }

  ids(slot: number, seqs: number[]): string[] {
    return seqs.map((seq) => vectorId(this.#objectId, slot, seq))
  }

  // ===========================================================================
  // Tests whether Vectorize finds a field's vectors by their labels.
  //
  // A binding does not tell which metadata indexes exist, and Vectorize silently omits vectors that are older than the
  // metadata index from every filtered answer. So one of the oldest vectors is queried by each of its labels as soon as
  // it is visible. Searches use filters only if it was found by its own labels and not by others.
  //
  // If the test fails, the vector is sent again. The next test is an hour later at the earliest, when a search could
  // use a filter. If it then succeeds, the metadata indexes were created in the meantime, and all other vectors are
  // sent again too.

  /** Runs the tests that are due. */
  async #prove(): Promise<void> {
    for (const field of this.outbox.fields()) {
      const binding = this.#isDue(field) ? vectorizeFor(this.#env, field.dimensions) : undefined
      const witness = binding && (await this.#witness(binding, field))
      if (binding === undefined || witness === undefined || this.isClosed()) continue
      const works = await this.#findsByLabels(binding, field, witness)
      if (!this.isClosed()) this.#conclude(field, witness.seq, works)
    }
  }

  #isDue({ slot, retired, labelled, proven, tried_at: triedAt }: VectorizedField): boolean {
    if (retired || !labelled || proven) return false
    return triedAt === null || (this.#wanted.has(slot) && Date.now() - triedAt >= RETRY_MS)
  }

  #conclude({ slot, tried_at: triedAt }: VectorizedField, seq: number, works: boolean): void {
    if (works) {
      if (triedAt !== null) this.outbox.relabel(slot, true)
      this.outbox.prove(slot, true)
    } else {
      this.log(
        'Vectorize does not find vectors by their labels: its metadata indexes are missing, or too young',
      )
      this.outbox.prove(slot, false, Date.now())
    }
    // After a failure the vector may be found once it is sent again. After a late success this starts sending the
    // others.
    if (!works || triedAt !== null) this.resend(slot, seq)
  }

  /**
   * One of the oldest vectors that is found without a filter. Undefined if there is none: then nothing can be
   * concluded.
   */
  async #witness(binding: VectorizeBinding, { slot }: VectorizedField): Promise<Witness | undefined> {
    for (const [seq, { vector, labels }] of this.read(slot, this.outbox.oldest(slot))) {
      if (labels === undefined) return undefined
      const named = await this.#query(binding, slot, vector).catch(() => undefined)
      if (named === undefined || this.isClosed()) return undefined
      // Use it only if the query found it. It may be missing from the results even if all is well, because a hundred
      // other vectors are just like it.
      if (named.includes(seq)) return { seq, vector, labels }
    }
    return undefined
  }

  async #findsByLabels(
    binding: VectorizeBinding,
    { slot }: VectorizedField,
    { seq, vector, labels }: Witness,
  ): Promise<boolean> {
    const finds = async (filter: LabelFilter) =>
      (await this.#query(binding, slot, vector, filter)).includes(seq)
    try {
      if (!(await finds(labels))) return false
      for (const property of PROPERTIES) {
        if (await finds({ [property]: { $ne: labels[property] } })) return false
      }
      return true
    } catch (error) {
      this.log('Vectorize does not take a filter', error)
      return false
    }
  }
}

/** A vector by which labels are tested. */
interface Witness {
  seq: number
  vector: Float32Array
  labels: Labels
}
