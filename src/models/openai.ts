/** `openai/`: OpenAI, and through `openai_url` any server that speaks its chat completions. */
import { callOptions, wording } from './call'
import type { ConversationModelConfig, LanguageModelProvider } from './language-model'
import { type ChatEndpoint, generateChat, probeChat, streamOptions } from './openai-compatible'
import { allowString, modelId, requireString, withLeadingSlash, withoutTrailingSlash } from './properties'
import { chatSampling } from './sampling'

export const OPENAI_URL = 'https://api.openai.com'

const endpoint = (config: ConversationModelConfig, env: Cloudflare.Env): ChatEndpoint => ({
  url:
    withoutTrailingSlash(config.openai_url ?? OPENAI_URL) +
    withLeadingSlash(config.openai_path ?? '/v1/chat/completions'),
  headers: { authorization: `Bearer ${config.api_key}` },
  body: {
    model: modelId(config.model_name),
    ...streamOptions(config, config.openai_url === undefined),
    ...chatSampling(config, modelId(config.model_name), config.openai_url === undefined),
  },
  options: callOptions(config, wording('OpenAI'), env),
})

export const openai: LanguageModelProvider = {
  namespace: 'openai',
  forms: ['json', 'schema'],
  validate(config) {
    requireString(config, 'api_key', 'API key is not provided', 'API key is not a string')
    allowString(config, 'openai_url', 'Property `openai_url` is not a string.')
    allowString(config, 'openai_path', 'Property `openai_path` is not a string.')
  },
  destination: (config, env) => endpoint(config, env).url,
  probe: (config, env) => probeChat(endpoint(config, env)),
  generate: (config, env, ...call) => generateChat(endpoint(config, env), ...call),
}
