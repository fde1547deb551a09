/**
 * Indexes documents again after a change of the schema, in steps between searches and writes. Documents written
 * meanwhile are indexed under the new schema anyway.
 */

import * as v from 'valibot'
import { ApiError } from '../../errors'
import { once } from '../../lib/once'
import { coerceDocument, type Draft, detectFields } from '../documents/document'
import { embeddingText } from '../documents/join-keys'
import type { Store, Vectors } from '../documents/store'
import { takeVectors, type Writer } from '../documents/writer'
import { columnOf } from '../fragment'
import { hasMeta, readMeta, writeMeta } from '../meta'
import type { FieldSlot } from '../schema/layout'
import { type Plan, planOf } from '../schema/plan'
import { leaves, place, replace } from '../schema/values'
import type { Step } from '../types'
import type { Embedders } from '../vectors/embedders'
import { shortest } from '../vectors/packed-vectors'
import type { CarriedVectors } from './alter'

const jobShape = once(() =>
  v.object({
    /** distinguishes a job from the one that it replaced */
    generation: v.number(),
    /** sequence numbers: the next document, and the first one that is too new for this job */
    next: v.number(),
    until: v.number(),
    carried: v.array(v.object({ name: v.string(), table: v.string() })),
  }),
)

type Job = v.InferOutput<ReturnType<typeof jobShape>>

/** Documents in a step; fewer if each may need a vector. */
const STEP = 200
const STEP_EMBEDDED = 100

/** How long calls wait for a job, from the first one that does, in milliseconds. Clients give up after three seconds. */
const PATIENCE_MS = 2_000

export class Reindex {
  /** aborted at the end of the job, and what those who wait for it are told */
  #ended: AbortController | undefined
  #end: Promise<boolean> | undefined

  constructor(
    private readonly storage: DurableObjectStorage,
    private readonly store: Store,
    private readonly embedders: Embedders,
    private readonly writer: Writer,
  ) {
    store.isReindexing = () => hasMeta(store.sql, 'reindex')
    store.beforeWrite = (seq) => this.#advance(seq)
    store.carried = (seq, document) => this.#carry(seq, document)
  }

