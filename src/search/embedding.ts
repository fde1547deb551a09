/** Vectors that a collection makes itself: what text they are made from, and the calls that make them. */
import { ApiError } from '../errors'
import { createEmbeddingModel, probeDimensions } from '../models/embedders'
import type { EmbeddingModel } from '../models/embedding-model'
import type { Draft } from './document'
import { openConfig } from './embedding-secrets'
import { leaves } from './nested'
import type { FieldPlan, Plan } from './plan'
import type { EmbeddingModelConfig, Field } from './types'

/** A text that needs a vector. */
export interface EmbeddingRequest {
  plan: FieldPlan
  text: string
}

/** What came of embedding texts: a vector, or why there is none. */
export type Embedded = Map<string, Float32Array | ApiError>

/** Calls to a provider that are made at the same time, for one batch of documents. */
const PARALLEL_CALLS = 4

export const embeddedKey = ({ plan, text }: EmbeddingRequest): string => `${plan.name}\n${text}`

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

/** The text that a document's vector is made from; undefined when all of its sources are missing. */
export function embeddingText(plan: FieldPlan, sources: Plan, draft: Draft): string | undefined {
  const { embed } = plan.field
  const values: string[] = []
  for (const name of embed?.from ?? []) {
    const path = sources.fields.find((field) => field.name === name)?.path
    for (const { value } of leaves(draft, name, path)) {
      for (const part of Array.isArray(value) ? value : [value])
        if (typeof part === 'string') values.push(part)
    }
  }
  if (values.length === 0) return undefined
  const prefix = embed?.model_config.indexing_prefix?.trimEnd() ?? ''
  return (prefix === '' ? '' : `${prefix} `) + values.map((value) => `${value} `).join('')
}

/**
 * Checks that a new document has what its vector is made from.
 * @throws ApiError 400
 */
export function requireSources(plan: FieldPlan, sources: Plan, draft: Draft): void {
  for (const name of plan.field.embed?.from ?? []) {
    const source = sources.fields.find((field) => field.name === name)
    if (source === undefined) {
      throw new ApiError(400, `Field \`${plan.name}\` has invalid fields to create embeddings from.`)
    }
    if (!source.field.optional && leaves(draft, name, source.path).length === 0) {
      throw new ApiError(400, `Field \`${name}\` is needed to create embedding.`)
    }
  }
  if (!plan.field.optional && embeddingText(plan, sources, draft) === undefined) {
    throw new ApiError(
      400,
      `No valid fields found to create embedding for \`${plan.name}\`, please provide at least one valid field or make the embedding field optional.`,
    )
  }
}

/** A model whose credentials are opened at its first call. */
function opening(config: EmbeddingModelConfig, env: Cloudflare.Env, dimensions?: number): EmbeddingModel {
  const { name, remote, batchSize } = createEmbeddingModel(config, env, dimensions)
  let opened: EmbeddingModel | undefined
  return {
    name,
    remote,
    batchSize,
    embed: async (texts, kind) => {
      opened ??= createEmbeddingModel(await openConfig(config, env), env, dimensions)
      return opened.embed(texts, kind)
    },
  }
}

/** The embedders of one collection. */
export class Embedders {
  #env: Cloudflare.Env
  #models = new Map<string, { config: EmbeddingModelConfig; model: EmbeddingModel }>()

  constructor(env: Cloudflare.Env) {
    this.#env = env
  }

  model(field: Field): EmbeddingModel {
    const config = configOf(field)
    const known = this.#models.get(field.name)
    // A changed schema brings a new object, perhaps with a new key.
    if (known !== undefined && known.config === config) return known.model
    const model = opening(config, this.#env, askedDimensions(field))
    this.#models.set(field.name, { config, model })
    return model
  }

  /** Makes vectors for texts and adds them to `embedded`. A failed call is an entry, not an exception. */
  async embed(requests: EmbeddingRequest[], embedded: Embedded): Promise<void> {
    const calls: EmbeddingRequest[][] = []
    for (const requestsOfField of Map.groupBy(requests, ({ plan }) => plan.name).values()) {
      const distinct = [
        ...new Map(requestsOfField.map((request) => [embeddedKey(request), request])).values(),
      ]
      const size = this.model((distinct[0] as EmbeddingRequest).plan.field).batchSize
      for (let from = 0; from < distinct.length; from += size) calls.push(distinct.slice(from, from + size))
    }
    const next = calls.values()
    const work = async (): Promise<void> => {
      for (const call of next) await this.#call(call, embedded)
    }
    await Promise.all(Array.from({ length: Math.min(PARALLEL_CALLS, calls.length) }, work))
  }

  async #call(requests: EmbeddingRequest[], embedded: Embedded): Promise<void> {
    const { plan } = requests[0] as EmbeddingRequest
    try {
      const vectors = await this.model(plan.field).embed(
        requests.map(({ text }) => text),
        'document',
      )
      for (const [number, request] of requests.entries()) {
        const vector = vectors[number]
        embedded.set(
          embeddedKey(request),
          vector !== undefined && vector.length === plan.field.num_dim
            ? vector
            : new ApiError(400, `Field \`${plan.name}\` contains an invalid embedding.`),
        )
      }
    } catch (error) {
      if (!(error instanceof ApiError)) console.error('embedding failed', error)
      const failure =
        error instanceof ApiError ? error : new ApiError(400, 'The embedding model did not answer.')
      for (const request of requests) embedded.set(embeddedKey(request), failure)
    }
  }
}
