/**
 * Embeds the pending documents of one field.
 *
 * A vector is stored only if the document is still pending and its text is still the one that was sent. So no vector
 * ever belongs to another text, whatever happens to the document or the object meanwhile. A text that several
 * documents share is sent once.
 */

import * as v from 'valibot'
import { ApiError, logFailure } from '../../errors'
import { Gate } from '../../lib/few'
import { once } from '../../lib/once'
import type { EmbeddingModel } from '../../models/embedding-model'
import { ProviderError } from '../../models/provider-error'
import { embeddingText } from '../documents/join-keys'
import type { Store } from '../documents/store'
import { hasRows } from '../fragment'
import { readMeta, writeMeta } from '../meta'
import { type FieldSlot, packedTable, replacementOf, type StoredSchema, vectorsTable } from '../schema/layout'
import type { FieldPlan } from '../schema/plan'
import { createVectorsTable } from '../schema/tables'
import type { Field } from '../types'
import { type Embedders, servedNow, serverOf } from '../vectors/embedders'
import type { Background } from '../work'

/**
 * Concurrent calls of a collection. An object waits for the headers of at most six replies, and searches and Vectorize need the
 * others.
 */
const PARALLEL_CALLS = 4
/** Characters in one call, unless a single text is longer. Providers count the tokens of a whole call. */
const CALL_CHARACTERS = 400_000

/** Why a model is not being called. */
const stallShape = once(() =>
  v.object({
    message: v.string(),
    /** consecutive ones */
    failures: v.number(),
    /** unix milliseconds of the next try */
    until: v.number(),
  }),
)

type Stall = v.InferOutput<ReturnType<typeof stallShape>>

/** The `meta` key of a slot's stall. */
const stallKey = ({ slot }: FieldSlot): string => `embedding_stall:${slot}`

interface QueueSurroundings {
  storage: DurableObjectStorage
  store: Store
  embedders: Embedders
  /** limits all calls of the collection */
  gate: Gate
  /** the calls that one field may make at once, so that a provider that hangs leaves some to the other fields */
  share(): number
  /** called when no document of the slot is pending any more */
  onDrained(slot: FieldSlot): void
}

/** Sequence numbers of documents, by their text. */
type Texts = Map<string, number[]>

class EmbeddingQueue implements Background {
  readonly name = 'embedding'
  #around: QueueSurroundings
  #slot: FieldSlot
  #parallel = PARALLEL_CALLS
  /**
   * the most texts that the provider takes in a call, as far as known: self-hosted servers may take fewer than OpenAI
   */
  #batchSize = Number.POSITIVE_INFINITY
  #running: Promise<number | undefined> | undefined

  constructor(slot: FieldSlot, around: QueueSurroundings) {
    this.#slot = slot
    this.#around = around
  }

  get slot(): number {
    return this.#slot.slot
  }