  get #job(): Job | undefined {
    return readMeta(this.store.sql, 'reindex', jobShape())
  }

  get pending(): boolean {
    return this.#job !== undefined
  }

  /** How many documents the job is done with; undefined without one. */
  get done(): number | undefined {
    const job = this.#job
    if (job === undefined) return undefined
    const [row] = this.store.sql
      .exec<{ count: number }>('SELECT count(*) AS count FROM documents WHERE seq < ?', job.next)
      .toArray()
    return row!.count
  }

  /** Waits for the end of the job, but no longer than others have waited before. @returns whether it has ended */
  async settled(): Promise<boolean> {
    if (!this.pending) return true
    this.#ended ??= new AbortController()
    this.#end ??= scheduler.wait(PATIENCE_MS, { signal: this.#ended.signal }).then(
      () => false,
      () => true,
    )
    return this.#end
  }

  /** Starts a job for all present documents. Belongs in the transaction that changes the schema. */
  start(carried: CarriedVectors[]): void {
    const old = this.#job
    const job: Job = {
      generation: (old?.generation ?? 0) + 1,
      next: 0,
      until: this.store.nextSeq,
      carried: [...(old?.carried ?? []), ...carried],
    }
    writeMeta(this.store.sql, 'reindex', job)
  }

  step(): Step {
    const job = this.#job
    if (job === undefined) {
      // An earlier version may have ended the job, which knows nothing of this.
      this.store.completeFields()
      return { count: 0, done: true }
    }
    const limit = this.store.plan.embedded.length > 0 ? STEP_EMBEDDED : STEP
    const seqs = columnOf<number>(
      this.store.sql,
      `SELECT seq FROM documents WHERE seq >= ? AND seq < ? ORDER BY seq LIMIT ${limit}`,
      job.next,
      job.until,
    )

    this.store.transact(this.storage, () => this.#commit(seqs, job, seqs.length < limit))
    if (!this.pending) {
      this.#ended?.abort()
      this.#ended = this.#end = undefined
    }
    return { count: seqs.length, done: seqs.length < limit && !this.pending }
  }

  #commit(seqs: number[], job: Job, last: boolean): void {
    const store = this.store
    if (this.#job?.generation !== job.generation) return
    this.#index(seqs, job)
    store.finish()
    // One of these documents may have added so many fields that the full-text indexes were recreated and a new job
    // started.
    if (this.#job?.generation !== job.generation) return
    const next = (seqs.at(-1) ?? job.until - 1) + 1
    if (last) {
      for (const { table } of job.carried) store.sql.exec(`DROP TABLE IF EXISTS ${table}`)
      store.completeFields()
    }
    writeMeta(store.sql, 'reindex', last ? undefined : { ...job, next })
  }

  /** Indexes a document before its turn, since a write must not meet a vector that it has not got back yet. */
  #advance(seq: number): void {
    const job = this.#job
    if (job !== undefined && job.carried.length > 0 && seq < job.until) this.#index([seq], job)
  }

  #index(seqs: number[], { carried }: Job): void {
    const store = this.store
    // Documents do not change, so nobody is notified.
    const { onChange } = store
    store.onChange = undefined
    try {
      for (const seq of seqs) {
        const prepared = this.#prepare(seq)
        if (prepared === undefined) continue
        if (prepared.newFields.length > 0) this.writer.addFields(prepared.newFields)
        store.update(seq, prepared.draft, prepared.vectors, true)
        for (const slot of prepared.queued) store.pending.mark(slot, seq)
        for (const { table } of carried) store.sql.exec(`DELETE FROM ${table} WHERE seq = ?`, seq)
      }
    } finally {
      store.onChange = onChange
    }
  }

  #prepare(seq: number) {
    const store = this.store
    const draft = store.read([seq], true, true).get(seq)
    if (draft === undefined) return undefined
    this.#carry(seq, draft)
    const newFields = detectFields(store.plan, draft, store.schema.enable_nested_fields, 'coerce_or_drop')
    const plan =
      newFields.length === 0
        ? store.plan
        : planOf({ ...store.schema, fields: [...store.schema.fields, ...newFields] })
    const vectors: Vectors = new Map()
    for (const field of plan.fields) {
      // A value that does not fit its field stays in the document and out of the index.
      const alone: Plan = {
        ...plan,
        fields: [field],
        vectors: plan.vectors.filter((other) => other === field),
      }
      try {
        coerceDocument(alone, draft, 'coerce_or_drop', true)
        for (const [name, vector] of takeVectors(alone, draft)) vectors.set(name, vector)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (field.kind === 'vector')
          for (const leaf of leaves(draft, field.name, field.path)) replace(leaf, undefined)
      }
    }
    const queued: FieldSlot[] = []
    for (const field of plan.embedded) {
      if (vectors.get(field.name) || store.indexOf(field).get(seq) !== undefined) continue
      const text = embeddingText(field, plan, draft)
      if (text === undefined) continue
      const made = this.embedders.embedNow(field.field, text)
      if (made === undefined) queued.push(field.slot as FieldSlot)
      else vectors.set(field.name, made)
    }
    return { draft, vectors, queued, newFields }
  }

  /** Adds the vectors of dropped fields that a document has not got back yet. */
  #carry(seq: number, draft: Draft): void {
    for (const { name, table } of this.#job?.carried ?? []) {
      const field = this.store.plan.fields.find((plan) => plan.name === name)
      const [row] = this.store.sql
        .exec<{ vector: ArrayBuffer }>(`SELECT vector FROM ${table} WHERE seq = ?`, seq)
        .toArray()
      if (row === undefined) continue
      const vector = new Float32Array(row.vector)
      if (field?.kind === 'vector' && field.field.num_dim !== vector.length) continue
      place(draft, name, field?.path, Array.from(vector, shortest))
    }
  }
}
