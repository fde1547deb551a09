/**
 * `local/extractive`: answers without a language model, by selecting sentences. Deterministic, free, offline, and
 * named in every answer's usage.
 */
import { badRequest, reasonOf } from '../errors'
import { type Answer, answerFrom } from './extractive/answer'
import { dictionaryOf } from './extractive/documents-words'
import { standalone } from './extractive/followup'
import { languageOf } from './extractive/language'
import type { Meaning } from './extractive/meaning'
import { suggestionsFrom } from './extractive/suggestions'
import { taskFrom } from './extractive/task'
import { type Delta, type GenerationRequest, type LanguageModelProvider, verdictOf } from './language-model'
import { type Dictionary, respelled } from './spelling'
import { staticEmbedder } from './static-embedder'
import { wordsOf } from './words'

const NAME = 'local/extractive'

async function* generate(
  env: Cloudflare.Env,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  signal.throwIfAborted()
  if (request.purpose === 'guardrail') throw badRequest(`${NAME} cannot apply an input guardrail.`)
  const { text, ...answer } = await reply(env, request)
  const pieces = request.stream ? (text.match(/(?<!\s)\s*\S+/g) ?? []) : [text]
  for (const piece of pieces) yield { type: 'text', text: piece }
  yield { type: 'usage', inputTokens: 0, outputTokens: 0 }
  yield { type: 'finish', reason: 'stop', ...verdictOf(answer) }
}

async function reply(
  env: Cloudflare.Env,
  { purpose, question, history, sources }: GenerationRequest,
): Promise<Answer> {
  const said = (text: string): Answer => ({ text })
  if (purpose === 'standalone') return said(standalone(question, history))
  if (purpose === 'followups') return said(suggestionsFrom(question, history.at(-1)?.content ?? '', sources))
  if (purpose === 'task') return said(taskFrom(question))
  const meaning = await meaningOf(env)
  // The table's words are English: they would correct `dauert`.
  const words = meaning && languageOf(wordsOf(question)) === undefined ? meaning.words : new Map()
  return answerFrom(await respelled(question, dictionaryOf(sources, words)), sources, meaning)
}

/**
 * The table of word vectors that is deployed with the Worker. Undefined if it is missing; then words are matched as
 * they are.
 */
async function meaningOf(
  env: Cloudflare.Env,
): Promise<(Meaning & { words: Dictionary['language'] }) | undefined> {
  if (!env.ASSETS) return undefined
  const embedder = staticEmbedder(env)
  try {
    await embedder.ready?.()
  } catch (error) {
    console.warn('local/extractive answers by words alone', reasonOf(error))
    return undefined
  }
  return { vector: (text) => embedder.embedNow!(text)!, words: embedder.words!() }
}

export const local: LanguageModelProvider = {
  namespace: 'local',
  validate(config) {
    if (config.model_name !== NAME) {
      throw badRequest(`Property \`model_name\` is not a valid local model: the only one is \`${NAME}\`.`)
    }
    if (typeof config.input_guardrail_prompt === 'string') {
      throw badRequest(`${NAME} cannot apply an \`input_guardrail_prompt\`.`)
    }
  },
  destination: () => undefined,
  probe: async () => {},
  generate: (_, env, request, signal) => generate(env, request, signal),
}
