/**
 * The port to language models: one small interface, one file for each provider.
 *
 * An adapter turns a request into the provider's call, and the provider's stream into deltas. It stores nothing, does
 * not retry (resilient.ts does), and throws an ApiError with the contract's text ("OpenAI API error: ...") for faults
 * of the provider.
 */

import type { Picture, ToolCallPart, ToolResultPart } from '../lib/parts'

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant'
  content: string
  /** of an assistant: the calls of tools that its model asked for */
  calls?: ToolCallPart[]
  /** of a user: what is shown with the text */
  pictures?: readonly Picture[]
  /** of a user, in the place of `content`: what the tools replied to the calls of the message before */
  results?: ToolResultPart[]
}

/** A tool as a model is told of it. */
export interface ToolSpec {
  name: string
  description: string
  /** a JSON Schema of an object */
  parameters: Record<string, unknown>
}

/** A document of the prompt, for models that answer without one (local/extractive). */
export interface Source {
  /** the collection that it was found in */
  collection: string
  /** the document as in the prompt: without vectors, with include_fields and exclude_fields applied */
  document: Record<string, unknown>
  /** the name by which the answer has to cite it in square brackets; absent if it need not */
  label?: string
  /** its score in the search (turn/retrieve.ts); absent if no search found it */
  score?: number
  /** its words that the search found it by: those of the question, corrected ones and synonyms */
  matched?: string[]
}

export interface GenerationRequest {
  /** what the reply is for */
  purpose: 'answer' | 'standalone' | 'guardrail' | 'followups' | 'query' | 'task'
  /** the complete prompt: all that a remote provider gets */
  messages: ChatMessage[]
  /** the question in the prompt; when a follow-up is answered, the standalone one */
  question: string
  /** the documents in the prompt, best first; for `answer` and `followups` */
  sources: Source[]
  /** the conversation so far, oldest first; for `standalone`, and its last turn for `followups` */
  history: ChatMessage[]
  /** the form that the reply has to have, for `answer` */
  form?: AnswerForm
  /** tools that it may call; absent: none */
  tools?: readonly ToolSpec[]
  /** true: it may call none any more. Providers want to be told of tools that were called before */
  mustAnswer?: true
  /** the trace keeps its text, since readers may not get it */
  keepsText?: true
  /** false asks for the reply in one piece, if the provider can do both */
  stream: boolean
}

/** What a model is told. */
export type Said = Pick<GenerationRequest, 'messages' | 'tools' | 'mustAnswer'>

/** What is said apart from the system prompt, for providers that have that in a place of its own. */
export const apart = ({ messages }: Said): { system: string[]; messages: ChatMessage[] } => ({
  system: messages.filter(({ role }) => role === 'system').map(({ content }) => content),
  messages: messages.filter(({ role }) => role !== 'system'),
})

/** The messages of chat completions: text, or a list of parts where there are pictures. Each result is a message of its own. */
export const chatMessages = (said: Said): Record<string, unknown>[] =>
  said.messages.flatMap(({ role, content, pictures = [], calls, results }): Record<string, unknown>[] => {
    if (results) {
      return results.map(({ id, text }) => ({ role: 'tool', tool_call_id: id, content: text }))
    }
    if (calls) {
      const tool_calls = calls.map(({ id, name, arguments: given }) => ({
        id,
        type: 'function',
        function: { name, arguments: given },
      }))
      return [{ role, content, tool_calls }]
    }
    if (pictures.length === 0) return [{ role, content }]
    const images = pictures.map(({ media_type, data }) => ({
      type: 'image_url',
      image_url: { url: `data:${media_type};base64,${data}` },
    }))
    return [{ role, content: [{ type: 'text', text: content }, ...images] }]
  })

/** The tools of chat completions. */
export const chatTools = ({ tools, mustAnswer }: Said): Record<string, unknown> =>
  tools === undefined
    ? {}
    : {
        tools: tools.map((tool) => ({ type: 'function', function: tool })),
        ...(mustAnswer && { tool_choice: 'none' }),
      }

/** The arguments of a call as the object that providers want back; none if the model wrote something else. */
export function argumentsOf({ arguments: given }: Pick<ToolCallPart, 'arguments'>): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(given)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  } catch {}
  return {}
}

/** `tool_calls`: a call waits for whoever asked */
export type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls' | 'other'

