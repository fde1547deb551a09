/**
 * The port to language models: one small interface, one file a provider.
 *
 * An adapter turns a request into the provider's call and the provider's stream into deltas. It keeps
 * nothing, retries nothing (resilient.ts does), and throws an ApiError with the contract's own text
 * ("OpenAI API error: ...") for whatever the provider did wrong.
 */

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant'
  content: string
}

/** A document in the prompt, as models that answer without a prompt (local/extractive) need it. */
export interface Source {
  /** name of the collection it was found in */
  collection: string
  /** the document as it stands in the prompt: no vectors, include_fields and exclude_fields applied */
  document: Record<string, unknown>
  /** the name by which the answer is to cite it in square brackets; absent where it need not */
  label?: string
  /** how good a hit it was (turn/retrieve.ts); absent where no search found it */
  score?: number
}

export interface GenerationRequest {
  /** why the model is called */
  purpose: 'answer' | 'standalone' | 'guardrail' | 'followups'
  /** the prompt, complete; all that a remote provider is sent */
  messages: ChatMessage[]
  /** the question that the prompt asks: the standalone one when answering a follow-up */
  question: string
  /** the documents in the prompt, best first; for `answer` and `followups` */
  sources: Source[]
  /** the conversation so far, oldest first; for `standalone`, and its last turn for `followups` */
  history: ChatMessage[]
  /** false asks the provider for its reply in one piece, where it knows the difference */
  stream: boolean
}

export type FinishReason = 'stop' | 'length' | 'content_filter' | 'other'

/** A piece of what a model says. Reasoning never becomes part of an answer. */
export type Delta =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'usage'; inputTokens: number; outputTokens: number }
  /** `declined`: it said that it has no answer, or made small talk, and quotes nobody whatever its words */
  | { type: 'finish'; reason: FinishReason; declined?: boolean }
  /** an attempt that came to nothing, before another one (models/resilient.ts) */
  | FailedAttempt
  /** who answers, with its conversation model's id, where it is another than the one asked; before its first piece */
  | { type: 'model'; name: string; id: string }

export interface FailedAttempt {
  type: 'failed'
  model: string
  error: string
  /** where it is paid for, since the provider had taken the prompt: the id of its conversation model */
  id?: string
  /** and bytes that came of it */
  received?: number
}

export interface LanguageModel {
  /** as the caller named it, with its namespace: `openai/gpt-4o-mini` */
  readonly name: string
  /**
   * Calls the model. The iterable ends after a `finish` delta; a provider's stream that ends without its
   * end marker throws instead, since a cut answer is not an answer.
   * @throws ApiError 400 or 408 with the provider's message in the contract's words
   */
  generate(request: GenerationRequest, signal: AbortSignal): AsyncIterable<Delta>
}

/** The stored conversation model (contract 1.2) with its key in clear; unknown extras ride along. */
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
  /** ids of conversation models that answer while this one cannot, in their order */
  fallbacks?: unknown
  /** id of a conversation model, or name of one of the same provider, for what is written beside the answer */
  rewrite_model?: unknown
  /** what may be spent on it in a day */
  tokens_per_day?: unknown
  turns_per_day?: unknown
  [extra: string]: unknown
}

/** What a namespace (`openai/`, `vllm/`, ...) brings to the registry in models/providers.ts. */
export interface LanguageModelProvider {
  /** the text before the first slash of `model_name` */
  namespace: string
  /**
   * Checks the provider's own properties (contract 1.2, second table).
   * @throws ApiError 400 with the contract's message
   */
  validate(config: Record<string, unknown>, env: Cloudflare.Env): void
  /**
   * The URL that a checked model is called at, its secrets going along; undefined where it is called by no URL.
   */
  destination(config: ConversationModelConfig, env: Cloudflare.Env): string | undefined
  /**
   * The live check made when a model is created or updated; a provider without one resolves at once.
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
