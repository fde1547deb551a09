/**
 * The chat-completions wire, as OpenAI, Azure, vLLM and most other servers speak it.
 *
 * Streams differ in what they add: chunks without choices, null content, usage alone, reasoning beside the
 * text, errors inside the stream, no `[DONE]` or no `finish_reason`. One of the last two is asked for: a
 * stream without either was cut, and a cut answer is not an answer.
 */
import { type CallOptions, ProviderCall, parseObject } from './call'
import { conclude } from './ending'
import type { Delta, FinishReason, GenerationRequest, LanguageModel } from './language-model'

export interface ChatEndpoint {
  /** full URL of the chat-completions resource */
  url: string
  headers: Record<string, string>
  /** what is sent besides messages and stream: the model, sampling */
  body: Record<string, unknown>
  options: Omit<CallOptions, 'timeoutStatus'>
}

/** A language model behind a chat-completions endpoint. */
export const chatModel = (name: string, endpoint: ChatEndpoint): LanguageModel => ({
  name,
  generate: (request, signal) => generate(endpoint, request, signal),
})

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

async function* generate(
  endpoint: ChatEndpoint,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const call = new ProviderCall({ ...endpoint.options, timeoutStatus: 400 }, signal)
  const { stream_options, ...body } = endpoint.body
  const response = await call.fetch(
    endpoint.url,
    post(endpoint, {
      ...body,
      messages: request.messages,
      ...(request.stream && { stream: true, ...(stream_options !== undefined && { stream_options }) }),
    }),
  )
  // Some servers cannot stream and answer whole all the same.
  const whole = !request.stream || (response.headers.get('content-type') ?? '').includes('application/json')
  yield* whole ? readWhole(call, await call.text(response)) : readStream(call, call.events(response.body))
}

/** The deltas of an answer in one piece. @throws ApiError as readStream does */
export function* readWhole(call: ProviderCall, body: string): Generator<Delta> {
  const reply = parseObject(body) as Completion | undefined
  if (reply?.error !== undefined && reply.error !== null) throw call.reported(body)
  const choice = reply?.choices?.[0]
  if (!choice?.message && reply?.response === undefined) throw call.malformed()
  const reasoning = reasoningIn(choice?.message)
  if (reasoning) yield { type: 'reasoning', text: reasoning }
  const text = contentText(choice?.message?.content) || contentText(reply?.response)
  if (text) yield { type: 'text', text }
  yield* conclude(call, {
    any: true,
    answered: text !== '',
    finish: finishReason(choice?.finish_reason),
    usage: usageOf(reply?.usage),
    refusal: contentText(choice?.message?.refusal),
  })
}

/**
 * The deltas of a chat-completions stream.
 * @throws ApiError for an error object in the stream, for one that breaks off and for one without any text
 */
export async function* readStream(call: ProviderCall, events: AsyncIterable<string>): AsyncGenerator<Delta> {
  let finish: FinishReason | undefined
  let usage: Delta | undefined
  let refusal = ''
  let answered = false
  let any = false
  for await (const data of events) {
    if (data === '[DONE]') {
      finish ??= 'stop'
      break
    }
    any = true
    const chunk = parseObject(data) as Completion | undefined
    if (!chunk) throw call.malformed()
    if (chunk.error !== undefined && chunk.error !== null) throw call.reported(data)
    // Servers that report usage as they go repeat it in each chunk: the last one counts.
    usage = usageOf(chunk.usage) ?? usage
    const choice = chunk.choices?.[0]
    // Workers AI's own models write {response} where others write choices.
    const piece = contentText(choice?.delta?.content) || contentText(chunk.response)
    if (piece) {
      answered = true
      yield { type: 'text', text: piece }
    }
    const reasoning = reasoningIn(choice?.delta)
    if (reasoning) yield { type: 'reasoning', text: reasoning }
    refusal += contentText(choice?.delta?.refusal)
    if (choice?.finish_reason) finish = finishReason(choice.finish_reason)
  }
  yield* conclude(call, { any, answered, finish, usage, refusal })
}

interface Message {
  content?: unknown
  reasoning_content?: unknown
  reasoning?: unknown
  refusal?: unknown
}

/** What is read of a completion or a chunk of one; every part may be missing or null. */
interface Completion {
  choices?: ({ message?: Message | null; delta?: Message | null; finish_reason?: unknown } | null)[] | null
  usage?: unknown
  error?: unknown
  response?: unknown
}

/** Text, or the text of a list of content parts. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  // A model that answers in JSON mode may be given to us parsed; a number is what small models say to sums.
  if (typeof content === 'number') return String(content)
  if (!Array.isArray(content)) return ''
  return content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join('')
}

const reasoningIn = (message: Message | null | undefined): string =>
  contentText(message?.reasoning_content ?? message?.reasoning)

function usageOf(usage: unknown): Delta | undefined {
  if (usage === null || typeof usage !== 'object') return undefined
  const { prompt_tokens, completion_tokens } = usage as Record<string, unknown>
  if (typeof prompt_tokens !== 'number' || typeof completion_tokens !== 'number') return undefined
  return { type: 'usage', inputTokens: prompt_tokens, outputTokens: completion_tokens }
}

const finishReason = (reason: unknown): FinishReason =>
  reason === 'length' || reason === 'content_filter'
    ? reason
    : reason === 'stop' || reason === undefined || reason === null
      ? 'stop'
      : 'other'
