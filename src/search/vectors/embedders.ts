/** The models of a collection's embedding fields. */
import { ApiError, unlessRefused } from '../../errors'
import { inBackground, settlesWithin } from '../../lib/waiting'
import { silenceOf } from '../../models/call'
import {
  createEmbeddingModel,
  formerlyServedBy,
  probeDimensions,
  requireKnownModel,
  servedBy,
} from '../../models/embedders'
import type { EmbeddingModel } from '../../models/embedding-model'
import { systemClock, withRetries } from '../../models/resilient'
import { CLUSTER_HINT, MAX_MATRIX_BYTES } from '../limits'
import { maskConfig, openConfig } from '../schema/embedding-secrets'
import type { FieldSlot } from '../schema/layout'
import type { FieldPlan, Plan } from '../schema/plan'
import type { EmbedConfig, EmbeddingModelConfig, Field } from '../types'
import type { VectorIndex, VectorIndexes } from './vector-index'

const configOf = (field: Field): EmbeddingModelConfig => field.embed?.model_config as EmbeddingModelConfig

/** The name of the model that made a field's vectors and still makes new ones. */
export function serverOf({ embed, num_dim }: Field, env: Cloudflare.Env): string {
  const { model_config, served_by } = embed as EmbedConfig
  return served_by ?? formerlyServedBy(model_config.model_name, num_dim, env)
}

/** The field with the model that now runs under the name in its schema. */
export function servedNow(field: Field, env: Cloudflare.Env): Field {
  const { served_by: _, ...embed } = field.embed as EmbedConfig
  const server = servedBy(embed.model_config.model_name, env)
  return { ...field, embed: server === undefined ? embed : { ...embed, served_by: server } }
}

/**
 * Asks the models of embedding fields for their dimensions, and records which model runs under each name.
 * @throws ApiError 400 for an unknown model name; 400 or 408 with the provider's message
 */
export async function discoverDimensions(fields: Field[], env: Cloudflare.Env): Promise<void> {
  for (const field of fields) {
    if (field.embed === undefined) continue
    const expected = field.num_dim
    requireKnownModel(configOf(field).model_name)
    field.embed = servedNow(field, env).embed
    const config = await openConfig(configOf(field), env)
    if (field.asks_dimensions === true) {
      const model = createEmbeddingModel(config, env, expected)
      const [vector] = await model.embed(['typesense'], 'document')
      field.num_dim = vector?.length
    } else {
      field.num_dim = await probeDimensions(config, env)
    }
    if (expected !== undefined && field.num_dim !== expected) {
      throw new ApiError(400, `The model of field \`${field.name}\` does not make ${expected} dimensions.`)
    }
  }
}

/** Creates a model that opens its credentials at its first call, and retries queries after passing faults. */
function opening(config: EmbeddingModelConfig, env: Cloudflare.Env, dimensions?: number): EmbeddingModel {
  // No call is made here, so masked credentials will do.
  const { name, weight, batchSize, embedNow, ready, reader, words } = createEmbeddingModel(
    maskConfig(config),
    env,
    dimensions,
  )
  const opened: Partial<Record<'document' | 'query', EmbeddingModel>> = {}
  return {
    name,
    ...(weight !== undefined && { weight }),
    batchSize,
    embedNow,
    words,
    ready,
    reader,
    embed: async (texts, kind, { timeoutMs, attempts } = {}) => {
      // Documents are embedded in the background.
      opened[kind] ??= createEmbeddingModel(
        await openConfig(config, env),
        kind === 'document' ? inBackground(env) : env,
        dimensions,
      )
      const model = opened[kind]
      if (kind === 'document') return model.embed(texts, kind)
      // Retry queries here, because somebody waits for them. For documents, the queue retries later.
      const work = withRetries(
        () => model.embed(texts, kind),
        silenceOf(config) * 1000,
        systemClock,
        attempts,
      )
      return timeoutMs === undefined || embedNow !== undefined ? work : within(timeoutMs, work)
    },
  }
}

/** @throws ApiError 408 when the work takes longer. The work continues, and its outcome is dropped. */
async function within<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  if (await settlesWithin(milliseconds, work)) return work
  throw new ApiError(
    408,
    'The embedding model did not answer within `remote_embedding_timeout_ms`. Raise it, or search by words alone.',
  )
}

