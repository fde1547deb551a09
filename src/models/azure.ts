/** `azure/`: Azure OpenAI. The deployment, and with it the model, is part of the URL. */
import { ApiError } from '../errors'
import { silenceOf, type Wording, wording } from './call'
import { requireAllowed } from './egress'
import type { ConversationModelConfig, LanguageModelProvider } from './language-model'
import { type ChatEndpoint, chatModel, samplingOf } from './openai-compatible'
import { secretsOf } from './secrets'

const WORDING: Wording = {
  ...wording('Azure'),
  unreadable: (detail) => `Failed to get response from Azure API: ${detail}`,
}

const endpoint = (config: ConversationModelConfig, env: Cloudflare.Env): ChatEndpoint => ({
  url: config.url ?? '',
  headers: { 'api-key': config.api_key ?? '' },
  body: samplingOf(config),
  wording: WORDING,
  silence: silenceOf(config),
  secrets: secretsOf(config),
  env,
})

export const azure: LanguageModelProvider = {
  namespace: 'azure',
  validate(config, env) {
    for (const property of ['api_key', 'url']) {
      if (typeof config[property] !== 'string') {
        throw new ApiError(400, `${property} is required for Azure models`)
      }
    }
    requireAllowed(String(config.url), env)
  },
  // Typesense makes no live check here, and clients create Azure models before the deployment answers.
  probe: async () => {},
  create: (config, env) => chatModel(config.model_name, endpoint(config, env)),
}
