/** Embedding models over HTTP: OpenAI and compatible servers, Azure, Google. */
import { type CallOptions, callOptions, LARGEST_EMBEDDINGS, ProviderCall, parseObject, wording } from './call'
import type { Egress } from './egress'
import { type EmbeddingModel, type EmbeddingModelConfig, isVector } from './embedding-model'
import type { Gateway } from './gateway'
import { OPENAI_URL } from './openai'
import { modelId, withLeadingSlash, withoutTrailingSlash } from './properties'

interface EmbeddingCall {
  url: string
  headers: Record<string, string>
  body: unknown
  options: CallOptions
  /** the vectors in the order of the texts; undefined for a malformed reply */
  read(reply: Record<string, unknown>): unknown[] | undefined
}

/** @param count of the vectors @throws ApiError for a reply without as many */
export async function sendForVectors(request: EmbeddingCall, count: number): Promise<Float32Array[]> {
  const call = new ProviderCall(request.options)
  const response = await call.fetch(request.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...request.headers },
    body: JSON.stringify(request.body),
  })
  const reply = parseObject(await call.text(response, LARGEST_EMBEDDINGS))
  const vectors = reply && request.read(reply)
  if (vectors?.length !== count || !vectors.every(isVector)) throw call.malformed()
  return vectors.map((vector) => Float32Array.from(vector))
}

export const embeddingOptions = (
  config: EmbeddingModelConfig,
  label: string,
  env: Egress & Gateway,
): CallOptions => ({
  // Only conversation models have headers of their own: a field's schema stores no secret but its key.
  ...callOptions({ ...config, headers: undefined }, wording(label), env),
  timeoutStatus: 408,
})

/** OpenAI numbers each vector with the index of its text. */
function readList(reply: Record<string, unknown>): number[][] | undefined {
  if (!Array.isArray(reply.data)) return undefined
  const items = reply.data as { index?: number; embedding: number[] }[]
  return items
    .map((item, position) => ({ position: item.index ?? position, embedding: item.embedding }))
    .sort((a, b) => a.position - b.position)
    .map((item) => item.embedding)
}

/** @param dimensions to ask for, if the schema has `num_dim` */
export function openaiEmbedder(
  config: EmbeddingModelConfig,
  env: Egress & Gateway,
  dimensions?: number,
): EmbeddingModel {
  const base = withoutTrailingSlash(config.url ?? OPENAI_URL)
  return {
    name: config.model_name,
    batchSize: 200,
    embed: (texts) =>
      sendForVectors(
        {
          url: base + withLeadingSlash(config.path ?? '/v1/embeddings'),
          headers: config.api_key ? { authorization: `Bearer ${config.api_key}` } : {},
          body: {
            model: modelId(config.model_name),
            input: texts,
            ...(dimensions !== undefined && { dimensions }),
          },
          options: embeddingOptions(config, 'OpenAI', env),
          read: readList,
        },
        texts.length,
      ),
  }
}

/** `url` is the deployment's full embeddings URL, api-version included. */
export function azureEmbedder(
  config: EmbeddingModelConfig,
  env: Egress & Gateway,
  dimensions?: number,
): EmbeddingModel {
  return {
    name: config.model_name,
    batchSize: 200,
    embed: (texts) =>
      sendForVectors(
        {
          url: config.url ?? '',
          headers: { 'api-key': config.api_key ?? '' },
          body: { input: texts, ...(dimensions !== undefined && { dimensions }) },
          options: embeddingOptions(config, 'Azure', env),
          read: readList,
        },
        texts.length,
      ),
  }
}

const GOOGLE_URL = 'https://generativelanguage.googleapis.com'

export function googleEmbedder(
  config: EmbeddingModelConfig,
  env: Egress & Gateway,
  dimensions?: number,
): EmbeddingModel {
  const model = `models/${modelId(config.model_name)}`
  return {
    name: config.model_name,
    batchSize: 100,
    embed: (texts, kind) =>
      sendForVectors(
        {
          url: `${withoutTrailingSlash(config.url ?? GOOGLE_URL)}/v1beta/${model}:batchEmbedContents`,
          headers: { 'x-goog-api-key': config.api_key ?? '' },
          body: {
            requests: texts.map((text) => ({
              model,
              content: { parts: [{ text }] },
              taskType: kind === 'query' ? 'RETRIEVAL_QUERY' : 'RETRIEVAL_DOCUMENT',
              ...(dimensions !== undefined && { outputDimensionality: dimensions }),
            })),
          },
          options: embeddingOptions(config, 'Gemini', env),
          read: (reply) =>
            Array.isArray(reply.embeddings)
              ? (reply.embeddings as { values: number[] }[]).map((embedding) => embedding.values)
              : undefined,
        },
        texts.length,
      ),
  }
}
