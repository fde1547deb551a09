/**
 * Requests that chat front ends make for themselves: titles, tags, next questions and queries of a chat, as Open
 * WebUI and LibreChat do with their default prompts. The model answers such a prompt alone, without a search, and
 * nothing is stored.
 */
import { answeringOf, answerOnce } from '../../conversation/stateless-turn'
import { ApiError } from '../../errors'
import { contentOf } from '../../lib/parts'
import { byteLength } from '../../turn/prompt'
import { admitTurn } from '../http/admit-turn'
import type { ChatParties } from '../http/chat-names'
import { findOpenModel } from '../http/open-assistant'
import type { AssistantAnswering } from '../shared/assistant'
import type { ModelQuestion } from './question'

/** Open WebUI's prompts have two headings; LibreChat's are three sentences of its own. */
const TASKS = [
  /^\s*### Task:[\s\S]*(?:### Chat History|<chat_history>)/,
  /^\s*Provide a concise, 5-word-or-less title for the conversation/,
  /^\s*Please generate a concise,? (?:5-word-or-less )?title\b/,
  /^\s*Analyze this conversation and provide:\s+1\. The detected language/,
]

/** The most tokens of an answer. */
const MOST_TOKENS = 500
/** Share of the model's `max_bytes` that the prompt may take. */
const SHARE = 0.8

/** @param forPages whether visitors of a page have the key: they could write such a prompt, and get the model alone */
export const isTask = ({ question }: Pick<ModelQuestion, 'question'>, forPages: boolean): boolean =>
  !forPages && TASKS.some((task) => task.test(question))

/** @throws ApiError 400, 401, 429 */
export async function askTask(
  { env, request, record, access, assistant, user }: ChatParties,
  { question, form }: Pick<ModelQuestion, 'question' | 'form'>,
  bodyText: string,
): Promise<AssistantAnswering> {
  const model = await findOpenModel(env, [access], assistant.model)
  if (!model) throw new ApiError(400, 'The conversation model of this assistant does not exist any more.')
  const { system_prompt: _, ...alone } = model
  const conversationId = crypto.randomUUID()
  const limits = [model.max_tokens, model.max_completion_tokens, MOST_TOKENS]
  const settings = { max_tokens: Math.min(...limits.filter((limit) => typeof limit === 'number')) }
  const reads = answerOnce(
    env,
    {
      question: contentOf(shortened(question, model.max_bytes * SHARE)),
      model: alone,
      settings,
      historyId: '',
      given: { passages: [], turns: 0, alone: true },
      onSearchError: 'fail',
      ...(form && { form }),
      protocol: 'openai',
      ...(await admitTurn({ env, request, record, accesses: [access], body: bodyText, userId: user }, model)),
    },
    conversationId,
  )
  return { ...answeringOf(conversationId, reads), retrievals: [], dropped: [] }
}

/**
 * Leaves out the middle of a prompt that is too long. The instructions are at its beginning, and the latest messages
 * at its end.
 */
function shortened(prompt: string, mostBytes: number): string {
  if (byteLength(prompt) <= mostBytes) return prompt
  // A UTF-16 unit is three bytes of UTF-8 at most.
  const half = Math.floor(mostBytes / 6)
  return `${prompt.slice(0, half)}\n…\n${prompt.slice(-half)}`
}
