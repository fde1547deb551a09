/** The registry of embedding models: finds the model for a field's `model_config`. */
import { ApiError } from '../errors'
import type { EmbeddingModel, EmbeddingModelConfig } from './embedding-model'
import { hashEmbedder } from './hash-embedder'
import { namespaceOf } from './providers'
import {
  azureEmbedder,
  gcpEmbedder,
  googleEmbedder,
  openaiEmbedder,
  WORKERS_AI_EMBEDDER,
  workersAiDimensions,
  workersAiEmbedder,
} from './remote-embedders'
import { modelId } from './sampling'
import { STATIC_DIMENSIONS, STATIC_EMBEDDER, staticEmbedder } from './static-embedder'

/**
 * Models that Typesense serves itself, with the dimensions of their vectors
 * (https://huggingface.co/typesense/models). Parley accepts these names and serves them with a model of its own.
 */
const TYPESENSE_DIMENSIONS: Record<string, number> = {
  'all-MiniLM-L12-v2': 384,
  'e5-small': 384,
  'e5-small-v2': 384,
  'e5-base': 768,
  'e5-base-v2': 768,
  'e5-large': 1024,
  'e5-large-v2': 1024,
  'multilingual-e5-small': 384,
  'multilingual-e5-base': 768,
  'multilingual-e5-large': 1024,
  'gte-small': 384,
  'gte-base': 768,
  'gte-large': 1024,
  'bge-small-en-v1.5': 384,
  'bge-base-en-v1.5': 768,
  'snowflake-arctic-embed-m': 768,
  'snowflake-arctic-embed-m-v1.5': 768,
  'distiluse-base-multilingual-cased-v2': 512,
  'paraphrase-multilingual-mpnet-base-v2': 768,
  'clip-vit-b-p32': 512,
}

const DEFAULT_DIMENSIONS = 384
const LARGEST_LOCAL = 4096

/** Whether a name is one of Typesense's own models. Like Typesense, accepts it without a namespace. */
const isTypesenses = (name: string): boolean => ['', 'ts'].includes(namespaceOf(name))

/** The dimensions of a Typesense model's vectors when Parley's own embedder makes them. */
const typesenseDimensions = (name: string): number =>
  TYPESENSE_DIMENSIONS[modelId(name)] ?? DEFAULT_DIMENSIONS

/**
 * The model that runs under the name of a Typesense model.
 * @returns undefined for any other name
 */
export const servedBy = (name: string, env: Cloudflare.Env): string | undefined =>
  isTypesenses(name)
    ? env.AI_BACKEND === 'workers-ai'
      ? `cloudflare/${WORKERS_AI_EMBEDDER}`
      : STATIC_EMBEDDER
    : undefined

/**
 * The model of a field whose schema does not record it, because the schema is older than that record. At that time a
 * local deployment served Typesense's models by hashes of words.
 * @param dimensions of the field
 */
export const formerlyServedBy = (
  name: string,
  dimensions: number | undefined,
  env: Cloudflare.Env,
): string => {
  if (!isTypesenses(name)) return name
  return env.AI_BACKEND === 'workers-ai'
    ? `cloudflare/${WORKERS_AI_EMBEDDER}`
    : `local/hash-${dimensions ?? DEFAULT_DIMENSIONS}`
}

/**
 * Checks the model name in a new schema. Stored schemas may have others.
 * @throws ApiError 400 whose message shows how to write such a name
 */
export function requireKnownModel(name: string): void {
  if (!isTypesenses(name) || Object.hasOwn(TYPESENSE_DIMENSIONS, modelId(name))) return
  const provider = /^(?:text-embedding-\d{3}|gemini|textembedding-gecko)/.test(name) ? 'google' : 'openai'
  const named = namespaceOf(name) === '' ? `${provider}/${name}` : `${provider}/${modelId(name)}`
  throw new ApiError(400, `\`${name}\` is not a built-in embedding model. ${howToName(named)}`)
}

