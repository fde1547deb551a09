/**
 * `cloudflare/@cf/...`: Workers AI. With an `api_key` and an `account_id`, over Cloudflare's REST API, as Typesense
 * does. Without a key, through the binding of a deployment that runs on Workers AI.
 *
 * It is always asked to stream, because its whole answers have more formats than its streams.
 */

import { callOptions, jsonRequest, ProviderCall, parseObject, textCall, wording } from './call'
import { aiBinding, runUntil } from './egress'
import {
  type ConversationModelConfig,
  chatMessages,
  chatTools,
  type Delta,
  type GenerationRequest,
  type LanguageModelProvider,
  type Said,
} from './language-model'
import { authorization, readStream, readWhole } from './openai-compatible'
import { faultOfStatus, ProviderError, type Upstream } from './provider-error'
import { addressIn, allowString, chatSampling, modelId, requireString, samplingOf } from './sampling'

const CLOUDFLARE_URL = 'https://api.cloudflare.com/client/v4'

const options = (config: ConversationModelConfig, env: Cloudflare.Env) =>
  callOptions(config, { ...wording('Cloudflare'), advice: workersAiAdvice }, env)

const usesBinding = (config: Record<string, unknown>, env: Cloudflare.Env): boolean =>
  config.api_key === undefined && env.AI_BACKEND === 'workers-ai'

/** Where a model runs by the REST API. */
export const workersAiUrl = (config: { model_name: string; [extra: string]: unknown }): string => {
  const base = addressIn(config, 'cloudflare_url', CLOUDFLARE_URL)
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
  const response = await call.fetch(workersAiUrl(config), jsonRequest(inputs, authorization(config)))
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
    throw bindingError(call, error)
  }
}

/** The error to throw for what the binding threw. */
export function bindingError(call: ProviderCall, thrown: unknown): unknown {
  const { message, code, upstream } = workersAiError(thrown)
  if (upstream.upstream === 408) return call.timedOut()
  return upstream.upstream === undefined
    ? call.explain(thrown, message)
    : call.reported(JSON.stringify({ message, code }), upstream)
}

/**
 * When to retry if the account's limit is reached, in milliseconds. Two more attempts fit into the retry budget
 * (resilient.ts).
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
function inputsOf(config: ConversationModelConfig, request: Said) {
  const messages = chatMessages(request)
  const tools = chatTools(request)
  const sampling = chatSampling(config, modelId(config.model_name))
  const { reasoning_effort: effort = 'none', ...rest } = sampling
  return THINKS.test(config.model_name) && effort === 'none'
    ? { ...rest, chat_template_kwargs: { enable_thinking: false }, messages, ...tools, stream: true }
    : { ...sampling, messages, ...tools, stream: true }
}

async function* generate(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const call = textCall(options(config, env), signal, request)
  const reply = await open(call, config, env, inputsOf(config, request))
  const deltas =
    reply === null || reply instanceof ReadableStream
      ? readStream(call, call.events(reply))
      : readWhole(call, JSON.stringify(reply))
  yield* tellingLimit(deltas, samplingOf(config).max_tokens)
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
  callsTools: true,
  validate(config, env) {
    if (usesBinding(config, env)) return
    requireString(config, 'api_key', 'API key is not provided', 'API key is not a string')
    requireString(config, 'account_id', 'Account ID is not provided', 'Account ID is not a string')
    allowString(config, 'cloudflare_url', 'Property `cloudflare_url` is not a string.')
  },
  destination: (config, env) => (usesBinding(config, env) ? undefined : workersAiUrl(config)),
  async probe(config, env) {
    const call = new ProviderCall(options(config, env))
    const reply = await open(
      call,
      config,
      env,
      inputsOf(config, { messages: [{ role: 'user', content: 'hello' }] }),
    )
    // Any reply passes the check. Cancel it: reading on would cost money.
    if (reply instanceof ReadableStream) await reply.cancel()
    call.close()
  },
  generate,
}

// =============================================================================
// Errors of the Workers AI binding. It throws plain Errors whose messages begin with an internal code: "3040:
// Capacity temporarily exceeded" (https://developers.cloudflare.com/workers-ai/platform/errors/).

/** Internal code -> HTTP status of the REST API. */
const STATUSES: Record<string, number> = {
  3003: 400, // incomplete request
  3006: 413, // request too large
  3007: 408, // timeout
  3008: 408, // aborted
  3023: 403, // account blocked
  3036: 429, // daily allocation used up
  3039: 400, // finetune without its files
  3040: 429, // out of capacity
  3041: 403, // account not allowed for a private model
  3042: 404, // no such model id
  5004: 400, // invalid data
  5005: 405, // no LoRA
  5006: 400, // the input does not match the model's schema
  5007: 400, // no such model
  5016: 403, // model terms not agreed to
  5018: 403, // account not allowed for a private model
  5019: 405, // SDK too old
  5021: 400, // context window exceeded
  5028: 410, // model retired
  5035: 403, // model needs the Workers Paid plan
}

const ADVICE = new Map<unknown, string>([
  ['5028', 'The model was retired: give the conversation model another `model_name`'],
  [
    '5035',
    'The model needs the Workers Paid plan: upgrade the account, or give the conversation model another `model_name`',
  ],
])

/** What to do about an error. @param code the internal one @returns undefined if the error says all that is known */
const workersAiAdvice = (code: unknown): string | undefined =>
  ADVICE.get(typeof code === 'number' ? String(code) : code)

/** @param thrown what `run` rejected with. @returns its message, and what it means for a retry */
export function workersAiError(thrown: unknown): { message: string; code?: string; upstream: Upstream } {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  // Other numbers with a colon can come first, such as part of a request's id.
  const code = [...message.matchAll(/\b(\d{4}):/g)]
    .map(([, digits]) => digits!)
    .find((digits) => digits in STATUSES)
  // An error without a code counts as no reply at all.
  if (code === undefined) return { message, upstream: {} }
  return {
    message,
    code,
    upstream: { upstream: STATUSES[code], fault: faultOfStatus(STATUSES[code]!, code) },
  }
}
