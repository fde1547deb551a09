/** Embedding models over HTTP: OpenAI and compatible servers, Azure, Google. */

import { sign } from 'hono/utils/jwt/jwt'
import { type ApiError, badRequest } from '../errors'
import {
  type CallOptions,
  callOptions,
  jsonRequest,
  LARGEST_EMBEDDINGS,
  ProviderCall,
  parseObject,
  wording,
} from './call'
import { bindingError, workersAiUrl } from './cloudflare'
import { type AiRunner, aiBinding, type Egress, type Gateway, runUntil } from './egress'
import { type EmbeddingModel, type EmbeddingModelConfig, isVector } from './embedding-model'
import { GOOGLE_URL } from './google'
import { authorization, OPENAI_URL } from './openai-compatible'
import { ProviderError } from './provider-error'
import { modelId, withLeadingSlash, withoutTrailingSlash } from './sampling'

interface EmbeddingCall {
  url: string
  headers: Record<string, string>
  body: unknown
}

/** What tells the providers apart whose models are called in one way. */
interface Service {
  /** in errors */
  label: string
  /** texts in a call */
  batchSize: number
  call(texts: string[], kind: Kind): EmbeddingCall
  /** the vectors in the order of the texts; undefined for a malformed reply */
  read(reply: Record<string, unknown>): unknown
}

type Kind = 'document' | 'query'

const embedderOf = (
  config: EmbeddingModelConfig,
  env: Egress & Gateway,
  { label, batchSize, call, read }: Service,
): EmbeddingModel => ({
  name: config.model_name,
  batchSize,
  embed: async (texts, kind) => {
    const options = embeddingOptions(config, label, env)
    return sendForVectors(options, call(texts, kind), read, texts.length)
  },
})

/** @param count of the vectors @throws ApiError for a reply without as many */
async function sendForVectors(
  options: CallOptions,
  { url, headers, body }: EmbeddingCall,
  read: Service['read'],
  count: number,
): Promise<Float32Array[]> {
  const call = new ProviderCall(options)
  const response = await call.fetch(url, jsonRequest(body, headers))
  const reply = parseObject(await call.text(response, LARGEST_EMBEDDINGS))
  return vectorsIn(call, reply && read(reply), count)
}

function vectorsIn(call: ProviderCall, vectors: unknown, count: number): Float32Array[] {
  if (!Array.isArray(vectors) || vectors.length !== count || !vectors.every(isVector)) throw call.malformed()
  return vectors.map((vector) => Float32Array.from(vector))
}

/** Only conversation models have headers of their own: a field's schema stores no secret but its key. */
const embeddingOptions = (config: EmbeddingModelConfig, label: string, env: Egress & Gateway): CallOptions =>
  callOptions({ ...config, headers: undefined }, wording(label), env)

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
export const openaiEmbedder = (
  config: EmbeddingModelConfig,
  env: Egress & Gateway,
  dimensions?: number,
): EmbeddingModel =>
  embedderOf(config, env, {
    label: 'OpenAI',
    batchSize: 200,
    call: (input) => ({
      url: withoutTrailingSlash(config.url ?? OPENAI_URL) + withLeadingSlash(config.path ?? '/v1/embeddings'),
      headers: authorization(config),
      body: { model: modelId(config.model_name), input, dimensions },
    }),
    read: readList,
  })

/** `url` is the deployment's full embeddings URL, api-version included. */
export const azureEmbedder = (
  config: EmbeddingModelConfig,
  env: Egress & Gateway,
  dimensions?: number,
): EmbeddingModel =>
  embedderOf(config, env, {
    label: 'Azure',
    batchSize: 200,
    call: (input) => ({
      url: config.url ?? '',
      headers: { 'api-key': config.api_key ?? '' },
      body: { input, dimensions },
    }),
    read: readList,
  })

export function googleEmbedder(
  config: EmbeddingModelConfig,
  env: Egress & Gateway,
  dimensions?: number,
): EmbeddingModel {
  const model = `models/${modelId(config.model_name)}`
  return embedderOf(config, env, {
    label: 'Gemini',
    batchSize: 100,
    call: (texts, kind) => ({
      url: `${withoutTrailingSlash(config.url ?? GOOGLE_URL)}/v1beta/${model}:batchEmbedContents`,
      headers: { 'x-goog-api-key': config.api_key ?? '' },
      body: {
        requests: texts.map((text) => ({
          model,
          content: { parts: [{ text }] },
          taskType: kind === 'query' ? 'RETRIEVAL_QUERY' : 'RETRIEVAL_DOCUMENT',
          outputDimensionality: dimensions,
        })),
      },
    }),
    read: ({ embeddings }) =>
      Array.isArray(embeddings) ? embeddings.map((embedding) => embedding?.values) : undefined,
  })
}

// =============================================================================
// Embedding models of Vertex AI, by an account of Google Cloud: `gcp/text-embedding-005`. The account is a service account's key, or the
// tokens of a person, as in Typesense.
// https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api
//
// Of `hono/jwt` the rest, which checks tokens, is twice as large.

const TOKENS = 'https://oauth2.googleapis.com/token'
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const DEFAULT_REGION = 'us-central1'
/** Texts of one call. Gemini's models take one, the others five of any length. */
const AT_ONCE = 5
/** A token that Google gives is good for an hour. */
const TOKEN_SECONDS = 3_600

/** Where a property is missing in the JSON. */
const missing = (name: string): ApiError =>
  badRequest(`Property \`embed.model_config.${name}\` is missing or is not a string.`)

function stringIn(config: Record<string, unknown>, name: string, path = ''): string {
  const value = config[name]
  if (typeof value !== 'string' || value === '') throw missing(path + name)
  return value
}

