/**
 * `cloudflare/@cf/...`: Workers AI. With an `api_key` and an `account_id`, over Cloudflare's REST API, as Typesense
 * does. Without a key, through the binding of a deployment that runs on Workers AI.
 *
 * It is always asked to stream, because its whole answers have more formats than its streams.
 */
import { runUntil } from './ai-runner'
import { callOptions, ProviderCall, parseObject, wording } from './call'
import { aiBinding } from './gateway'
import type {
  ConversationModelConfig,
  Delta,
  GenerationRequest,
  LanguageModelProvider,
} from './language-model'
import { readStream, readWhole } from './openai-compatible'
import { allowString, modelId, requireString, withoutTrailingSlash } from './properties'
import { ProviderError } from './provider-error'
import { chatSampling, samplingOf } from './sampling'
import { workersAiAdvice, workersAiError } from './workers-ai-errors'

const CLOUDFLARE_URL = 'https://api.cloudflare.com/client/v4'

const options = (config: ConversationModelConfig, env: Cloudflare.Env) =>
  callOptions(config, { ...wording('Cloudflare'), advice: workersAiAdvice }, env)

const usesBinding = (config: Record<string, unknown>, env: Cloudflare.Env): boolean =>
  config.api_key === undefined && env.AI_BACKEND === 'workers-ai'

const url = (config: ConversationModelConfig): string => {
  const base =
    typeof config.cloudflare_url === 'string' ? withoutTrailingSlash(config.cloudflare_url) : CLOUDFLARE_URL
  return `${base}/accounts/${config.account_id}/ai/run/${modelId(config.model_name)}`
}

/** Opens the provider's stream. An object is the answer of a model that does not stream. */
async function open(
  call: ProviderCall,
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  inputs: Record<string, unknown>,
): Promise<Opened> {
  if (usesBinding(config, env)) return runBinding(call, config, env, inputs)
  const response = await call.fetch(url(config), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${config.api_key}` },
    body: JSON.stringify(inputs),
  })
  if (!(response.headers.get('content-type') ?? '').includes('application/json')) return response.body
  const text = await call.text(response)
  const reply = parseObject(text)
  if (reply?.success === false) throw call.reported(text, { upstream: 200 })
  return asObject(reply?.result) ?? {}
}

type Opened = ReadableStream<Uint8Array> | Record<string, unknown> | null

const asObject = (value: unknown): Record<string, unknown> | undefined =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : undefined

async function runBinding(
  call: ProviderCall,
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  inputs: Record<string, unknown>,
): Promise<Opened> {
  const { headers } = options(config, env)
  const own = headers && { extraHeaders: headers }
  try {
    await requireGenerations(env)
    const reply = await runUntil(call.signal, aiBinding(env), modelId(config.model_name), inputs, own)
    if (reply instanceof ReadableStream) return reply
    call.close()
    return asObject(reply) ?? {}
  } catch (error) {
    call.close()
    if (error instanceof ProviderError) throw error
    const { message, code, upstream } = workersAiError(error)
    if (upstream.upstream === 408) throw call.timedOut()
    throw upstream.upstream === undefined
      ? call.explain(error, message)
      : call.reported(JSON.stringify({ message, code }), upstream)
  }
}

/**
 * When to retry if the account's limit is reached, in milliseconds. Two more attempts fit into the retry budget
 * (retry.ts).
 */
const FULL_MS = 1_500

/**
 * Counts a generation. Workers AI takes 300 a minute of an account, and all Workers of an account share this counter,
 * because they name the same namespace in wrangler.toml. It counts at each location separately, so the platform can
 * still refuse first.
 * @throws ProviderError 429, which is retried for a moment
 */
async function requireGenerations(env: Cloudflare.Env): Promise<void> {
  const binding: RateLimit | undefined = env.RATE_LIMIT_MODELS
  if (binding === undefined || env.RATE_LIMITS === 'off') return
  const { success } = await binding.limit({ key: 'text-generation' })
  if (!success) throw new ProviderError(429, FULL, { fault: 'limited', retryAfterMs: FULL_MS })
}

const FULL =
  'Workers AI takes 300 text generations a minute of an account, and that many were asked for. Try again in a minute, or use a model of another provider.'

/**
 * Models that reason by default, according to the schemas of Cloudflare's catalogue. Reasoning is billed as output,
 * and Parley does not use it. `npm run models -- --check` compares.
 */
const THINKS = /\/(?:glm-4\.7-flash|gemma-4-26b-a4b-it)$/

/** A model's inputs. Thinking is off unless the conversation model sets a `reasoning_effort`. */
function inputsOf(config: ConversationModelConfig, messages: GenerationRequest['messages']) {
  const sampling = chatSampling(config, modelId(config.model_name))
  const { reasoning_effort: effort = 'none', ...rest } = sampling
  return THINKS.test(config.model_name) && effort === 'none'
    ? { ...rest, chat_template_kwargs: { enable_thinking: false }, messages, stream: true }
    : { ...sampling, messages, stream: true }
}

async function* generate(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const call = new ProviderCall({ ...options(config, env), timeoutStatus: 400 }, signal)
  const reply = await open(call, config, env, inputsOf(config, request.messages))
  const deltas =
    reply === null || reply instanceof ReadableStream
      ? readStream(call, call.events(reply))
      : readWhole(call, JSON.stringify(reply))
  yield* tellingLimit(deltas, samplingOf(config).maxTokens)
}

/** The default `max_tokens` of many of its models, according to their pages. */
const USUAL_LIMIT = 256

/**
 * Cloudflare's own models do not report why they stopped. If one has written as many tokens as its limit allows, the
 * answer was cut.
 */
async function* tellingLimit(
  deltas: AsyncIterable<Delta> | Iterable<Delta>,
  limit: number | undefined,
): AsyncGenerator<Delta> {
  let written = 0
  for await (const delta of deltas) {
    if (delta.type === 'usage') written = delta.outputTokens
    const isFull = limit === undefined ? written === USUAL_LIMIT : written >= limit
    yield delta.type === 'finish' && delta.reason === 'stop' && isFull
      ? { type: 'finish', reason: 'length' }
      : delta
  }
}

export const cloudflare: LanguageModelProvider = {
  namespace: 'cloudflare',
  validate(config, env) {
    if (usesBinding(config, env)) return
    requireString(config, 'api_key', 'API key is not provided', 'API key is not a string')
    requireString(config, 'account_id', 'Account ID is not provided', 'Account ID is not a string')
    allowString(config, 'cloudflare_url', 'Property `cloudflare_url` is not a string.')
  },
  destination: (config, env) => (usesBinding(config, env) ? undefined : url(config)),
  async probe(config, env) {
    const call = new ProviderCall({ ...options(config, env), timeoutStatus: 408 })
    const reply = await open(call, config, env, inputsOf(config, [{ role: 'user', content: 'hello' }]))
    // Any reply passes the check. Cancel it: reading on would cost money.
    if (reply instanceof ReadableStream) await reply.cancel()
    call.close()
  },
  generate,
}
