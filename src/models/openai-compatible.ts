/**
 * The chat-completions wire of OpenAI, Azure, vLLM and most other servers.
 *
 * Streams differ in details: chunks without choices, null content, usage alone, reasoning beside the text, errors
 * inside the stream, no `[DONE]` or no `finish_reason`. One of the last two is required: a stream without either was
 * cut, and a cut answer is not an answer.
 */

import { badRequest } from '../errors'
import {
  type CallOptions,
  callOptions,
  jsonRequest,
  ProviderCall,
  parseObject,
  textCall,
  type Wording,
  wording,
} from './call'
import { requireAllowed } from './egress'
import {
  type AnswerForm,
  type ConversationModelConfig,
  chatMessages,
  chatTools,
  type Delta,
  type FinishReason,
  type GenerationRequest,
  type LanguageModelProvider,
} from './language-model'
import { finishReasonIn, Reply, usageOf } from './reply'
import {
  allowString,
  chatSampling,
  modelId,
  requireString,
  withLeadingSlash,
  withoutTrailingSlash,
} from './sampling'

interface ChatEndpoint {
  /** full URL of the chat-completions resource */
  url: string
  headers: Record<string, string>
  /** the request besides messages and stream: the model, sampling */
  body: Record<string, unknown>
  options: CallOptions
}

/**
 * Asks for token counts in a stream. Without this option they are estimated. It is sent if the model's config asks
 * for it or the server is known to support it, because other servers may refuse it.
 */
function streamOptions(config: ConversationModelConfig, isKnown: boolean): Record<string, unknown> {
  const { stream_options = isKnown ? { include_usage: true } : undefined } = config
  return stream_options === undefined ? {} : { stream_options }
}

/**
 * The live check of a model: one `hello`.
 * @throws ApiError 400 or 408 with the provider's message
 */
async function probeChat(endpoint: ChatEndpoint): Promise<void> {
  const call = new ProviderCall(endpoint.options)
  const { stream_options: _, ...body } = endpoint.body
  const response = await call.fetch(
    endpoint.url,
    jsonRequest({ ...body, messages: [{ role: 'user', content: 'hello' }] }, endpoint.headers),
  )
  await call.text(response)
}

/** https://platform.openai.com/docs/guides/structured-outputs */
const responseFormat = (form: AnswerForm): Record<string, unknown> => {
  if (form.type === 'json') return { type: 'json_object' }
  const { type: _, ...schema } = form
  return { type: 'json_schema', json_schema: schema }
}