  get stall(): Stall | undefined {
    return readMeta(this.#around.store.sql, stallKey(this.#slot), stallShape())
  }

  /** Clears the stall, so that the model is called again. */
  clearStall(): void {
    if (this.stall !== undefined) writeMeta(this.#around.store.sql, stallKey(this.#slot), undefined)
  }

  /** The field at present, undefined if it is gone. */
  get #plan(): FieldPlan | undefined {
    const { embedded, replacing } = this.#around.store.plan
    return [...embedded, ...replacing].find(({ slot }) => slot?.slot === this.#slot.slot)
  }

  /** Embeds some batches. Concurrent callers share one step. */
  step(): Promise<number | undefined> {
    this.#running ??= this.#step().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #step(): Promise<number | undefined> {
    const { store, embedders, onDrained } = this.#around
    const plan = this.#plan
    if (store.closed || plan === undefined) return undefined
    if (store.pending.next(this.#slot, 1).length === 0) {
      this.clearStall()
      onDrained(this.#slot)
      return undefined
    }
    const rest = (this.stall?.until ?? 0) - Date.now()
    if (rest > 0) return rest

    let failure: unknown
    let stored = 0
    try {
      const model = embedders.model(plan.field)
      const batchSize = Math.min(model.batchSize, this.#batchSize)
      const texts = this.#texts(plan, batchSize)
      const calls = cut([...texts.keys()], batchSize).values()
      const trial = new Trial(model, store.schema.name)
      const work = async (): Promise<void> => {
        for (const call of calls) {
          if (failure !== undefined) return
          await this.#embed(call, plan, trial, (some, vectors) => {
            stored += some.length
            this.#store(texts, some, vectors)
          }).catch((error) => {
            failure ??= error
          })
        }
      }
      await Promise.all(Array.from({ length: this.#most }, work))
    } catch (error) {
      failure = error
    }
    if (store.closed) return undefined
    // A failure with an old key or model says nothing about the present one.
    if (failure !== undefined && this.#plan?.field !== plan.field) return 0
    if (failure !== undefined) return this.#stalled(failure, stored > 0)
    this.#parallel = Math.min(this.#around.share(), this.#parallel + 1)
    this.clearStall()
    return 0
  }

  /** Stores a failure. @returns how long to wait */
  #stalled(error: unknown, progressed: boolean): number {
    // An overloaded provider gets one call at a time, and one more after each success.
    this.#parallel = 1
    const failures = progressed ? 0 : (this.stall?.failures ?? 0)
    const pause = pauseAfter(error, failures)
    const { schema, sql } = this.#around.store
    const message = messageOf(error, schema.name)
    const stall: Stall = { message, failures: failures + 1, until: Date.now() + pause }
    writeMeta(sql, stallKey(this.#slot), stall)
    return pause
  }

  get #most(): number {
    return Math.min(this.#parallel, this.#around.share())
  }

  /** The next texts: as many as one step sends. */
  #texts(plan: FieldPlan, batchSize: number): Texts {
    const { store } = this.#around
    const texts: Texts = new Map()
    let characters = 0
    for (const seq of store.pending.next(this.#slot, this.#most * batchSize)) {
      const text = this.#textOf(plan, seq)
      if (text === undefined) {
        store.pending.settle(this.#slot, seq)
        continue
      }
      const same = texts.get(text)
      if (same !== undefined) {
        same.push(seq)
        continue
      }
      texts.set(text, [seq])
      characters += text.length
      if (characters >= this.#most * CALL_CHARACTERS) break
    }
    return texts
  }

  #textOf(plan: FieldPlan, seq: number): string | undefined {
    const { store } = this.#around
    const draft = store.read([seq], true, true).get(seq)
    return draft && embeddingText(plan, store.plan, draft)
  }

  /**
   * Embeds texts. If the model refuses a batch, it is halved until the texts that the model refuses by themselves are
   * found. So one bad text does not block others. If the model accepts all of them in the end, the batch was too
   * large.
   * @param onDone gets texts with their vectors, or with the reason why they have none
   * @returns how many the model refused
   * @throws ApiError, ProviderError when the fault is not in the texts
   */
  async #embed(
    texts: string[],
    plan: FieldPlan,
    trial: Trial,
    onDone: (texts: string[], vectors: Float32Array[] | string) => void,
  ): Promise<number> {
    if (this.#around.store.closed) return 0
    try {
      const vectors = await this.#around.gate.pass(() => trial.model.embed(texts, 'document'))
      onDone(texts, checked(vectors, plan, texts.length))
      return 0
    } catch (error) {
      if (causeOf(error) !== 'texts') throw error
      // A missing or misconfigured model may answer 400 to anything.
      await trial.passed(error)
      if (texts.length === 1) {
        onDone(texts, messageOf(error, this.#around.store.schema.name))
        return 1
      }
      const half = Math.ceil(texts.length / 2)
      const refused =
        (await this.#embed(texts.slice(0, half), plan, trial, onDone)) +
        (await this.#embed(texts.slice(half), plan, trial, onDone))
      if (refused === 0) this.#batchSize = Math.min(this.#batchSize, half)
      return refused
    }
  }

  #store(texts: Texts, some: string[], vectors: Float32Array[] | string): void {
    const { storage, store } = this.#around
    const plan = this.#plan
    if (store.closed || plan === undefined) return
    store.transact(storage, () => {
      for (const [number, text] of some.entries()) {
        for (const seq of texts.get(text) ?? []) {
          // The document may have changed during the call, been deleted, or got a vector from its owner.
          if (!store.pending.has(this.#slot, seq) || this.#textOf(plan, seq) !== text) continue
          this.#put(plan, seq, typeof vectors === 'string' ? vectors : vectors[number]!)
        }
      }
      store.flush()
    })
  }

  #put(plan: FieldPlan, seq: number, vector: Float32Array | string): void {
    const { store } = this.#around
    if (typeof vector === 'string') {
      store.pending.refuse(this.#slot, seq, vector)
      return
    }
    try {
      store.putVector(plan, seq, vector)
      store.pending.settle(this.#slot, seq)
    } catch (error) {
      // Memory has no room for it: recorded as this document's error, as a write would report it.
      if (!(error instanceof ApiError)) throw error
      store.pending.refuse(this.#slot, seq, error.message)
    }
  }
}

/** Checks whether a model takes any text at all. It is called once, when the model refuses some. */
class Trial {
  #trying: Promise<unknown> | undefined

  constructor(
    readonly model: EmbeddingModel,
    readonly collection: string,
  ) {}

  /** @throws `refusal` as a fault of the setup, or the error that prevented the check */
  async passed(refusal: unknown): Promise<void> {
    this.#trying ??= this.model.embed(['typesense'], 'document')
    try {
      await this.#trying
    } catch (error) {
      throw causeOf(error) === 'texts' ? new ApiError(400, messageOf(refusal, this.collection)) : error
    }
  }
}

/** @throws ApiError when the vectors do not fit the field */
function checked(vectors: Float32Array[], { field }: FieldPlan, count: number): Float32Array[] {
  const wrong = vectors.find(({ length }) => length !== field.num_dim)
  if (wrong !== undefined) {
    throw new ApiError(
      400,
      `The model of field \`${field.name}\` makes vectors of ${wrong.length} dimensions, not of ${field.num_dim}.`,
    )
  }
  if (vectors.length !== count) {
    throw new ProviderError(400, `The model of field \`${field.name}\` left out vectors.`, { upstream: 200 })
  }
  return vectors
}

/** Splits texts into calls that a provider accepts. */
function cut(texts: string[], batchSize: number): string[][] {
  const calls: string[][] = []
  let call: string[] = []
  let characters = 0
  for (const text of texts) {
    if (call.length === batchSize || (call.length > 0 && characters + text.length > CALL_CHARACTERS)) {
      calls.push(call)
      call = []
      characters = 0
    }
    call.push(text)
    characters += text.length
  }
  if (call.length > 0) calls.push(call)
  return calls
}

// =============================================================================
// Embeds a collection's documents in the background, with a queue for each embedding field.

export class EmbeddingQueues {
  #around: QueueSurroundings
  #queues = new Map<number, EmbeddingQueue>()

  /** @param onReplaced a field has switched to its new vectors, and tables are to be dropped */
  constructor(around: Omit<QueueSurroundings, 'onDrained' | 'gate' | 'share'>, onReplaced: () => void) {
    const { storage, store } = around
    this.#around = {
      ...around,
      gate: new Gate(PARALLEL_CALLS),
      share: () => Math.max(1, Math.floor(PARALLEL_CALLS / this.#called())),
      onDrained: (slot) => {
        if (completeReplacement(storage, store, slot)) onReplaced()
      },
    }
  }

  /** The number of fields with remote models. */
  #called(): number {
    const { store, embedders } = this.#around
    const { embedded, replacing } = store.plan
    return Math.max(1, [...embedded, ...replacing].filter(({ field }) => !embedders.isBuiltIn(field)).length)
  }

  /** The queues of all present fields. */
  works(): EmbeddingQueue[] {
    const { embedded, replacing } = this.#around.store.plan
    const slots = [...embedded, ...replacing].flatMap(({ slot }) => slot ?? [])
    const numbers = new Set(slots.map(({ slot }) => slot))
    for (const slot of this.#queues.keys()) if (!numbers.has(slot)) this.#queues.delete(slot)
    return slots.map((slot) => {
      const queue = this.#queues.get(slot.slot) ?? new EmbeddingQueue(slot, this.#around)
      this.#queues.set(slot.slot, queue)
      return queue
    })
  }

  queueOf(slot: number): EmbeddingQueue | undefined {
    if (!this.#queues.has(slot)) this.works()
    return this.#queues.get(slot)
  }

  /** The queues with work left, even if only the switch to finished new vectors. */
  waiting(): EmbeddingQueue[] {
    const { pending, plan } = this.#around.store
    const replacing = new Set(plan.replacing.map(({ slot }) => slot!.slot))
    return this.works().filter(({ slot }) => replacing.has(slot) || pending.next({ slot }, 1).length > 0)
  }

  /** Retries everything: the owner has changed something. */
  retry(): void {
    this.#around.store.pending.retryRefused()
    for (const queue of this.works()) queue.clearStall()
  }

  /** Whether any field is being replaced without a stall. */
  get replacing(): boolean {
    return this.#around.store.plan.replacing.some(({ slot }) => this.queueOf(slot!.slot)?.stall === undefined)
  }

  /**
   * Takes a step towards replacing fields by the built-in model. A PATCH of the schema waits for this, since no
   * provider is involved.
   * @returns whether all is done
   */
  async replaceAtOnce(): Promise<boolean> {
    const { store, embedders } = this.#around
    const next = store.plan.replacing.find(({ field }) => embedders.isBuiltIn(field))
    return next === undefined || (await this.queueOf(next.slot!.slot)?.step()) !== 0
  }

  /** What GET /collections/:name reports; nothing when all is done. */
  summary(): Record<string, unknown> {
    const { pending, plan } = this.#around.store
    const counts = pending.counts()
    const refused = pending.refused()
    const stalls = this.works().flatMap(({ stall }) => stall ?? [])
    const summary: Record<string, unknown> = {}
    if (counts.size > 0) summary.pending_embeddings = [...counts.values()].reduce((sum, count) => sum + count)
    if (refused !== undefined) {
      summary.refused_embeddings = refused.count
      summary.embedding_error = `Document \`${refused.id}\`: ${refused.error}`
    }
    // A stalled queue matters more than a refused document, so its message wins.
    if (stalls[0] !== undefined) summary.embedding_error = stalls[0].message
    if (plan.replacing.length > 0) {
      summary.replacing_embeddings = plan.replacing.map(({ name, field, slot }) => ({
        name,
        num_dim: field.num_dim,
        model_name: field.embed?.model_config.model_name,
        pending: counts.get(slot!.slot) ?? 0,
      }))
    }
    return summary
  }
}

// =============================================================================
// Decides from a failed call to an embedding model what to do next.

/**
 * The cause of a failure: the texts; the moment (the provider is busy, broken or unreachable); or the setup (key,
 * quota, URL, model), which only the owner can change.
 */
type Cause = 'texts' | 'moment' | 'setup'

export function causeOf(error: unknown): Cause {
  if (!(error instanceof ProviderError)) return error instanceof ApiError ? 'setup' : 'moment'
  if (error.fault === 'denied' || error.fault === 'exhausted') return 'setup'
  // An invalid reply with status 200 says nothing about the texts.
  return error.fault === 'refused' && error.upstream !== 200 ? 'texts' : 'moment'
}

/**
 * A failure's message for the owner: the provider's words, which contain no secrets.
 * @param collection its name, for the log
 */
export function messageOf(error: unknown, collection: string): string {
  if (error instanceof ApiError) return error.message
  logFailure('embedding failed', error, { collection })
  return 'The embedding model did not answer.'
}

/** The first and the longest pause, in milliseconds. */
const PAUSES: Record<Exclude<Cause, 'texts'>, readonly [number, number]> = {
  moment: [1_000, 300_000],
  setup: [30_000, 3_600_000],
}

/** The longest pause, even if a provider asks for more. */
const LONGEST_MS = 3_600_000

/**
 * How long to leave a provider alone: exponential backoff with jitter over half of it, and at least as long as the
 * provider asked.
 * @param failures consecutive ones before this
 * @returns milliseconds
 */
export function pauseAfter(error: unknown, failures: number, random: () => number = Math.random): number {
  const [first, longest] = PAUSES[causeOf(error) === 'setup' ? 'setup' : 'moment']
  const whole = Math.min(longest, first * 2 ** failures)
  const asked = error instanceof ProviderError ? (error.retryAfterMs ?? 0) : 0
  return Math.min(LONGEST_MS, Math.max(asked, whole / 2 + (whole / 2) * random()))
}

// =============================================================================
// Replaces the model of an embedding field. Until every document has its new vector, searches and the schema show the
// old field. Then one transaction switches it.
//
// Vectors of two models cannot be compared. A field with both would rank documents by which model made their vectors.
// So the new vectors go to a table of their own (`schema.replacing`), and a document that is written meanwhile is
// embedded for both.

/** Starts making the vectors that `field` asks for. Changes `schema` in place; belongs in a transaction. */
export function beginReplacement(store: Store, schema: StoredSchema, field: Field): void {
  cancelReplacement(store, schema, field.name)
  const slot: FieldSlot = { slot: schema.nextSlot++ }
  createVectorsTable(store.sql, slot)
  schema.replacing = { ...schema.replacing, [field.name]: { field, slot } }
  store.pending.markAll(slot)
}

/** Cancels a replacement. Changes `schema` in place; belongs in a transaction. */
export function cancelReplacement(store: Store, schema: StoredSchema, name: string): void {
  const begun = replacementOf(schema, name)
  if (begun === undefined) return
  discardVectors(store, begun.slot)
  delete schema.replacing?.[name]
}

/**
 * Switches a field to its new vectors, which are complete.
 * @returns false when `slot` is not a replacement's
 */
function completeReplacement(storage: DurableObjectStorage, store: Store, slot: FieldSlot): boolean {
  const schema = structuredClone(store.schema)
  const found = Object.entries(schema.replacing ?? {}).find(([, begun]) => begun.slot.slot === slot.slot)
  if (found === undefined) return false
  const [name, { field }] = found
  const old = schema.slots[name] as FieldSlot
  schema.fields = schema.fields.map((other) => (other.name === name ? field : other))
  schema.slots[name] = slot
  delete schema.replacing?.[name]
  store.transact(storage, () => {
    store.saveSchema(schema)
    discardVectors(store, old)
  })
  return true
}

/** Names of tables to be dropped. */
const tables = once(() => v.array(v.string()))

/**
 * Discards the vectors of an embedding field, pending ones included. The background drops the table, which can be as
 * large as the rest of the collection.
 */
export function discardVectors(store: Store, slot: FieldSlot): void {
  store.pending.forgetSlot(slot)
  writeMeta(store.sql, stallKey(slot), undefined)
  store.vectorFields.retire(slot)
  discard(store.sql, [vectorsTable(slot), packedTable(slot)])
}

/** Marks tables whose rows have a `seq` to be dropped. */
export const discard = (sql: SqlStorage, names: readonly string[]): void =>
  writeMeta(sql, 'discarded', [...(readMeta(sql, 'discarded', tables()) ?? []), ...names])

/** Vectors deleted in a step, and blocks of vectors: 3 MB at 1,536 dimensions, and at 384. */
const [DISCARD_ROWS, DISCARD_BLOCKS] = [500, 32]

/** Drops discarded tables, a piece at a time. */
export const discarding = (storage: DurableObjectStorage): Background => ({
  name: 'discarding',
  async step() {
    const { sql } = storage
    const [table, ...others] = readMeta(sql, 'discarded', tables()) ?? []
    if (table === undefined) return undefined
    storage.transactionSync(() => {
      const rows = table.startsWith('packed') ? DISCARD_BLOCKS : DISCARD_ROWS
      sql.exec(`DELETE FROM ${table} WHERE seq IN (SELECT seq FROM ${table} LIMIT ${rows})`)
      if (hasRows(sql, `SELECT 1 FROM ${table} LIMIT 1`)) return
      sql.exec(`DROP TABLE ${table}`)
      writeMeta(sql, 'discarded', others.length === 0 ? undefined : others)
    })
    return 0
  },
})

// =============================================================================
// Another version of Parley may have other built-in models under the same names. Then a collection's vectors are made
// again in the background, as if its field got another model. Until all are there, searches use the
// old vectors with the model that made them.

const isBuiltIn = (model: string | undefined): boolean => model?.startsWith('local/') === true

/**
 * Whether a field's built-in model has changed. Only built-in models are replaced: a provider's vectors cost money,
 * so their owner decides.
 */
function isOutdated(field: Field, env: Cloudflare.Env): boolean {
  if (field.embed === undefined) return false
  const current = servedNow(field, env).embed?.served_by
  const server = serverOf(field, env)
  return current !== server && isBuiltIn(current) && isBuiltIn(server)
}

/** Starts replacing the vectors of outdated fields. */
export function upgradeEmbeddings(storage: DurableObjectStorage, store: Store, env: Cloudflare.Env): void {
  const outdated = store.schema.fields.filter(
    (field) => isOutdated(field, env) && replacementOf(store.schema, field.name) === undefined,
  )
  if (outdated.length === 0) return
  storage.transactionSync(() => {
    const schema = structuredClone(store.schema)
    for (const field of outdated) beginReplacement(store, schema, servedNow(field, env))
    store.saveSchema(schema)
  })
}
