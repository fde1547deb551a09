/** Bedrock's Converse API: its messages, and the deltas of its replies, whole and streamed. */
import { type ProviderCall, parseObject } from '../call'
import { conclude } from '../ending'
import type { ChatMessage, Delta, FinishReason } from '../language-model'
import type { Frame } from './frames'

/** Chat messages in Converse's form: the system prompt apart, each text a block. */
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

interface Reply {
  output?: { message?: { content?: unknown } | null } | null
  stopReason?: unknown
  usage?: Usage | null
}

export function* readWhole(call: ProviderCall, body: string): Generator<Delta> {
  const reply = parseObject(body) as Reply | undefined
  const content = reply?.output?.message?.content
  if (!Array.isArray(content)) throw call.malformed()
  let answered = false
  for (const block of content) {
    for (const delta of deltasOf(block?.text, block?.reasoningContent?.reasoningText?.text)) {
      answered ||= delta.type === 'text'
      yield delta
    }
  }
  const finish = finishReason(reply?.stopReason)
  yield* conclude(call, { any: true, answered, finish, usage: usageOf(reply?.usage) })
}

interface StreamEvent {
  delta?: { text?: unknown; reasoningContent?: { text?: unknown } | null } | null
  stopReason?: unknown
  usage?: Usage | null
}

/** The deltas of ConverseStream. The counts of tokens come after the end of the message, as the last event. */
export async function* readStream(call: ProviderCall, frames: AsyncIterable<Frame>): AsyncGenerator<Delta> {
  let finish: FinishReason | undefined
  let usage: Delta | undefined
  let answered = false
  let any = false
  for await (const { headers, body } of frames) {
    any = true
    if (headers[':message-type'] !== 'event') throw exception(call, headers, body)
    const event = parseObject(body) as StreamEvent | undefined
    if (!event) throw call.malformed()
    switch (headers[':event-type']) {
      case 'contentBlockDelta':
        for (const delta of deltasOf(event.delta?.text, event.delta?.reasoningContent?.text)) {
          answered ||= delta.type === 'text'
          yield delta
        }
        break
      case 'messageStop':
        finish = finishReason(event.stopReason)
        break
      case 'metadata':
        usage = usageOf(event.usage)
        break
    }
    if (finish && usage) break
  }
  yield* conclude(call, { any, answered, finish, usage })
}

function* deltasOf(text: unknown, reasoning: unknown): Generator<Delta> {
  if (typeof text === 'string' && text !== '') yield { type: 'text', text }
  if (typeof reasoning === 'string' && reasoning !== '') yield { type: 'reasoning', text: reasoning }
}

/** Tokens that were read from a cache, or written to it, are not among `inputTokens`. */
function usageOf(usage: Usage | null | undefined): Delta | undefined {
  if (typeof usage?.inputTokens !== 'number' || typeof usage.outputTokens !== 'number') return undefined
  const cached = [usage.cacheReadInputTokens, usage.cacheWriteInputTokens].map(
    (tokens) => Number(tokens) || 0,
  )
  return {
    type: 'usage',
    inputTokens: cached.reduce((sum, tokens) => sum + tokens, usage.inputTokens),
    outputTokens: usage.outputTokens,
  }
}

const FINISH_REASONS: Record<string, FinishReason> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  guardrail_intervened: 'content_filter',
  content_filtered: 'content_filter',
}

const finishReason = (reason: unknown): FinishReason => FINISH_REASONS[String(reason)] ?? 'other'

/** The error for an `exception`, which the service models, or an `error`, which it does not. */
function exception(call: ProviderCall, headers: Record<string, string>, body: string): Error {
  const kind = headers[':exception-type'] ?? headers[':error-code'] ?? 'an unknown exception'
  const { message } = (parseObject(body) ?? {}) as { message?: unknown }
  const said = typeof message === 'string' ? message : headers[':error-message']
  const detail = said === undefined ? kind : `${kind}: ${said}`
  // All but a request that it does not take pass, as the service says: asking again is what it recommends.
  const fault = kind === 'validationException' ? 'refused' : 'busy'
  return call.reported(JSON.stringify({ message: detail }), { fault })
}
