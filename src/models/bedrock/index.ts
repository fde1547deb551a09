/**
 * `bedrock/<model id>`: Amazon Bedrock over its Converse API, which is the same for all its models. Calls are
 * signed (Signature Version 4) with an access key, or carry a Bedrock API key.
 */
import { AwsV4Signer } from 'aws4fetch'
import { ApiError } from '../../errors'
import { callOptions, ProviderCall, textCall, wording } from '../call'
import type {
  ConversationModelConfig,
  Delta,
  GenerationRequest,
  LanguageModelProvider,
} from '../language-model'
import { allowString, modelId, withoutTrailingSlash } from '../properties'
import { samplingOf } from '../sampling'
import { conversation, readStream, readWhole } from './converse'
import { readFrames } from './frames'

const WORDING = wording('Bedrock')

/** A model id may be an ARN. Its colons and slashes belong to one segment of the path. */
const url = (config: ConversationModelConfig, operation: 'converse' | 'converse-stream'): string => {
  const base =
    typeof config.bedrock_url === 'string'
      ? withoutTrailingSlash(config.bedrock_url)
      : `https://bedrock-runtime.${config.region}.amazonaws.com`
  return `${base}/model/${encodeURIComponent(modelId(config.model_name))}/${operation}`
}

/** A request with its authorization. The signature covers its URL, its body and the time. */
async function signed(config: ConversationModelConfig, url: string, body: unknown): Promise<RequestInit> {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
  if (config.api_key !== undefined) {
    return { ...init, headers: { ...init.headers, authorization: `Bearer ${config.api_key}` } }
  }
  const { access_key_id, secret_access_key, session_token, region } = config as Record<string, string>
  const signer = new AwsV4Signer({
    ...init,
    url,
    accessKeyId: access_key_id!,
    secretAccessKey: secret_access_key!,
    ...(session_token !== undefined && { sessionToken: session_token }),
    service: 'bedrock',
    region: region!,
  })
  const { headers } = await signer.sign()
  return { ...init, headers }
}

/** Converse has no parameter for how long a model reasons: each model has its own. */
function inferenceConfig(config: ConversationModelConfig, most?: number): Record<string, unknown> {
  const { maxTokens, temperature, topP, stop } = samplingOf(config)
  const set = Object.entries({ maxTokens: most ?? maxTokens, temperature, topP, stopSequences: stop }).filter(
    ([, value]) => value !== undefined,
  )
  return set.length > 0 ? { inferenceConfig: Object.fromEntries(set) } : {}
}

async function* generate(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const call = textCall(callOptions(config, WORDING, env), signal)
  const target = url(config, request.stream ? 'converse-stream' : 'converse')
  const body = { ...conversation(request.messages), ...inferenceConfig(config) }
  const response = await call.fetch(target, () => signed(config, target, body))
  yield* request.stream
    ? readStream(call, call.read(response.body, readFrames))
    : readWhole(call, await call.text(response))
}

/** A region name becomes part of a host name, so it must not hold anything else. */
const REGION = /^[a-z]{2}(?:-[a-z0-9]+)+$/

export const bedrock: LanguageModelProvider = {
  namespace: 'bedrock',
  validate(config) {
    for (const property of [
      'api_key',
      'access_key_id',
      'secret_access_key',
      'session_token',
      'bedrock_url',
    ]) {
      allowString(config, property, `Property \`${property}\` is not a string.`)
    }
    if (typeof config.region !== 'string' || !REGION.test(config.region)) {
      throw new ApiError(400, 'Property `region` is not an AWS region, such as `us-east-1`.')
    }
    if (config.api_key === undefined && !(config.access_key_id && config.secret_access_key)) {
      throw new ApiError(
        400,
        'Bedrock models need `access_key_id` and `secret_access_key`, or an `api_key` of Bedrock.',
      )
    }
  },
  destination: (config) => url(config, 'converse'),
  async probe(config, env) {
    const call = new ProviderCall({ ...callOptions(config, WORDING, env), timeoutStatus: 408 })
    const target = url(config, 'converse')
    const hello = {
      ...conversation([{ role: 'user', content: 'hello' }]),
      ...inferenceConfig(config, 1),
    }
    await call.text(await call.fetch(target, () => signed(config, target, hello)))
  },
  generate,
}