/** @throws ApiError 400 for a missing property */
export function gcpEmbedder(
  config: EmbeddingModelConfig,
  env: Egress & Gateway,
  dimensions?: number,
): EmbeddingModel {
  const grant = grantOf(config)
  const project = stringIn(config, 'project_id')
  const region = typeof config.region === 'string' ? config.region : DEFAULT_REGION
  if (!/^[a-z0-9-]+$/.test(region)) {
    throw badRequest(
      'Property `embed.model_config.region` is not the name of a region, such as `us-central1`.',
    )
  }
  const id = modelId(config.model_name)
  const place = `projects/${encodeURIComponent(project)}/locations/${region}/publishers/google/models/${encodeURIComponent(id)}`
  const url = `https://${region}-aiplatform.googleapis.com/v1/${place}:predict`
  const taskOf = {
    document: config.document_task ?? 'RETRIEVAL_DOCUMENT',
    query: config.query_task ?? 'RETRIEVAL_QUERY',
  }
  const options = embeddingOptions(config, 'GCP', env)
  // No error may contain them.
  const secrets = [...(options.secrets ?? []), ...grant.secrets]
  let token = grant.given
  const renewed = async (): Promise<string> => {
    token = await newToken({ ...options, secrets }, await grant.renew())
    secrets.push(token)
    return token
  }
  const embed = (texts: string[], kind: Kind, bearer: string) =>
    sendForVectors(
      { ...options, secrets },
      {
        url,
        headers: { authorization: `Bearer ${bearer}` },
        body: {
          instances: texts.map((content) => ({ content, task_type: taskOf[kind] })),
          ...(dimensions !== undefined && { parameters: { outputDimensionality: dimensions } }),
        },
      },
      ({ predictions }) =>
        Array.isArray(predictions) ? predictions.map((each) => each?.embeddings?.values) : undefined,
      texts.length,
    )
  return {
    name: config.model_name,
    batchSize: id.startsWith('gemini') ? 1 : AT_ONCE,
    embed: async (texts, kind) => {
      const bearer = token ?? (await renewed())
      try {
        return await embed(texts, kind, bearer)
      } catch (error) {
        if (!(error instanceof ProviderError && error.upstream === 401)) throw error
        return embed(texts, kind, await renewed())
      }
    },
  }
}

/** How to get a token: the one that was given, and what asks for another. */
interface Grant {
  given?: string
  secrets: string[]
  renew(): Promise<Record<string, string>>
}

/** @throws ApiError 400 for a missing property */
function grantOf(config: EmbeddingModelConfig): Grant {
  const account = config.service_account
  if (typeof account === 'object' && account !== null) {
    const email = stringIn(account as Record<string, unknown>, 'client_email', 'service_account.')
    const key = stringIn(account as Record<string, unknown>, 'private_key', 'service_account.')
    return { secrets: [key], renew: () => assertionOf(email, key) }
  }
  const grant = {
    grant_type: 'refresh_token',
    client_id: stringIn(config, 'client_id'),
    client_secret: stringIn(config, 'client_secret'),
    refresh_token: stringIn(config, 'refresh_token'),
  }
  const given = stringIn(config, 'access_token')
  return { given, secrets: [given, grant.client_secret, grant.refresh_token], renew: async () => grant }
}

/** What a service account asks for a token with (RFC 7523). @throws ApiError 400 for a key that is none */
async function assertionOf(email: string, key: string): Promise<Record<string, string>> {
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: email, scope: SCOPE, aud: TOKENS, iat: now, exp: now + TOKEN_SECONDS }
  try {
    const assertion = await sign(claims, key, 'RS256')
    return { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }
  } catch {
    throw badRequest(
      'Property `embed.model_config.service_account.private_key` is not a key of PKCS #8. Take it from the key file as it is.',
    )
  }
}

async function newToken(options: CallOptions, grant: Record<string, string>): Promise<string> {
  const call = new ProviderCall(options)
  const response = await call.fetch(TOKENS, { method: 'POST', body: new URLSearchParams(grant) })
  const { access_token: token } = parseObject(await call.text(response)) ?? {}
  if (typeof token !== 'string') throw call.malformed()
  return token
}

// =============================================================================
// Workers AI's embedding models: through the Worker's binding, or with an `api_key` and an `account_id` over
// Cloudflare's REST API (https://developers.cloudflare.com/workers-ai/models/, text embeddings).
//
// Models differ in how many texts they take at once, and in how they tell a question from a document: one has two
// inputs, one was trained with a prompt before the text, others make no difference.

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
      const call = new ProviderCall(embeddingOptions(config, 'Cloudflare', env))
      const asked = inputs(texts, kind, config)
      const reply =
        config.api_key === undefined
          ? await runBinding(call, aiBinding(env), model, asked)
          : await post(call, config, asked)
      // Some versions of bge-m3 send the vectors as `response` rather than `data`.
      const { data, response } = (reply ?? {}) as { data?: unknown; response?: unknown }
      return vectorsIn(call, data ?? response, texts.length)
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
    throw signal.aborted ? call.timedOut() : bindingError(call, error)
  } finally {
    call.close()
  }
}

async function post(
  call: ProviderCall,
  config: EmbeddingModelConfig,
  inputs: Record<string, unknown>,
): Promise<unknown> {
  const response = await call.fetch(workersAiUrl(config), jsonRequest(inputs, authorization(config)))
  const text = await call.text(response, LARGEST_EMBEDDINGS)
  const reply = parseObject(text)
  if (reply?.success === false) throw call.reported(text, { upstream: 200 })
  return reply?.result
}
