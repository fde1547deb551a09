/**
 * Embeds the pending documents of one field.
 *
 * A vector is stored only if the document is still pending and its text is still the one that was sent. So no vector
 * ever belongs to another text, whatever happens to the document or the object meanwhile. A text that several
 * documents share is sent once.
 */
import * as v from 'valibot'
import { ApiError } from '../../errors'
import type { Gate } from '../../lib/few'
import { once } from '../../lib/once'
import type { EmbeddingModel } from '../../models/embedding-model'
import { ProviderError } from '../../models/provider-error'
import { embeddingText } from '../documents/embedding-text'
import type { Store } from '../documents/store'
import { readMeta, writeMeta } from '../meta'
import type { FieldSlot } from '../schema/layout'
import type { FieldPlan } from '../schema/plan'
import type { Embedders } from '../vectors/embedders'
import type { Background } from '../work'
import { causeOf, messageOf, pauseAfter } from './failure'

/**
 * Concurrent calls of a collection. An object waits for the headers of at most six replies, and searches and Vectorize need the
 * others.
 */
export const PARALLEL_CALLS = 4
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

export type Stall = v.InferOutput<ReturnType<typeof stallShape>>

/** The `meta` key of a slot's stall. */
export const stallKey = ({ slot }: FieldSlot): string => `embedding_stall:${slot}`

export interface QueueSurroundings {
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

export class EmbeddingQueue implements Background {
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
    try {
      storage.transactionSync(() => {
        for (const [number, text] of some.entries()) {
          for (const seq of texts.get(text) ?? []) {
            // The document may have changed during the call, been deleted, or got a vector from its owner.
            if (!store.pending.has(this.#slot, seq) || this.#textOf(plan, seq) !== text) continue
            this.#put(plan, seq, typeof vectors === 'string' ? vectors : vectors[number]!)
          }
        }
        store.flush()
      })
    } catch (error) {
      store.reset()
      throw error
    }
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
