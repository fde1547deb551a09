/**
 * `bedrock/<model id>`: Amazon Bedrock over its Converse API, which is the same for all its models. Calls are
 * signed (Signature Version 4) with an access key, or carry a Bedrock API key.
 */

import type { EventStreamCodec } from '@smithy/core/event-streams'
import { AwsV4Signer } from 'aws4fetch'
import { badRequest } from '../../errors'
import { rest, worked } from '../../lib/waiting'
import {
  callOptions,
  endingWith,
  jsonRequest,
  LARGEST_EVENT,
  ProviderCall,
  parseObject,
  textCall,
  wording,
} from '../call'
import {
  apart,
  argumentsOf,
  type ChatMessage,
  type ConversationModelConfig,
  type Delta,
  type FinishReason,
  type GenerationRequest,
  type LanguageModelProvider,
  type Said,
} from '../language-model'
import type { Fault } from '../provider-error'
import { finishReasonIn, Reply, usageOf } from '../reply'
import { addressIn, allowString, defined, modelId, samplingOf } from '../sampling'

const WORDING = wording('Bedrock')

/** A model id may be an ARN. Its colons and slashes belong to one segment of the path. */
const url = (config: ConversationModelConfig, operation: 'converse' | 'converse-stream'): string => {
  const base = addressIn(config, 'bedrock_url', `https://bedrock-runtime.${config.region}.amazonaws.com`)
  return `${base}/model/${encodeURIComponent(modelId(config.model_name))}/${operation}`
}

/** A request with its authorization. The signature covers its URL, its body and the time. */
async function signed(config: ConversationModelConfig, url: string, body: unknown): Promise<RequestInit> {
  const init = jsonRequest(body)
  if (config.api_key !== undefined) return jsonRequest(body, { authorization: `Bearer ${config.api_key}` })
  const { access_key_id, secret_access_key, session_token, region } = config as Record<string, string>
  const signer = new AwsV4Signer({
    ...init,
    url,
    accessKeyId: access_key_id!,
    secretAccessKey: secret_access_key!,
    ...(session_token !== undefined && { sessionToken: session_token }),
    service: 'bedrock',
    region: region!,
  })
  const { headers } = await signer.sign()
  return { ...init, headers }
}

/** Converse has no parameter for how long a model reasons: each model has its own. */
function inferenceConfig(config: ConversationModelConfig, most?: number): Record<string, unknown> {
  const { max_tokens, temperature, top_p: topP, stop: stopSequences } = samplingOf(config)
  const set = defined({ maxTokens: most ?? max_tokens, temperature, topP, stopSequences })
  return Object.keys(set).length > 0 ? { inferenceConfig: set } : {}
}

async function* generate(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const call = textCall(callOptions(config, WORDING, env), signal, request)
  const target = url(config, request.stream ? 'converse-stream' : 'converse')
  const body = { ...conversation(request), ...inferenceConfig(config) }
  const response = await call.fetch(target, () => signed(config, target, body))
  yield* request.stream
    ? readStream(call, call.read(response.body, readFrames))
    : readWhole(call, await call.text(response))
}

/** A region name becomes part of a host name, so it must not hold anything else. */
const REGION = /^[a-z]{2}(?:-[a-z0-9]+)+$/

export const bedrock: LanguageModelProvider = {
  namespace: 'bedrock',
  callsTools: true,
  validate(config) {
    for (const property of [
      'api_key',
      'access_key_id',
      'secret_access_key',
      'session_token',
      'bedrock_url',
    ]) {
      allowString(config, property, `Property \`${property}\` is not a string.`)
    }
    if (typeof config.region !== 'string' || !REGION.test(config.region)) {
      throw badRequest('Property `region` is not an AWS region, such as `us-east-1`.')
    }
    if (config.api_key === undefined && !(config.access_key_id && config.secret_access_key)) {
      throw badRequest(
        'Bedrock models need `access_key_id` and `secret_access_key`, or an `api_key` of Bedrock.',
      )
    }
  },
  destination: (config) => url(config, 'converse'),
  async probe(config, env) {
    const call = new ProviderCall(callOptions(config, WORDING, env))
    const target = url(config, 'converse')
    const hello = {
      ...conversation({ messages: [{ role: 'user', content: 'hello' }] }),
      ...inferenceConfig(config, 1),
    }
    await call.text(await call.fetch(target, () => signed(config, target, hello)))
  },
  generate,
}

// =============================================================================
// Bedrock's Converse API: its messages, and the deltas of its replies, whole and streamed.

