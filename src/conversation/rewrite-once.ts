/** Rewrites a follow-up to stand alone, for a caller who searches by itself (given.ts). */
import type { ConversationModelConfig, GenerationRequest } from '../models/language-model'
import { namespaceOf } from '../models/providers'
import { historyStore } from '../registry/engines'
import { fitHistory } from '../turn/budget'
import { generate } from '../turn/generate'
import type { Given } from '../turn/given'
import { toChat } from '../turn/look-back'
import { familyOf, standalonePrompt } from '../turn/prompt'
import { languageModelOf, rewriterOf } from './turn-models'

/**
 * @param conversation that the question follows up on; its caller may read it
 * @returns undefined if nothing was said before, or if the model returns the question unchanged
 * @throws ApiError from the model
 */
export async function rewriteOnce(
  env: Cloudflare.Env,
  conversation: { id: string; historyId: string },
  question: string,
  config: ConversationModelConfig,
  signal: AbortSignal,
): Promise<Given['rewritten']> {
  const { max_bytes: bytes, model_name: name } = config
  const { messages } = await historyStore(env, conversation.historyId).recentMessages(conversation.id, bytes)
  if (messages.length === 0) return undefined
  const said = messages.map(({ role, message, timestamp }) =>
    toChat({ role: role === 'user' ? 'user' : 'assistant', message, timestamp }),
  )
  const history = fitHistory(said, question, bytes, familyOf(name), namespaceOf(name))
  const model = (await rewriterOf(config, env)) ?? languageModelOf(config, env)
  const prompt = standalonePrompt(familyOf(name), history, question)
  const request: GenerationRequest = {
    purpose: 'standalone',
    messages: prompt,
    question,
    sources: [],
    history,
    stream: false,
  }
  const started = Date.now()
  const { text, finish, usage } = await generate(model, request, signal)
  const isWhole = finish !== 'length' && finish !== 'content_filter'
  return {
    question: isWhole ? text.trim() : question,
    call: {
      purpose: 'standalone',
      model: model.name,
      prompt,
      text,
      finish_reason: finish,
      input_tokens: usage.inputTokens,
      output_tokens: usage.outputTokens,
      ...(usage.estimated && { estimated: true }),
      started: 0,
      took: Date.now() - started,
    },
  }
}