/** A piece of a model's output. Reasoning never becomes part of an answer. */
export type Delta =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** the model wants a tool to run */
  | { type: 'call'; call: ToolCallPart }
  | { type: 'usage'; inputTokens: number; outputTokens: number }
  | ({ type: 'finish'; reason: FinishReason } & Verdict)
  /** a failed attempt, before another one (models/resilient.ts) */
  | FailedAttempt
  /** the model that answers in place of the one that was asked; comes before the first piece */
  | { type: 'model'; name: string; id: string }

/** Whether the documents in the prompt support a sentence of an answer. */
export interface SentenceSupport {
  /** the sentence's place in the answer: UTF-16 offsets, `end` exclusive */
  start: number
  end: number
  support: 'supported' | 'partly' | 'not_found'
  /** its numbers and names that the documents lack, the first five */
  missing?: string[]
}

/** What is known of how far a reply can be relied on. A model says the first two of its own reply, where it can tell. */
export interface Verdict {
  /** it has no answer, or made small talk. The reply then cites nothing, whatever it says */
  declined?: true
  /** the answer says of itself that it may be none */
  warned?: true
  /** what the documents say of its sentences (turn/citations.ts) */
  support?: SentenceSupport[]
  /** the name of the person who wrote it in the place of a model */
  author?: string
}

/** The verdict alone, of anything that has one. */
export const verdictOf = ({ declined, warned, support, author }: Verdict): Verdict => ({
  ...(declined && { declined }),
  ...(warned && { warned }),
  ...(support && { support }),
  ...(author !== undefined && { author }),
})

export interface FailedAttempt {
  type: 'failed'
  model: string
  error: string
  /** the id of its conversation model, if the attempt is charged because the provider had accepted the prompt */
  id?: string
  /** bytes received from it */
  received?: number
}

export interface LanguageModel {
  /** the caller's name for it, with the namespace: `openai/gpt-4o-mini` */
  readonly name: string
  /**
   * Calls the model. The iterable ends after a `finish` delta. A provider's stream without its end marker throws,
   * since a cut answer is not an answer.
   * @throws ApiError 400 or 408 with the provider's message in the contract's words
   */
  generate(request: GenerationRequest, signal: AbortSignal): AsyncIterable<Delta>
}

/** A stored conversation model with its key in clear. Unknown properties are kept. */
export interface ConversationModelConfig {
  id: string
  model_name: string
  history_collection: string
  max_bytes: number
  ttl: number
  system_prompt?: string
  api_key?: string
  account_id?: string
  url?: string
  openai_url?: string
  openai_path?: string
  vllm_url?: string
  /** ids of conversation models that answer while this one cannot, in order */
  fallbacks?: unknown
  /**
   * the model that writes standalone questions and suggestions: the id of a conversation model, or the name of a
   * model of the same provider
   */
  rewrite_model?: unknown
  /** tokens that may be used in a day */
  tokens_per_day?: unknown
  turns_per_day?: unknown
  [extra: string]: unknown
}

/** What the registry (models/providers.ts) needs for a namespace (`openai/`, `vllm/`, ...). */
export interface LanguageModelProvider {
  /** the text before the first slash of `model_name` */
  namespace: string
  /** whether its models call tools by the wire's own means; absent: they are told to write calls as text */
  callsTools?: true
  /** forms that its models can be held to; absent: none */
  forms?: readonly AnswerForm['type'][]
  /**
   * Checks the provider's own properties.
   * @throws ApiError 400 with the contract's message
   */
  validate(config: Record<string, unknown>, env: Cloudflare.Env): void
  /** The URL that a checked model is called at, with its secrets; undefined for a model without a URL. */
  destination(config: ConversationModelConfig, env: Cloudflare.Env): string | undefined
  /**
   * The live check when a model is created or updated. Resolves at once for a provider without one.
   * @throws ApiError 400 or 408 with the provider's message
   */
  probe(config: ConversationModelConfig, env: Cloudflare.Env): Promise<void>
  /** Calls a model, as `LanguageModel.generate` says. */
  generate(
    config: ConversationModelConfig,
    env: Cloudflare.Env,
    request: GenerationRequest,
    signal: AbortSignal,
  ): AsyncIterable<Delta>
}

/** The form of an answer that a request asks for. */
export type AnswerForm =
  /** any JSON object */
  | { type: 'json' }
  /** JSON that fits a JSON Schema. `strict` is passed on to providers that support it */
  | { type: 'schema'; name: string; schema: Record<string, unknown>; strict?: boolean }
