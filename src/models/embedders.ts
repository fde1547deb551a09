/** The registry of embedding models: finds the model for a field's `model_config`. */
import { badRequest } from '../errors'
import { regExp, remembered } from '../lib/once'
import type { EmbeddingModel, EmbeddingModelConfig } from './embedding-model'
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
import { toLengthOne } from './static-embedder/reader'
import { isStopword, stemOf } from './words'

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
  throw badRequest(`\`${name}\` is not a built-in embedding model. ${howToName(named)}`)
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
          throw badRequest('Property `embed.model_config.account_id` is missing or is not a string.')
      } else if (env.AI_BACKEND !== 'workers-ai') {
        throw badRequest(
          `\`${name}\` needs an \`api_key\` and an \`account_id\`, or a deployment that runs on Workers AI.`,
        )
      }
      return workersAiEmbedder(config, env)
    case 'openai':
      requireKey(config)
      return openaiEmbedder(config, env, dimensions)
    case 'azure':
      requireKey(config)
      if (typeof config.url !== 'string') throw badRequest('Property `embed.model_config.url` is missing.')
      return azureEmbedder(config, env, dimensions)
    case 'google':
      requireKey(config)
      return googleEmbedder(config, env, dimensions)
    case 'gcp':
      return gcpEmbedder(config, env, dimensions)
    default:
      throw badRequest(
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
    throw badRequest('Property `embed.model_config.api_key` is missing or is not a string.')
  }
}

const isDimensions = (dimensions: number): boolean => dimensions >= 8 && dimensions <= LARGEST_LOCAL

/** The name contains the dimensions, as in `local/hash-384`. */
function hashDimensions(name: string, asked?: number): number {
  const match = /^local\/hash-(\d+)$/.exec(name)
  const dimensions = asked ?? Number(match?.[1])
  if (!match || !isDimensions(dimensions)) {
    throw badRequest(
      `\`${name}\` is not a local embedding model: use \`${STATIC_EMBEDDER}\`, or \`local/hash-384\` in tests.`,
    )
  }
  return dimensions
}

function staticDimensions(asked = STATIC_DIMENSIONS): number {
  if (isDimensions(asked)) return asked
  throw badRequest(`\`${STATIC_EMBEDDER}\` makes vectors of 8 to ${LARGEST_LOCAL} dimensions.`)
}

// =============================================================================
// `local/hash-N`: vectors without a model, for work offline. Words that share a stem, or most of their letters,
// come out alike. It knows no other meaning.
//
// Feature hashing (Weinberger et al. 2009): each stem goes to two dimensions and each of its character trigrams to
// one. The hash also gives the sign, so that collisions cancel out on average. Counts are damped (1 + ln n),
// stopwords weigh a tenth, and the vector has length 1. A kilobyte of English takes about 60 us once its words are
// cached, twice that before.

const STOPWORD_WEIGHT = 0.1
const TRIGRAM_WEIGHT = 0.35

// Words are cached: texts repeat their words, and collections repeat each other's.
interface Features {
  /** hashes of the stem, the second for its second dimension */
  stem: number
  again: number
  trigrams: Int32Array
  weight: number
}

const MOST_KNOWN = 50_000

const WORD = regExp(String.raw`[\p{L}\p{N}\p{M}]+`, 'gu')
const MARKS = regExp(String.raw`\p{M}+`, 'gu')

/** FNV-1a over UTF-16 units, then a finaliser, because the low bits choose the dimension. */
function hash(text: string, seed: number): number {
  let value = 0x811c9dc5 ^ seed
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}

const featuresOf = remembered(MOST_KNOWN, (word): Features => {
  const folded = /^[a-z0-9]+$/.test(word) ? word : word.normalize('NFD').replace(MARKS(), '')
  const stem = stemOf(folded)
  const padded = `^${stem}$`
  const trigrams = new Int32Array(Math.max(1, padded.length - 2))
  for (let index = 0; index < trigrams.length; index++) {
    trigrams[index] = hash(padded.slice(index, index + 3), 3) | 0
  }
  return {
    stem: hash(stem, 1),
    again: hash(stem, 2),
    trigrams,
    weight: isStopword(folded) ? STOPWORD_WEIGHT : 1,
  }
})

/** The vector of a text; all zeros for a text without words. */
export function hashVector(text: string, dimensions: number): Float32Array {
  const counts = new Map<Features, number>()
  // Use one match() for all words: matchAll makes an object for each.
  for (const word of text.toLowerCase().match(WORD()) ?? []) {
    const features = featuresOf(word)
    counts.set(features, (counts.get(features) ?? 0) + 1)
  }
  const vector = new Float32Array(dimensions)
  const add = (value: number, amount: number) => {
    const dimension = (value >>> 1) % dimensions
    vector[dimension] = vector[dimension]! + (value & 1 ? amount : -amount)
  }
  for (const [features, count] of counts) {
    const amount = features.weight * (1 + Math.log(count))
    add(features.stem, amount)
    add(features.again, amount)
    const share = (TRIGRAM_WEIGHT * amount) / Math.sqrt(features.trigrams.length)
    for (const trigram of features.trigrams) add(trigram >>> 0, share)
  }
  return toLengthOne(vector)
}

/** Weight when combined with words. It is low, because these vectors know little that the words do not. */
const WEIGHT = 0.25

const hashEmbedder = (name: string, dimensions: number): EmbeddingModel => ({
  name,
  weight: WEIGHT,
  batchSize: 1000,
  embed: async (texts) => texts.map((text) => hashVector(text, dimensions)),
  embedNow: (text) => hashVector(text, dimensions),
})
