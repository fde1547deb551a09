/**
 * `anthropic/`: Claude over the Messages API (https://docs.anthropic.com/en/api/messages). The system prompt is apart
 * from the messages, and `max_tokens` is required.
 */

import { callOptions, jsonRequest, ProviderCall, parseObject, textCall, wording } from './call'
import {
  type AnswerForm,
  apart,
  argumentsOf,
  type ChatMessage,
  type ConversationModelConfig,
  type Delta,
  type FinishReason,
  type GenerationRequest,
  type LanguageModelProvider,
  type Said,
} from './language-model'
import { finishReasonIn, Reply, usageOf } from './reply'
import { addressIn, allowString, modelId, requireString, samplingOf } from './sampling'

const ANTHROPIC_URL = 'https://api.anthropic.com'
const VERSION = '2023-06-01'

/** Enough for a long answer. Every Claude can write this much, and only tokens that it writes are charged. */
const DEFAULT_MAX_TOKENS = 4096

const WORDING = wording('Anthropic')

const url = (config: ConversationModelConfig): string =>
  `${addressIn(config, 'anthropic_url', ANTHROPIC_URL)}/v1/messages`

const post = (config: ConversationModelConfig, body: Record<string, unknown>): RequestInit =>
  jsonRequest(
    { model: modelId(config.model_name), max_tokens: DEFAULT_MAX_TOKENS, ...body },
    { 'anthropic-version': VERSION, 'x-api-key': config.api_key ?? '' },
  )

/** Forms: https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs */
function sampling(config: ConversationModelConfig, form?: AnswerForm): Record<string, unknown> {
  const { max_tokens, temperature, top_p, stop, reasoning_effort: effort } = samplingOf(config)
  return {
    ...(max_tokens !== undefined && { max_tokens }),
    ...(temperature !== undefined && { temperature }),
    ...(top_p !== undefined && { top_p }),
    ...(stop !== undefined && { stop_sequences: stop }),
    ...((effort !== undefined || form?.type === 'schema') && {
      output_config: {
        ...(effort !== undefined && { effort }),
        ...(form?.type === 'schema' && { format: { type: 'json_schema', schema: form.schema } }),
      },
    }),
  }
}

/** Chat messages in Anthropic's form. */
function conversation(request: Said): Record<string, unknown> {
  const { system, messages } = apart(request)
  return {
    ...(system.length > 0 && { system: system.join('\n\n') }),
    messages: messages.map(({ role, ...said }) => ({ role, content: blocksOf(said) })),
    ...(request.tools && {
      tools: request.tools.map(({ parameters: input_schema, ...tool }) => ({ ...tool, input_schema })),
      ...(request.mustAnswer && { tool_choice: { type: 'none' } }),
    }),
  }
}

/** The content of a message: text, or blocks where there is more. */
function blocksOf({ content, pictures = [], calls, results }: Omit<ChatMessage, 'role'>): unknown {
  if (results) {
    return results.map(({ id, text, failed }) => ({
      type: 'tool_result',
      tool_use_id: id,
      content: text,
      ...(failed && { is_error: true }),
    }))
  }
  if (!calls && pictures.length === 0) return content
  return [
    ...pictures.map((picture) => ({ type: 'image', source: { type: 'base64', ...picture } })),
    ...(content === '' ? [] : [{ type: 'text', text: content }]),
    ...(calls ?? []).map((call) => ({
      type: 'tool_use',
      id: call.id,
      name: call.name,
      input: argumentsOf(call),
    })),
  ]
}

async function* generate(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const call = textCall(callOptions(config, WORDING, env), signal, request)
  const body = { ...sampling(config, request.form), ...conversation(request) }
  const response = await call.fetch(
    url(config),
    post(config, request.stream ? { ...body, stream: true } : body),
  )
  yield* request.stream
    ? readStream(call, call.events(response.body))
    : readWhole(call, await call.text(response))
}

