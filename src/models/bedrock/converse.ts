/** Bedrock's Converse API: its messages, and the deltas of its replies, whole and streamed. */
import { type ProviderCall, parseObject } from '../call'
import type { ChatMessage, Delta, FinishReason } from '../language-model'
import type { Fault } from '../provider-error'
import { finishReasonIn, Reply, usageOf } from '../reply'
import type { Frame } from './frames'

/** Chat messages in Converse's form: the system prompt is separate, and each text is a block. */
export function conversation(messages: ChatMessage[]): Record<string, unknown> {
  const system = messages.filter(({ role }) => role === 'system')
  return {
    ...(system.length > 0 && { system: system.map(({ content }) => ({ text: content })) }),
    messages: messages
      .filter(({ role }) => role !== 'system')
      .map(({ role, content }) => ({ role, content: [{ text: content }] })),
  }
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

export function* readWhole(call: ProviderCall, body: string): Generator<Delta> {
  const answer = parseObject(body) as Answer | undefined
  const content = answer?.output?.message?.content
  if (!Array.isArray(content)) throw call.malformed()
  const reply = new Reply(call, { whole: true })
  for (const block of content) {
    yield* reply.said(block?.text, block?.reasoningContent?.reasoningText?.text)
  }
  reply.finish = finishReasonIn(FINISH_REASONS, answer?.stopReason)
  reply.usage = costOf(answer?.usage)
  yield* reply.end()
}

interface StreamEvent {
  delta?: { text?: unknown; reasoningContent?: { text?: unknown } | null } | null
  stopReason?: unknown
  usage?: Usage | null
}

/** The deltas of ConverseStream. Token counts come last, after the end of the message. */
export async function* readStream(call: ProviderCall, frames: AsyncIterable<Frame>): AsyncGenerator<Delta> {
  const reply = new Reply(call)
  for await (const { headers, body } of frames) {
    reply.any = true
    if (headers[':message-type'] !== 'event') throw exception(call, headers, body)
    const event = parseObject(body) as StreamEvent | undefined
    if (!event) throw call.malformed()
    switch (headers[':event-type']) {
      case 'contentBlockDelta':
        yield* reply.said(event.delta?.text, event.delta?.reasoningContent?.text)
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
