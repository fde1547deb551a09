/** The registry of embedding models: from the `model_config` of a field to the model that makes its vectors. */
import { ApiError } from '../errors'
import type { EmbeddingModel, EmbeddingModelConfig } from './embedding-model'
import { hashEmbedder } from './hash-embedder'
import { modelId } from './properties'
import { namespaceOf } from './providers'
import { azureEmbedder, googleEmbedder, openaiEmbedder } from './remote-embedders'
import { WORKERS_AI_EMBEDDER, workersAiDimensions, workersAiEmbedder } from './workers-ai-embedder'

/** Dimensions of the models that Typesense serves itself; what is not listed has 384. */
const TYPESENSE_DIMENSIONS: Record<string, number> = {
  'snowflake-arctic-embed-m': 768,
  'snowflake-arctic-embed-m-v1.5': 768,
  'e5-base': 768,
  'e5-base-v2': 768,
  'e5-large': 1024,
  'e5-large-v2': 1024,
  'multilingual-e5-base': 768,
  'multilingual-e5-large': 1024,
  'gte-base': 768,
  'gte-large': 1024,
  'bge-base-en-v1.5': 768,
  'distiluse-base-multilingual-cased-v2': 512,
  'paraphrase-multilingual-mpnet-base-v2': 768,
  'clip-vit-b-p32': 512,
}

const DEFAULT_DIMENSIONS = 384
const LARGEST_HASH = 4096

/**
 * The embedding model of a field. Makes no call.
 * @param dimensions the field's `num_dim`, where its owner gave one
 * @throws ApiError 400 for a model that nobody serves, or a property that it needs
 */
export function createEmbeddingModel(
  config: EmbeddingModelConfig,
  env: Cloudflare.Env,
  dimensions?: number,
): EmbeddingModel {
  const name = config.model_name
  switch (namespaceOf(name)) {
    case 'local':
      return hashEmbedder(name, hashDimensions(name, dimensions))
    // Typesense takes a name without a namespace for one of its own models.
    case '':
    case 'ts':
      return env.AI_BACKEND === 'workers-ai'
        ? workersAiEmbedder(withoutKey(config), env, WORKERS_AI_EMBEDDER)
        : hashEmbedder(name, dimensions ?? TYPESENSE_DIMENSIONS[modelId(name)] ?? DEFAULT_DIMENSIONS)
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
    default:
      throw new ApiError(400, `Model namespace \`${namespaceOf(name)}\` is not supported.`)
  }
}

/**
 * How many dimensions a model's vectors have. Asks a remote model, whose answer also shows that its key works.
 * @throws ApiError with the provider's message
 */
export async function probeDimensions(config: EmbeddingModelConfig, env: Cloudflare.Env): Promise<number> {
  const model = createEmbeddingModel(config, env)
  if (config.model_name.startsWith('local/')) return hashDimensions(config.model_name)
  const known = env.AI_BACKEND === 'workers-ai' ? knownDimensions(config) : undefined
  if (known !== undefined) return known
  const [vector] = await model.embed(['hello'], 'document')
  return vector!.length
}

/** Dimensions of a model behind the Worker's own binding, which needs no call to prove its key. */
function knownDimensions({ model_name, api_key }: EmbeddingModelConfig): number | undefined {
  const namespace = namespaceOf(model_name)
  if (namespace === '' || namespace === 'ts') return workersAiDimensions(WORKERS_AI_EMBEDDER)
  return namespace === 'cloudflare' && api_key === undefined ? workersAiDimensions(model_name) : undefined
}

/** Typesense's own models need no key; one that came along is not Cloudflare's. */
const withoutKey = ({ api_key: _, ...config }: EmbeddingModelConfig): EmbeddingModelConfig =>
  config as EmbeddingModelConfig

function requireKey(config: EmbeddingModelConfig): void {
  if (typeof config.api_key !== 'string') {
    throw new ApiError(400, 'Property `embed.model_config.api_key` is missing or is not a string.')
  }
}

/** `local/hash-384` says its dimensions in its name. */
function hashDimensions(name: string, asked?: number): number {
  const match = /^local\/hash-(\d+)$/.exec(name)
  const dimensions = asked ?? Number(match?.[1])
  if (!match || !(dimensions >= 8 && dimensions <= LARGEST_HASH)) {
    throw new ApiError(400, `\`${name}\` is not a local embedding model: use \`local/hash-384\`.`)
  }
  return dimensions
}