/** Calls a chat-completions endpoint, as `LanguageModel.generate` says. */
async function* generateChat(
  endpoint: ChatEndpoint,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const call = textCall(endpoint.options, signal, request)
  const { stream_options, ...body } = endpoint.body
  const response = await call.fetch(
    endpoint.url,
    jsonRequest(
      {
        ...body,
        messages: chatMessages(request),
        ...chatTools(request),
        ...(request.form && { response_format: responseFormat(request.form) }),
        ...(request.stream && { stream: true, ...(stream_options !== undefined && { stream_options }) }),
      },
      endpoint.headers,
    ),
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
  if (!choice?.message && completion?.response === undefined && !completion?.tool_calls)
    throw call.malformed()
  const reply = new Reply(call, { whole: true })
  const text = pieceIn(choice?.message, completion)
  yield* reply.said(text, reasoningIn(choice?.message))
  readCalls(reply, choice?.message, completion ?? {})
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
    readCalls(reply, choice?.delta, chunk)
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
  tool_calls?: unknown
}

/** A call of a tool, or a piece of one. */
interface Call {
  index?: unknown
  id?: unknown
  function?: { name?: unknown; arguments?: unknown } | null
  /** Workers AI's own models */
  name?: unknown
  arguments?: unknown
}

/** Reads calls of tools, or pieces of them: later pieces of a call have its `index` alone. */
function readCalls(reply: Reply, message: Message | null | undefined, completion: Completion): void {
  const calls = message?.tool_calls ?? completion.tool_calls
  if (!Array.isArray(calls)) return
  for (const [at, call] of (calls as (Call | null)[]).entries()) {
    const { id, function: called, index = at } = call ?? {}
    const { name, arguments: piece } = called ?? call ?? {}
    reply.calls(index, { id, name, piece: piece ?? undefined })
  }
}

/** The parts of a completion or chunk that are read. Each may be missing or null. */
interface Completion {
  choices?: ({ message?: Message | null; delta?: Message | null; finish_reason?: unknown } | null)[] | null
  usage?: unknown
  error?: unknown
  response?: unknown
  tool_calls?: unknown
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

// =============================================================================
// `openai/`: OpenAI, and through `openai_url` any server that speaks its chat completions.

export const OPENAI_URL = 'https://api.openai.com'

const openaiEndpoint = (config: ConversationModelConfig, env: Cloudflare.Env): ChatEndpoint => ({
  url:
    withoutTrailingSlash(config.openai_url ?? OPENAI_URL) +
    withLeadingSlash(config.openai_path ?? '/v1/chat/completions'),
  headers: { authorization: `Bearer ${config.api_key}` },
  body: {
    model: modelId(config.model_name),
    ...streamOptions(config, config.openai_url === undefined),
    ...chatSampling(config, modelId(config.model_name), config.openai_url === undefined),
  },
  options: callOptions(config, wording('OpenAI'), env),
})

export const openai: LanguageModelProvider = {
  namespace: 'openai',
  callsTools: true,
  forms: ['json', 'schema'],
  validate(config) {
    requireString(config, 'api_key', 'API key is not provided', 'API key is not a string')
    allowString(config, 'openai_url', 'Property `openai_url` is not a string.')
    allowString(config, 'openai_path', 'Property `openai_path` is not a string.')
  },
  destination: (config, env) => openaiEndpoint(config, env).url,
  probe: (config, env) => probeChat(openaiEndpoint(config, env)),
  generate: (config, env, ...call) => generateChat(openaiEndpoint(config, env), ...call),
}

// =============================================================================
// `azure/`: Azure OpenAI. The URL contains the deployment, and with it the model.

const AZURE_WORDING: Wording = {
  ...wording('Azure'),
  unreadable: (detail) => `Failed to get response from Azure API: ${detail}`,
}

const azureEndpoint = (config: ConversationModelConfig, env: Cloudflare.Env): ChatEndpoint => ({
  url: config.url ?? '',
  headers: { 'api-key': config.api_key ?? '' },
  body: {
    ...streamOptions(config, countsTokens(config.url ?? '')),
    ...chatSampling(config, modelId(config.model_name)),
  },
  options: callOptions(config, AZURE_WORDING, env),
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
  callsTools: true,
  forms: ['json', 'schema'],
  validate(config, env) {
    for (const property of ['api_key', 'url']) {
      if (typeof config[property] !== 'string') {
        throw badRequest(`${property} is required for Azure models`)
      }
    }
    requireAllowed(String(config.url), env)
  },
  destination: (config, env) => azureEndpoint(config, env).url,
  // Like Typesense, makes no live check: clients create Azure models before the deployment answers.
  probe: async () => {},
  generate: (config, env, ...call) => generateChat(azureEndpoint(config, env), ...call),
}

// =============================================================================
// `vllm/`: a vLLM server. A model is accepted only if the server lists it.

// Typesense reports a malformed reply of vLLM as OpenAI's, and clients may compare the message.
const VLLM_WORDING = { ...wording('vLLM'), malformed: wording('OpenAI').malformed }

const base = (config: ConversationModelConfig): string => withoutTrailingSlash(config.vllm_url ?? '')

const vllmEndpoint = (config: ConversationModelConfig, env: Cloudflare.Env): ChatEndpoint => ({
  url: `${base(config)}/v1/chat/completions`,
  headers: authorization(config),
  body: {
    model: modelId(config.model_name),
    // Supported since vLLM 0.5, of June 2024.
    ...streamOptions(config, true),
    ...chatSampling(config, modelId(config.model_name)),
  },
  options: callOptions(config, VLLM_WORDING, env),
})

/** For servers that may need no key. */
export const authorization = ({ api_key: key }: { api_key?: string }): Record<string, string> =>
  key ? { authorization: `Bearer ${key}` } : {}

async function isListed(config: ConversationModelConfig, env: Cloudflare.Env): Promise<boolean> {
  const call = new ProviderCall(vllmEndpoint(config, env).options)
  const response = await call.fetch(`${base(config)}/v1/models`, { headers: authorization(config) })
  const models = parseObject(await call.text(response))?.data
  if (!Array.isArray(models)) throw call.malformed()
  return models.some((model) => model?.id === modelId(config.model_name))
}

export const vllm: LanguageModelProvider = {
  namespace: 'vllm',
  callsTools: true,
  forms: ['json', 'schema'],
  validate(config) {
    requireString(config, 'vllm_url', 'vLLM URL is not provided', 'vLLM URL is not a string')
    allowString(config, 'api_key', 'API key is not a string')
  },
  destination: (config, env) => vllmEndpoint(config, env).url,
  async probe(config, env) {
    if (!(await isListed(config, env))) {
      throw badRequest('Property `model_name` is not a valid vLLM model.')
    }
    await probeChat(vllmEndpoint(config, env))
  },
  generate: (config, env, ...call) => generateChat(vllmEndpoint(config, env), ...call),
}
