/** `azure/`: Azure OpenAI. The URL contains the deployment, and with it the model. */
import { ApiError } from '../errors'
import { callOptions, type Wording, wording } from './call'
import { requireAllowed } from './egress'
import type { ConversationModelConfig, LanguageModelProvider } from './language-model'
import { type ChatEndpoint, generateChat, streamOptions } from './openai-compatible'
import { modelId } from './properties'
import { chatSampling } from './sampling'

const WORDING: Wording = {
  ...wording('Azure'),
  unreadable: (detail) => `Failed to get response from Azure API: ${detail}`,
}

const endpoint = (config: ConversationModelConfig, env: Cloudflare.Env): ChatEndpoint => ({
  url: config.url ?? '',
  headers: { 'api-key': config.api_key ?? '' },
  body: {
    ...streamOptions(config, countsTokens(config.url ?? '')),
    ...chatSampling(config, modelId(config.model_name)),
  },
  options: callOptions(config, WORDING, env),
})

/**
 * Whether the API version in a URL accepts `stream_options`: since 2024-09-01-preview
 * (https://learn.microsoft.com/azure/ai-services/openai/api-version-deprecation). Versions are dates, which sort as
 * text.
 */
const countsTokens = (url: string): boolean =>
  (URL.parse(url)?.searchParams.get('api-version') ?? '') >= '2024-09-01'

export const azure: LanguageModelProvider = {
  namespace: 'azure',
  forms: ['json', 'schema'],
  validate(config, env) {
    for (const property of ['api_key', 'url']) {
      if (typeof config[property] !== 'string') {
        throw new ApiError(400, `${property} is required for Azure models`)
      }
    }
    requireAllowed(String(config.url), env)
  },
  destination: (config, env) => endpoint(config, env).url,
  // Like Typesense, makes no live check: clients create Azure models before the deployment answers.
  probe: async () => {},
  generate: (config, env, ...call) => generateChat(endpoint(config, env), ...call),
}
