/**
 * The chat-completions wire of OpenAI, Azure, vLLM and most other servers.
 *
 * Streams differ in details: chunks without choices, null content, usage alone, reasoning beside the text, errors
 * inside the stream, no `[DONE]` or no `finish_reason`. One of the last two is required: a stream without either was
 * cut, and a cut answer is not an answer.
 */
import type { AnswerForm } from './answer-form'
import { type CallOptions, ProviderCall, parseObject, textCall } from './call'
import type { ConversationModelConfig, Delta, FinishReason, GenerationRequest } from './language-model'
import { finishReasonIn, Reply, usageOf } from './reply'

export interface ChatEndpoint {
  /** full URL of the chat-completions resource */
  url: string
  headers: Record<string, string>
  /** the request besides messages and stream: the model, sampling */
  body: Record<string, unknown>
  options: Omit<CallOptions, 'timeoutStatus'>
}

/**
 * Asks for token counts in a stream. Without this option they are estimated. It is sent if the model's config asks
 * for it or the server is known to support it, because other servers may refuse it.
 */
export function streamOptions(config: ConversationModelConfig, isKnown: boolean): Record<string, unknown> {
  const { stream_options = isKnown ? { include_usage: true } : undefined } = config
  return stream_options === undefined ? {} : { stream_options }
}

/**
 * The live check of a model: one `hello`.
 * @throws ApiError 400 or 408 with the provider's message
 */
export async function probeChat(endpoint: ChatEndpoint): Promise<void> {
  const call = new ProviderCall({ ...endpoint.options, timeoutStatus: 408 })
  const { stream_options: _, ...body } = endpoint.body
  const response = await call.fetch(
    endpoint.url,
    post(endpoint, { ...body, messages: [{ role: 'user', content: 'hello' }] }),
  )
  await call.text(response)
}

const post = (endpoint: ChatEndpoint, body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...endpoint.headers },
  body: JSON.stringify(body),
})

/** https://platform.openai.com/docs/guides/structured-outputs */
const responseFormat = (form: AnswerForm): Record<string, unknown> => {
  if (form.type === 'json') return { type: 'json_object' }
  const { type: _, ...schema } = form
  return { type: 'json_schema', json_schema: schema }
}

/** Calls a chat-completions endpoint, as `LanguageModel.generate` says. */
export async function* generateChat(
  endpoint: ChatEndpoint,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const call = textCall(endpoint.options, signal)
  const { stream_options, ...body } = endpoint.body
  const response = await call.fetch(
    endpoint.url,
    post(endpoint, {
      ...body,
      messages: request.messages,
      ...(request.form && { response_format: responseFormat(request.form) }),
      ...(request.stream && { stream: true, ...(stream_options !== undefined && { stream_options }) }),
    }),
  )
  // Some servers cannot stream, and reply in one piece anyway.
  const whole = !request.stream || (response.headers.get('content-type') ?? '').includes('application/json')
  yield* whole ? readWhole(call, await call.text(response)) : readStream(call, call.events(response.body))
}

/** The deltas of an answer in one piece. @throws ApiError as readStream does */
export function* readWhole(call: ProviderCall, body: string): Generator<Delta> {
  const completion = parseObject(body) as Completion | undefined
  if (completion?.error !== undefined && completion.error !== null) throw call.reported(body)
  const choice = completion?.choices?.[0]
  if (!choice?.message && completion?.response === undefined) throw call.malformed()
  const reply = new Reply(call, { whole: true })
  const text = pieceIn(choice?.message, completion)
  yield* reply.said(text, reasoningIn(choice?.message))
  reply.finish = finishReason(choice?.finish_reason, call)
  reply.usage = costOf(completion?.usage)
  reply.refuses(contentText(choice?.message?.refusal))
  yield* reply.end()
}

/**
 * The deltas of a chat-completions stream.
 * @throws ApiError for an error object in the stream, and for a stream that breaks off or has no text
 */
