/** The models of a collection's embedding fields. */
import { ApiError } from '../../errors'
import { silenceOf } from '../../models/call'
import { createEmbeddingModel, probeDimensions } from '../../models/embedders'
import type { EmbeddingModel } from '../../models/embedding-model'
import { withRetries } from '../../models/retry'
import { maskConfig, openConfig } from '../embedding-secrets'
import type { EmbeddingModelConfig, Field } from '../types'

const configOf = (field: Field): EmbeddingModelConfig => field.embed?.model_config as EmbeddingModelConfig

/** The dimensions that a schema's owner asked for; a field's `num_dim` may as well be what the model answered. */
const askedDimensions = (field: Field): number | undefined =>
  field.asks_dimensions === true ? field.num_dim : undefined

/**
 * Finds out the dimensions of embedding fields by asking their models.
 * @throws ApiError 400 or 408 with the provider's message
 */
export async function discoverDimensions(fields: Field[], env: Cloudflare.Env): Promise<void> {
  for (const field of fields) {
    if (field.embed === undefined) continue
    const expected = field.num_dim
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

/** A model whose credentials are opened at its first call, and whose queries survive a fault that passes. */
function opening(config: EmbeddingModelConfig, env: Cloudflare.Env, dimensions?: number): EmbeddingModel {
  // No call is made yet, so it is enough that there are credentials, whatever stands in their place.
  const { name, batchSize, embedNow } = createEmbeddingModel(maskConfig(config), env, dimensions)
  let opened: EmbeddingModel | undefined
  return {
    name,
    batchSize,
    embedNow,
    embed: async (texts, kind) => {
      opened ??= createEmbeddingModel(await openConfig(config, env), env, dimensions)
      const model = opened
      if (kind === 'document') return model.embed(texts, kind)
      // Somebody waits for a query. Documents have all the time that they need, and their queue tries again.
      return withRetries(() => model.embed(texts, kind), silenceOf(config) * 1000)
    },
  }
}

/** The embedders of one collection. */
export class Embedders {
  #env: Cloudflare.Env
  // A changed schema brings new objects, perhaps with a new key.
  #models = new WeakMap<EmbeddingModelConfig, EmbeddingModel>()

  constructor(env: Cloudflare.Env) {
    this.#env = env
  }

  /** @throws ApiError 400 when this deployment does not serve the model */
  model(field: Field): EmbeddingModel {
    const config = configOf(field)
    let model = this.#models.get(config)
    if (model === undefined) {
      model = opening(config, this.#env, askedDimensions(field))
      this.#models.set(config, model)
    }
    return model
  }

  /**
   * The vector of a document's text, where the model runs here.
   * @returns undefined when it is a call away, or cannot be called at all: its queue finds out (queue.ts)
   */
  embedNow(field: Field, text: string): Float32Array | undefined {
    return this.#builtIn(field)?.(text)
  }

  /** Whether a field's model runs here. */
  isBuiltIn(field: Field): boolean {
    return this.#builtIn(field) !== undefined
  }

  #builtIn(field: Field): ((text: string) => Float32Array) | undefined {
    try {
      return this.model(field).embedNow
    } catch (error) {
      if (error instanceof ApiError) return undefined
      throw error
    }
  }
}