/** The embedders of one collection. */
export class Embedders {
  #env: Cloudflare.Env
  // A changed schema has new config objects, perhaps with a new key.
  #models = new WeakMap<EmbedConfig, EmbeddingModel>()

  constructor(env: Cloudflare.Env) {
    this.#env = env
  }

  /** @throws ApiError 400 when this deployment does not serve the model */
  model(field: Field): EmbeddingModel {
    const embed = field.embed as EmbedConfig
    let model = this.#models.get(embed)
    if (model === undefined) {
      model = this.#serving(field)
      this.#models.set(embed, model)
    }
    return model
  }

  #serving(field: Field): EmbeddingModel {
    const config = configOf(field)
    const model_name = serverOf(field, this.#env)
    // `num_dim` by itself may be the number that the model reported.
    const asked = field.asks_dimensions === true ? field.num_dim : undefined
    if (model_name === config.model_name) return opening(config, this.#env, asked)
    // The key was meant for another model.
    const { api_key: _, ...rest } = config
    return opening({ ...rest, model_name }, this.#env, field.num_dim)
  }

  /** Loads the built-in models of fields. If one fails to load, its queue retries and reports why. */
  async ready(plans: FieldPlan[]): Promise<void> {
    for (const { field } of plans) {
      try {
        await this.model(field).ready?.()
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
      }
    }
  }

  /**
   * The vector of a text, if the model runs in this Worker.
   * @returns undefined when it has to be called, is not `ready`, or cannot be called at all; then its queue takes
   *   over
   */
  embedNow(field: Field, text: string): Float32Array | undefined {
    return this.#builtIn(field)?.(text)
  }

  /** Whether a field's model runs in this Worker. */
  isBuiltIn(field: Field): boolean {
    return this.#builtIn(field) !== undefined
  }

  #builtIn(field: Field): EmbeddingModel['embedNow'] {
    return unlessRefused(() => this.model(field).embedNow)
  }
}

// =============================================================================
// The vector indexes of one collection, a slot each, and the memory that they share.

export class VectorFields {
  #indexes = new Map<number, VectorIndex>()

  constructor(private readonly from: VectorIndexes) {}

  index(field: Field, slot: FieldSlot): VectorIndex {
    let index = this.#indexes.get(slot.slot)
    if (index === undefined) {
      index = this.from.index(field, slot)
      this.#indexes.set(slot.slot, index)
    }
    return index
  }

  /** Call this when the vectors of a slot are no longer needed, before their table is dropped. */
  retire({ slot }: FieldSlot): void {
    this.from.retire(slot)
    this.#indexes.get(slot)?.reset()
    this.#indexes.delete(slot)
  }

  /** Packs what was written. Belongs in the transaction. */
  flush(): void {
    for (const index of this.#indexes.values()) index.flush()
  }

  /** Forgets what is in memory: a transaction was rolled back, and a slot that it gave may be given to another field. */
  reset(): void {
    for (const index of this.#indexes.values()) index.reset()
    this.#indexes.clear()
  }

  /**
   * Whether a search can compare more vectors.
   * @param filled fields that a document has vectors for
   * @param seq the document, undefined for a new one
   * @throws ApiError 422
   */
  requireRoom(plan: Plan, filled: FieldPlan[], seq: number | undefined): void {
    if (filled.length === 0) return
    let bytes = 0
    let added: Field | undefined
    for (const { field, slot } of [...plan.vectors, ...plan.replacing]) {
      const index = this.index(field, slot as FieldSlot)
      const isFilled = filled.some((other) => other.slot?.slot === slot?.slot)
      const adds = isFilled && (seq === undefined || !index.has(seq))
      if (adds) added = field
      bytes += index.memory(index.size + (adds ? 1 : 0))
    }
    if (added === undefined || bytes <= MAX_MATRIX_BYTES) return
    throw new ApiError(
      422,
      `Field \`${added.name}\` takes no more vectors: without Vectorize those of a collection may take ${MAX_MATRIX_BYTES} bytes of memory. ${(added.vec_dist ?? 'cosine') === 'cosine' ? `Bind a Vectorize index of ${added.num_dim} dimensions` : 'Vectorize takes fields whose `vec_dist` is `cosine`'}, or ${CLUSTER_HINT} (docs/limits.md, "What happens when vectors fill the memory?").`,
    )
  }
}
