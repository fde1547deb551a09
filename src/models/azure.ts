/** `azure/`: Azure OpenAI. The deployment, and with it the model, is part of the URL. */
import { ApiError } from '../errors'
import { silenceOf, type Wording, wording } from './call'
import type { ConversationModelConfig, LanguageModelProvider } from './language-model'
import { type ChatEndpoint, chatModel, samplingOf } from './openai-compatible'

const WORDING: Wording = {
  ...wording('Azure'),
  unreadable: (detail) => `Failed to get response from Azure API: ${detail}`,
}

const endpoint = (config: ConversationModelConfig): ChatEndpoint => ({
  url: config.url ?? '',
  headers: { 'api-key': config.api_key ?? '' },
  body: samplingOf(config),
  wording: WORDING,
  silence: silenceOf(config),
  secret: config.api_key,
})

export const azure: LanguageModelProvider = {
  namespace: 'azure',
  validate(config) {
    for (const property of ['api_key', 'url']) {
      if (typeof config[property] !== 'string') {
        throw new ApiError(400, `${property} is required for Azure models`)
      }
    }
  },
  // Typesense makes no live check here, and clients create Azure models before the deployment answers.
  probe: async () => {},
  create: (config) => chatModel(config.model_name, endpoint(config)),
}
