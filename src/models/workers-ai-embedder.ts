/**
 * Workers AI's embedding models: through the Worker's binding, or with an `api_key` and an `account_id` over
 * Cloudflare's REST API (https://developers.cloudflare.com/workers-ai/models/, text embeddings).
 *
 * Models differ in how many texts they take at once, and in how they tell a question from a document: one has two
 * inputs, one was trained with a prompt before the text, others make no difference.
 */
import { type AiRunner, runUntil } from './ai-runner'
import { callOptions, LARGEST_EMBEDDINGS, ProviderCall, parseObject, wording } from './call'
import { type EmbeddingModel, type EmbeddingModelConfig, isVector } from './embedding-model'
import { aiBinding } from './gateway'
import { modelId, withoutTrailingSlash } from './properties'
import { workersAiError } from './workers-ai-errors'

type Kind = 'document' | 'query'

interface Served {
  dimensions: number
  /** texts in a call; 100 by default */
  batchSize?: number
  inputs?(texts: string[], kind: Kind, config: EmbeddingModelConfig): Record<string, unknown>
}

/** Serves Typesense's own models. */
export const WORKERS_AI_EMBEDDER = '@cf/baai/bge-m3'

const BATCH_SIZE = 100

/** The model's page recommends it over the default, `mean`. Vectors of the two cannot be compared. */
const pooled: Served['inputs'] = (text) => ({ text, pooling: 'cls' })

const CATALOGUE: Record<string, Served> = {
  // Without `truncate_inputs`, a text beyond the context is an error.
  [WORKERS_AI_EMBEDDER]: { dimensions: 1024, inputs: (text) => ({ text, truncate_inputs: true }) },
  '@cf/baai/bge-small-en-v1.5': { dimensions: 384, inputs: pooled },
  '@cf/baai/bge-base-en-v1.5': { dimensions: 768, inputs: pooled },
  '@cf/baai/bge-large-en-v1.5': { dimensions: 1024, inputs: pooled },
  '@cf/qwen/qwen3-embedding-0.6b': {
    dimensions: 1024,
    batchSize: 32,
    inputs: (texts, kind, { instruction }) =>
      kind === 'document'
        ? { documents: texts }
        : { queries: texts, ...(typeof instruction === 'string' && { instruction }) },
  },
  '@cf/google/embeddinggemma-300m': {
    dimensions: 768,
    // The prompts of its model card, unless the config has prefixes of its own.
    inputs: (texts, kind, { indexing_prefix, query_prefix }) => {
      if (indexing_prefix !== undefined || query_prefix !== undefined) return { text: texts }
      const prompt = kind === 'query' ? 'task: search result | query: ' : 'title: none | text: '
      return { text: texts.map((text) => prompt + text) }
    },
  },
}

/** A model's dimensions, if known without asking it. @param name with or without `cloudflare/` */
export const workersAiDimensions = (name: string): number | undefined =>
  CATALOGUE[name.replace(/^cloudflare\//, '')]?.dimensions

/**
 * @param config with the schema's name of the model
 * @param model Cloudflare's own name: `@cf/...`
 */
export function workersAiEmbedder(
  config: EmbeddingModelConfig,
  env: Cloudflare.Env,
  model: string = modelId(config.model_name),
): EmbeddingModel {
  const { batchSize = BATCH_SIZE, inputs = (text: string[]) => ({ text }) } = CATALOGUE[model] ?? {}
  return {
    name: config.model_name,
    batchSize,
    async embed(texts, kind) {
      const call = new ProviderCall({
        ...callOptions({ ...config, headers: undefined }, wording('Cloudflare'), env),
        timeoutStatus: 408,
      })
      const asked = inputs(texts, kind, config)
      const reply =
        config.api_key === undefined
          ? await runBinding(call, aiBinding(env), model, asked)
          : await post(call, config, model, asked)
      return vectorsOf(call, reply, texts.length)
    },
  }
}

async function runBinding(
  call: ProviderCall,
  ai: AiRunner,
  model: string,
  inputs: Record<string, unknown>,
): Promise<unknown> {
  const { signal } = call
  try {
    return await runUntil(signal, ai, model, inputs)
  } catch (error) {
    const { message, upstream } = workersAiError(error)
    if (signal.aborted || upstream.upstream === 408) throw call.timedOut()
    throw upstream.upstream === undefined
      ? call.explain(error, message)
      : call.reported(JSON.stringify({ message }), upstream)
  } finally {
    call.close()
  }
}

const CLOUDFLARE_URL = 'https://api.cloudflare.com/client/v4'

async function post(
  call: ProviderCall,
  config: EmbeddingModelConfig,
  model: string,
  inputs: Record<string, unknown>,
): Promise<unknown> {
  const { cloudflare_url: url } = config
  const base = typeof url === 'string' ? withoutTrailingSlash(url) : CLOUDFLARE_URL
  const response = await call.fetch(`${base}/accounts/${config.account_id}/ai/run/${model}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${config.api_key}` },
    body: JSON.stringify(inputs),
  })
  const text = await call.text(response, LARGEST_EMBEDDINGS)
  const reply = parseObject(text)
  if (reply?.success === false) throw call.reported(text, { upstream: 200 })
  return reply?.result
}

/** The vectors of a reply. Some versions of bge-m3 send them as `response` rather than `data`. */
function vectorsOf(call: ProviderCall, reply: unknown, count: number): Float32Array[] {
  const { data, response } = (reply ?? {}) as { data?: unknown; response?: unknown }
  const vectors = data ?? response
  if (!Array.isArray(vectors) || vectors.length !== count || !vectors.every(isVector)) throw call.malformed()
  return vectors.map((vector) => Float32Array.from(vector))
}