export async function* readStream(call: ProviderCall, events: AsyncIterable<string>): AsyncGenerator<Delta> {
  const reply = new Reply(call)
  for await (const data of events) {
    if (data === '[DONE]') {
      reply.finish ??= 'stop'
      break
    }
    reply.any = true
    const chunk = parseObject(data) as Completion | undefined
    if (!chunk) throw call.malformed()
    if (chunk.error !== undefined && chunk.error !== null) throw call.reported(data)
    // Servers that report usage continuously repeat it in each chunk; the last one counts.
    reply.usage = costOf(chunk.usage) ?? reply.usage
    const choice = chunk.choices?.[0]
    yield* reply.said(pieceIn(choice?.delta, chunk), reasoningIn(choice?.delta))
    reply.refuses(contentText(choice?.delta?.refusal))
    if (choice?.finish_reason) reply.finish = finishReason(choice.finish_reason, call)
  }
  yield* reply.end()
}

interface Message {
  content?: unknown
  reasoning_content?: unknown
  reasoning?: unknown
  thinking?: unknown
  /** OpenRouter sends a list of parts */
  reasoning_details?: unknown
  refusal?: unknown
}

/** The parts of a completion or chunk that are read. Each may be missing or null. */
interface Completion {
  choices?: ({ message?: Message | null; delta?: Message | null; finish_reason?: unknown } | null)[] | null
  usage?: unknown
  error?: unknown
  response?: unknown
}

/**
 * What a message adds to the answer. Workers AI's own models send {response} instead of choices. It reads each token as JSON where that is
 * possible, and so does a model in JSON mode: `{}` arrives as an object.
 */
function pieceIn(message: Message | null | undefined, { response }: Completion = {}): string {
  const content = message?.content
  if (isObject(content) && !Array.isArray(content)) return JSON.stringify(content)
  return contentText(content) || (isObject(response) ? JSON.stringify(response) : contentText(response))
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** Text, or the text of a list of content parts. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  // A model in JSON mode may send a number, and small models answer sums with one.
  if (typeof content === 'number' || typeof content === 'boolean') return String(content)
  if (!Array.isArray(content)) return ''
  return content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join('')
}

/** A message's thoughts, under the different names that servers use. */
function reasoningIn(message: Message | null | undefined): string {
  if (!message) return ''
  const { reasoning_content, reasoning, thinking, reasoning_details, content } = message
  const apart = contentText(reasoning_content ?? reasoning ?? thinking ?? reasoning_details)
  if (apart !== '' || !Array.isArray(content)) return apart
  // Mistral's are parts of the content, each a list of texts.
  return content.map((part) => contentText(part?.thinking)).join('')
}

function costOf(usage: unknown): Delta | undefined {
  if (usage === null || typeof usage !== 'object') return undefined
  const { prompt_tokens, completion_tokens } = usage as Record<string, unknown>
  return usageOf(prompt_tokens, completion_tokens)
}

/** As servers of this wire write it. */
const FINISH_REASONS: Record<string, FinishReason> = {
  stop: 'stop',
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  max_tokens: 'length',
  max_length: 'length',
  max_output_tokens: 'length',
  model_length: 'length',
  model_context_window_exceeded: 'length',
  max_new_tokens: 'length',
  token_limit: 'length',
  time_limit: 'length',
  content_filter: 'content_filter',
  sensitive: 'content_filter',
  safety: 'content_filter',
  refusal: 'content_filter',
}
/** What says that the provider failed: of vLLM and SGLang, watsonx, Zhipu and DeepSeek. */
const FAILED = [
  'error',
  'failed',
  'abort',
  'aborted',
  'cancelled',
  'network_error',
  'insufficient_system_resource',
]

/** @throws ProviderError for an answer that an error ended */
function finishReason(reason: unknown, call: ProviderCall): FinishReason {
  if (reason === undefined || reason === null) return 'stop'
  const said = typeof reason === 'string' ? reason.toLowerCase() : ''
  if (FAILED.includes(said)) throw call.failed('an error of the provider ended the answer', 'cut')
  return finishReasonIn(FINISH_REASONS, said)
}