/** @param example a correct name */
const howToName = (example: string): string =>
  `A model of a provider is named with it, such as \`${example}\`; there are \`openai/\`, \`azure/\`, \`google/\`, \`gcp/\` and ` +
  `\`cloudflare/\`. Built in is \`${STATIC_EMBEDDER}\`, which also answers to the names of Typesense's own models: ` +
  `${Object.keys(TYPESENSE_DIMENSIONS)
    .map((id) => `\`ts/${id}\``)
    .join(', ')}.`

/**
 * The embedding model of a field. Makes no call.
 * @param dimensions the field's `num_dim`, if its owner gave one
 * @throws ApiError 400 for an unknown model, or a missing property
 */
export function createEmbeddingModel(
  config: EmbeddingModelConfig,
  env: Cloudflare.Env,
  dimensions?: number,
): EmbeddingModel {
  const name = config.model_name
  switch (namespaceOf(name)) {
    case 'local':
      return name === STATIC_EMBEDDER
        ? staticEmbedder(env, staticDimensions(dimensions))
        : hashEmbedder(name, hashDimensions(name, dimensions))
    // Like Typesense, takes a name without a namespace for one of Typesense's models.
    case '':
    case 'ts':
      return env.AI_BACKEND === 'workers-ai'
        ? workersAiEmbedder(withoutKey(config), env, WORKERS_AI_EMBEDDER)
        : staticEmbedder(env, staticDimensions(dimensions ?? typesenseDimensions(name)))
    case 'cloudflare':
      if (config.api_key !== undefined) {
        requireKey(config)
        if (typeof config.account_id !== 'string')
          throw new ApiError(400, 'Property `embed.model_config.account_id` is missing or is not a string.')
      } else if (env.AI_BACKEND !== 'workers-ai') {
        throw new ApiError(
          400,
          `\`${name}\` needs an \`api_key\` and an \`account_id\`, or a deployment that runs on Workers AI.`,
        )
      }
      return workersAiEmbedder(config, env)
    case 'openai':
      requireKey(config)
      return openaiEmbedder(config, env, dimensions)
    case 'azure':
      requireKey(config)
      if (typeof config.url !== 'string')
        throw new ApiError(400, 'Property `embed.model_config.url` is missing.')
      return azureEmbedder(config, env, dimensions)
    case 'google':
      requireKey(config)
      return googleEmbedder(config, env, dimensions)
    case 'gcp':
      return gcpEmbedder(config, env, dimensions)
    default:
      throw new ApiError(
        400,
        `Model namespace \`${namespaceOf(name)}\` is not supported. ${howToName(`cloudflare/@cf/baai/bge-m3`)}`,
      )
  }
}

/**
 * How many dimensions a model's vectors have. Asks a remote model, which also proves that its key works.
 * @throws ApiError with the provider's message
 */
export async function probeDimensions(config: EmbeddingModelConfig, env: Cloudflare.Env): Promise<number> {
  const model = createEmbeddingModel(config, env)
  if (config.model_name === STATIC_EMBEDDER) return STATIC_DIMENSIONS
  if (config.model_name.startsWith('local/')) return hashDimensions(config.model_name)
  const known = env.AI_BACKEND === 'workers-ai' ? knownDimensions(config) : undefined
  if (known !== undefined) return known
  const [vector] = await model.embed(['hello'], 'document')
  return vector!.length
}

/** The dimensions of a model behind the Worker's binding, where no key needs to be proven. */
function knownDimensions({ model_name, api_key }: EmbeddingModelConfig): number | undefined {
  const namespace = namespaceOf(model_name)
  if (namespace === '' || namespace === 'ts') return workersAiDimensions(WORKERS_AI_EMBEDDER)
  return namespace === 'cloudflare' && api_key === undefined ? workersAiDimensions(model_name) : undefined
}

/** Typesense's models need no key, and a key that was given is not Cloudflare's. */
const withoutKey = ({ api_key: _, ...config }: EmbeddingModelConfig): EmbeddingModelConfig =>
  config as EmbeddingModelConfig

function requireKey(config: EmbeddingModelConfig): void {
  if (typeof config.api_key !== 'string') {
    throw new ApiError(400, 'Property `embed.model_config.api_key` is missing or is not a string.')
  }
}

const isDimensions = (dimensions: number): boolean => dimensions >= 8 && dimensions <= LARGEST_LOCAL

/** The name contains the dimensions, as in `local/hash-384`. */
function hashDimensions(name: string, asked?: number): number {
  const match = /^local\/hash-(\d+)$/.exec(name)
  const dimensions = asked ?? Number(match?.[1])
  if (!match || !isDimensions(dimensions)) {
    throw new ApiError(
      400,
      `\`${name}\` is not a local embedding model: use \`${STATIC_EMBEDDER}\`, or \`local/hash-384\` in tests.`,
    )
  }
  return dimensions
}

function staticDimensions(asked = STATIC_DIMENSIONS): number {
  if (isDimensions(asked)) return asked
  throw new ApiError(400, `\`${STATIC_EMBEDDER}\` makes vectors of 8 to ${LARGEST_LOCAL} dimensions.`)
}
