/**
 * Embedding models of Vertex AI, by an account of Google Cloud: `gcp/text-embedding-005`. The account is a service account's key, or the
 * tokens of a person, as in Typesense.
 * https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api
 */
// Of `hono/jwt` the rest, which checks tokens, is twice as large.
import { sign } from 'hono/utils/jwt/jwt'
import { ApiError } from '../errors'
import { type CallOptions, ProviderCall, parseObject } from './call'
import type { Egress } from './egress'
import type { EmbeddingModel, EmbeddingModelConfig } from './embedding-model'
import type { Gateway } from './gateway'
import { modelId } from './properties'
import { ProviderError } from './provider-error'
import { embeddingOptions, sendForVectors } from './remote-embedders'

const TOKENS = 'https://oauth2.googleapis.com/token'
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const DEFAULT_REGION = 'us-central1'
/** Texts of one call. Gemini's models take one, the others five of any length. */
const AT_ONCE = 5
/** A token that Google gives is good for an hour. */
const TOKEN_SECONDS = 3_600

/** Where a property is missing in the JSON. */
const missing = (name: string): ApiError =>
  new ApiError(400, `Property \`embed.model_config.${name}\` is missing or is not a string.`)

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
    throw new ApiError(
      400,
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
  const embed = (texts: string[], kind: 'document' | 'query', bearer: string) =>
    sendForVectors(
      {
        url,
        headers: { authorization: `Bearer ${bearer}` },
        body: {
          instances: texts.map((content) => ({ content, task_type: taskOf[kind] })),
          ...(dimensions !== undefined && { parameters: { outputDimensionality: dimensions } }),
        },
        options: { ...options, secrets },
        read: ({ predictions }) =>
          Array.isArray(predictions) ? predictions.map((each) => each?.embeddings?.values) : undefined,
      },
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
    throw new ApiError(
      400,
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