/** Chat messages in Converse's form: the system prompt is separate, and each text is a block. */
function conversation(request: Said): Record<string, unknown> {
  const { system, messages } = apart(request)
  return {
    ...(system.length > 0 && { system: system.map((text) => ({ text })) }),
    messages: messages.map(({ role, ...said }) => ({ role, content: blocksOf(said) })),
    // Converse has no way to forbid calls, and refuses messages with calls where no tool is named.
    ...(request.tools && {
      toolConfig: {
        tools: request.tools.map(({ parameters: json, ...tool }) => ({
          toolSpec: { ...tool, inputSchema: { json } },
        })),
      },
    }),
  }
}

/** The content of a message. */
function blocksOf({
  content,
  pictures = [],
  calls = [],
  results = [],
}: Omit<ChatMessage, 'role'>): unknown[] {
  return [
    ...pictures.map(({ media_type, data }) => ({
      image: { format: media_type.replace('image/', ''), source: { bytes: data } },
    })),
    ...(content === '' && calls.length + results.length > 0 ? [] : [{ text: content }]),
    ...calls.map((call) => ({
      toolUse: { toolUseId: call.id, name: call.name, input: argumentsOf(call) },
    })),
    ...results.map(({ id, text, failed }) => ({
      toolResult: { toolUseId: id, content: [{ text }], ...(failed && { status: 'error' }) },
    })),
  ]
}

interface Usage {
  inputTokens?: unknown
  outputTokens?: unknown
  cacheReadInputTokens?: unknown
  cacheWriteInputTokens?: unknown
}

interface Answer {
  output?: { message?: { content?: unknown } | null } | null
  stopReason?: unknown
  usage?: Usage | null
}

function* readWhole(call: ProviderCall, body: string): Generator<Delta> {
  const answer = parseObject(body) as Answer | undefined
  const content = answer?.output?.message?.content
  if (!Array.isArray(content)) throw call.malformed()
  const reply = new Reply(call, { whole: true })
  for (const [at, block] of content.entries()) {
    yield* reply.said(block?.text, block?.reasoningContent?.reasoningText?.text)
    const { toolUseId: id, name, input: piece } = block?.toolUse ?? {}
    if (block?.toolUse) reply.calls(at, { id, name, piece })
  }
  reply.finish = finishReasonIn(FINISH_REASONS, answer?.stopReason)
  reply.usage = costOf(answer?.usage)
  yield* reply.end()
}

interface StreamEvent {
  contentBlockIndex?: unknown
  start?: { toolUse?: { toolUseId?: unknown; name?: unknown } | null } | null
  delta?: {
    text?: unknown
    reasoningContent?: { text?: unknown } | null
    toolUse?: { input?: unknown } | null
  } | null
  stopReason?: unknown
  usage?: Usage | null
}

/** The deltas of ConverseStream. Token counts come last, after the end of the message. */
async function* readStream(call: ProviderCall, frames: AsyncIterable<Frame>): AsyncGenerator<Delta> {
  const reply = new Reply(call)
  for await (const { headers, body } of frames) {
    reply.any = true
    if (headers[':message-type'] !== 'event') throw exception(call, headers, body)
    const event = parseObject(body) as StreamEvent | undefined
    if (!event) throw call.malformed()
    switch (headers[':event-type']) {
      case 'contentBlockStart': {
        const { toolUseId: id, name } = event.start?.toolUse ?? {}
        if (event.start?.toolUse) reply.calls(event.contentBlockIndex, { id, name })
        break
      }
      case 'contentBlockDelta':
        yield* reply.said(event.delta?.text, event.delta?.reasoningContent?.text)
        if (event.delta?.toolUse) reply.calls(event.contentBlockIndex, { piece: event.delta.toolUse.input })
        break
      case 'messageStop':
        reply.finish = finishReasonIn(FINISH_REASONS, event.stopReason)
        break
      case 'metadata':
        reply.usage = costOf(event.usage)
        break
    }
    if (reply.finish && reply.usage) break
  }
  yield* reply.end()
}

/** `inputTokens` does not include tokens read from a cache or written to it. */
const costOf = (usage: Usage | null | undefined): Delta | undefined =>
  usageOf(usage?.inputTokens, usage?.outputTokens, [
    usage?.cacheReadInputTokens,
    usage?.cacheWriteInputTokens,
  ])

const FINISH_REASONS: Record<string, FinishReason> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  guardrail_intervened: 'content_filter',
  content_filtered: 'content_filter',
}

