/**
 * `local/extractive`: answers without a language model, by picking the sentences that answer. Deterministic,
 * free, offline, and named as what it is in every answer's usage.
 */
import { ApiError } from '../errors'
import { answerFrom } from './extractive/answer'
import { standalone } from './extractive/followup'
import { suggestionsFrom } from './extractive/suggestions'
import type { Delta, GenerationRequest, LanguageModelProvider } from './language-model'

const NAME = 'local/extractive'

async function* generate(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<Delta> {
  signal.throwIfAborted()
  if (request.purpose === 'guardrail') throw new ApiError(400, `${NAME} cannot apply an input guardrail.`)
  const text = reply(request)
  const pieces = request.stream ? (text.match(/(?<!\s)\s*\S+/g) ?? []) : [text]
  for (const piece of pieces) yield { type: 'text', text: piece }
  yield { type: 'usage', inputTokens: 0, outputTokens: 0 }
  yield { type: 'finish', reason: 'stop' }
}

function reply({ purpose, question, history, sources }: GenerationRequest): string {
  if (purpose === 'standalone') return standalone(question, history)
  if (purpose === 'followups') return suggestionsFrom(question, history.at(-1)?.content ?? '', sources)
  return answerFrom(question, sources)
}

export const local: LanguageModelProvider = {
  namespace: 'local',
  validate(config) {
    if (config.model_name !== NAME) {
      throw new ApiError(
        400,
        `Property \`model_name\` is not a valid local model: the only one is \`${NAME}\`.`,
      )
    }
    if (typeof config.input_guardrail_prompt === 'string') {
      throw new ApiError(400, `${NAME} cannot apply an \`input_guardrail_prompt\`.`)
    }
  },
  destination: () => undefined,
  probe: async () => {},
  generate: (_, __, request, signal) => generate(request, signal),
}
