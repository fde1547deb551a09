/** `vllm/`: a vLLM server. A model is accepted only if the server lists it. */
import { ApiError } from '../errors'
import { callOptions, ProviderCall, parseObject, wording } from './call'
import type { ConversationModelConfig, LanguageModelProvider } from './language-model'
import { type ChatEndpoint, generateChat, probeChat, streamOptions } from './openai-compatible'
import { allowString, modelId, requireString, withoutTrailingSlash } from './properties'
import { chatSampling } from './sampling'

// Typesense reports a malformed reply of vLLM as OpenAI's, and clients may compare the message.
const WORDING = { ...wording('vLLM'), malformed: wording('OpenAI').malformed }

const base = (config: ConversationModelConfig): string => withoutTrailingSlash(config.vllm_url ?? '')

const endpoint = (config: ConversationModelConfig, env: Cloudflare.Env): ChatEndpoint => ({
  url: `${base(config)}/v1/chat/completions`,
  headers: authorization(config),
  body: {
    model: modelId(config.model_name),
    // Supported since vLLM 0.5, of June 2024.
    ...streamOptions(config, true),
    ...chatSampling(config, modelId(config.model_name)),
  },
  options: callOptions(config, WORDING, env),
})

const authorization = (config: ConversationModelConfig): Record<string, string> =>
  config.api_key ? { authorization: `Bearer ${config.api_key}` } : {}

async function isListed(config: ConversationModelConfig, env: Cloudflare.Env): Promise<boolean> {
  const call = new ProviderCall({ ...endpoint(config, env).options, timeoutStatus: 408 })
  const response = await call.fetch(`${base(config)}/v1/models`, { headers: authorization(config) })
  const models = parseObject(await call.text(response))?.data
  if (!Array.isArray(models)) throw call.malformed()
  return models.some((model) => model?.id === modelId(config.model_name))
}

export const vllm: LanguageModelProvider = {
  namespace: 'vllm',
  forms: ['json', 'schema'],
  validate(config) {
    requireString(config, 'vllm_url', 'vLLM URL is not provided', 'vLLM URL is not a string')
    allowString(config, 'api_key', 'API key is not a string')
  },
  destination: (config, env) => endpoint(config, env).url,
  async probe(config, env) {
    if (!(await isListed(config, env))) {
      throw new ApiError(400, 'Property `model_name` is not a valid vLLM model.')
    }
    await probeChat(endpoint(config, env))
  },
  generate: (config, env, ...call) => generateChat(endpoint(config, env), ...call),
}