/** Exceptions that mean a 4xx (Converse's list of errors). All others are faults of the service. */
const FAULTS: Record<string, Fault> = {
  validationException: 'refused',
  throttlingException: 'limited',
  modelNotReadyException: 'limited',
  modelTimeoutException: 'failed',
  modelErrorException: 'failed',
  modelStreamErrorException: 'failed',
}

/** The error for an `exception`, which the service models, or for an `error`, which it does not. */
function exception(call: ProviderCall, headers: Record<string, string>, body: string): Error {
  const kind = headers[':exception-type'] ?? headers[':error-code'] ?? 'an unknown exception'
  const { message } = (parseObject(body) ?? {}) as { message?: unknown }
  const said = typeof message === 'string' ? message : headers[':error-message']
  const detail = said === undefined ? kind : `${kind}: ${said}`
  return call.reported(JSON.stringify({ message: detail }), {
    fault: Object.hasOwn(FAULTS, kind) ? FAULTS[kind] : 'busy',
  })
}

// =============================================================================
// The framing of AWS event streams (`application/vnd.amazon.eventstream`): a series of messages of headers and a
// body, each with its length in front and checksums. The network may cut them anywhere.

interface Frame {
  /** the string headers, including `:message-type` and `:event-type` */
  headers: Record<string, string>
  body: string
}

// A prelude with its checksum, and the checksum of the message.
const SMALLEST = 16

const decoder = new TextDecoder()

/** Loads the codec when a stream is read, so that its modules do not run when the Worker starts. */
async function newCodec(): Promise<EventStreamCodec> {
  const { EventStreamCodec } = await import('./codec')
  const encoder = new TextEncoder()
  return new EventStreamCodec(
    (bytes) => decoder.decode(bytes as Uint8Array),
    (text) => encoder.encode(text),
  )
}

/**
 * Yields the messages of a byte stream, in order. Bytes left at its end are ignored: the caller must tell from its
 * own end marker whether the stream was complete.
 * @param onRead called with the bytes of each read
 * @param signal ends the reading
 * @throws Error for a message with a wrong checksum or length
 */
export async function* readFrames(
  body: ReadableStream<Uint8Array>,
  onRead: (bytes: Uint8Array) => void = () => {},
  signal?: AbortSignal,
): AsyncGenerator<Frame, void> {
  const reader = body.getReader()
  const stop = endingWith(reader, signal)
  const pending = new PendingBytes()
  try {
    const codec = await newCodec()
    while (true) {
      const { done, value } = await reader.read()
      if (done || signal?.aborted) return
      onRead(value)
      pending.push(value)
      for (let frame = pending.frame(); frame; frame = pending.frame()) {
        yield decoded(codec, frame)
        if (worked(frame.length)) await rest()
      }
      if (worked(value.length)) await rest()
    }
  } finally {
    signal?.removeEventListener('abort', stop)
    // Also runs if the consumer stops early: the provider then stops too.
    await reader.cancel().catch(() => {})
  }
}

/**
 * Bytes read that are not part of a message yet. Each is copied a few times at most, however small the reads are.
 */
class PendingBytes {
  #buffer = new Uint8Array(4_096)
  #from = 0
  #to = 0

  push(bytes: Uint8Array): void {
    if (this.#to + bytes.length > this.#buffer.length) this.#makeRoom(bytes.length)
    this.#buffer.set(bytes, this.#to)
    this.#to += bytes.length
  }

  /**
   * Takes the bytes of the first message; undefined while some are missing. They stay valid until the next push.
   * @throws Error for a length that no message has
   */
  frame(): Uint8Array | undefined {
    const bytes = this.#buffer.subarray(this.#from, this.#to)
    if (bytes.length < 4) return undefined
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
    if (length < SMALLEST || length > LARGEST_EVENT)
      throw new Error('a message of an event stream has no such length')
    if (bytes.length < length) return undefined
    this.#from += length
    return bytes.subarray(0, length)
  }

  #makeRoom(length: number): void {
    const left = this.#buffer.subarray(this.#from, this.#to)
    const buffer = new Uint8Array(Math.max(this.#buffer.length, 2 * (left.length + length)))
    buffer.set(left)
    this.#buffer = buffer
    this.#from = 0
    this.#to = left.length
  }
}

function decoded(codec: EventStreamCodec, frame: Uint8Array): Frame {
  const { headers, body } = codec.decode(frame)
  const strings = Object.entries(headers).filter(([, { type }]) => type === 'string')
  return {
    headers: Object.fromEntries(strings.map(([name, { value }]) => [name, String(value)])),
    body: decoder.decode(body),
  }
}