interface Usage {
  input_tokens?: unknown
  output_tokens?: unknown
  cache_creation_input_tokens?: unknown
  cache_read_input_tokens?: unknown
}

/** The parts of a message that are read. In a stream they come as events. */
interface Message {
  content?: (({ type?: unknown; text?: unknown; thinking?: unknown } & ToolUse) | null)[]
  stop_reason?: unknown
  usage?: Usage | null
  error?: unknown
}

/** The call of a tool. In a stream its `input` comes as pieces of JSON. */
interface ToolUse {
  id?: unknown
  name?: unknown
  input?: unknown
}

interface StreamEvent {
  type?: unknown
  /** of the block */
  index?: unknown
  content_block?: ({ type?: unknown } & ToolUse) | null
  message?: { usage?: Usage | null } | null
  delta?: {
    type?: unknown
    text?: unknown
    thinking?: unknown
    partial_json?: unknown
    stop_reason?: unknown
  } | null
  usage?: Usage | null
}

function* readWhole(call: ProviderCall, body: string): Generator<Delta> {
  const message = parseObject(body) as Message | undefined
  if (message?.error) throw call.reported(body)
  if (!Array.isArray(message?.content)) throw call.malformed()
  const reply = new Reply(call, { whole: true })
  for (const [at, block] of message.content.entries()) {
    yield* reply.said(block?.text, block?.thinking)
    if (block?.type === 'tool_use') reply.calls(at, { ...block, piece: block.input })
  }
  reply.finish = finishReasonIn(FINISH_REASONS, message.stop_reason)
  reply.usage = costOf(message.usage ?? {})
  yield* reply.end()
}

/** The deltas of a stream of events. Unknown kinds are ignored, as the API asks. */
async function* readStream(call: ProviderCall, events: AsyncIterable<string>): AsyncGenerator<Delta> {
  const reply = new Reply(call)
  let stopReason: unknown
  let usage: Usage = {}
  for await (const data of events) {
    reply.any = true
    const event = parseObject(data) as StreamEvent | undefined
    switch (event?.type) {
      case 'content_block_start':
        if (event.content_block?.type === 'tool_use') reply.calls(event.index, event.content_block)
        break
      case 'content_block_delta':
        yield* reply.said(event.delta?.text, event.delta?.thinking)
        if (event.delta?.type === 'input_json_delta')
          reply.calls(event.index, { piece: event.delta.partial_json })
        break
      case 'message_start':
        usage = { ...event.message?.usage }
        break
      case 'message_delta':
        stopReason = event.delta?.stop_reason ?? stopReason
        // Counts are cumulative, so the last ones are the total.
        usage = { ...usage, ...event.usage }
        break
      case 'message_stop':
        reply.finish = finishReasonIn(FINISH_REASONS, stopReason)
        break
      case 'error':
        throw call.reported(data)
      case undefined:
        throw call.malformed()
    }
    if (reply.finish) break
  }
  reply.usage = costOf(usage)
  yield* reply.end()
}

/** `input_tokens` excludes tokens that were read from a cache or written to it. */
const costOf = (usage: Usage): Delta | undefined =>
  usageOf(usage.input_tokens, usage.output_tokens, [
    usage.cache_creation_input_tokens,
    usage.cache_read_input_tokens,
  ])

const FINISH_REASONS: Record<string, FinishReason> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'content_filter',
}

export const anthropic: LanguageModelProvider = {
  namespace: 'anthropic',
  callsTools: true,
  forms: ['schema'],
  validate(config) {
    requireString(config, 'api_key', 'API key is not provided', 'API key is not a string')
    allowString(config, 'anthropic_url', 'Property `anthropic_url` is not a string.')
  },
  destination: url,
  async probe(config, env) {
    const call = new ProviderCall(callOptions(config, WORDING, env))
    const hello = { max_tokens: 1, messages: [{ role: 'user', content: 'hello' }] }
    await call.text(await call.fetch(url(config), post(config, { ...sampling(config), ...hello })))
  },
  generate,
}
