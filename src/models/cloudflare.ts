/**
 * `cloudflare/@cf/...`: Workers AI. With an `api_key` and an `account_id` over Cloudflare's REST API, as
 * Typesense calls it; without a key, where the deployment runs on Workers AI, through its own binding.
 *
 * It is always asked to stream: its whole answers come in more shapes than its streams.
 */
import type { AiRunner } from './ai-runner'
import { type CallOptions, ProviderCall, parseObject, silenceOf, wording } from './call'
import type {
  ConversationModelConfig,
  Delta,
  GenerationRequest,
  LanguageModelProvider,
} from './language-model'
import { readStream, samplingOf } from './openai-compatible'
import { allowString, modelId, requireString, withoutTrailingSlash } from './properties'
import { secretsOf } from './secrets'

const CLOUDFLARE_URL = 'https://api.cloudflare.com/client/v4'

const options = (
  config: ConversationModelConfig,
  env: Cloudflare.Env,
): Omit<CallOptions, 'timeoutStatus'> => ({
  wording: wording('Cloudflare'),
  silence: silenceOf(config),
  secrets: secretsOf(config),
  env,
})

const usesBinding = (config: Record<string, unknown>, env: Cloudflare.Env): boolean =>
  config.api_key === undefined && env.AI_BACKEND === 'workers-ai'

/** Opens the provider's stream, by either way. */
async function open(
  call: ProviderCall,
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  inputs: Record<string, unknown>,
): Promise<ReadableStream<Uint8Array> | string | null> {
  if (usesBinding(config, env)) return runBinding(call, env.AI as unknown as AiRunner, config, inputs)
  const base =
    typeof config.cloudflare_url === 'string' ? withoutTrailingSlash(config.cloudflare_url) : CLOUDFLARE_URL
  const response = await call.fetch(
    `${base}/accounts/${config.account_id}/ai/run/${modelId(config.model_name)}`,
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${config.api_key}` },
      body: JSON.stringify(inputs),
    },
  )
  const json = (response.headers.get('content-type') ?? '').includes('application/json')
  return json ? call.text(response) : response.body
}

async function runBinding(
  call: ProviderCall,
  ai: AiRunner,
  config: ConversationModelConfig,
  inputs: Record<string, unknown>,
): Promise<ReadableStream<Uint8Array>> {
  try {
    const reply = await ai.run(modelId(config.model_name), inputs, { signal: call.signal })
    if (reply instanceof ReadableStream) return reply
  } catch (error) {
    call.close()
    const message = error instanceof Error ? error.message : String(error)
    // 3007 and 3008 are Workers AI's codes for a time-out.
    throw /\b300[78]\b/.test(message) ? call.timedOut() : call.explain(error, message)
  }
  call.close()
  throw call.malformed()
}

async function* generate(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const call = new ProviderCall({ ...options(config, env), timeoutStatus: 400 }, signal)
  const { stream_options: _, ...sampling } = samplingOf(config)
  const inputs = { ...sampling, messages: request.messages, stream: true }
  const reply = await open(call, config, env, inputs)
  if (typeof reply !== 'string') {
    yield* readStream(call, call.events(reply))
    return
  }
  const parsed = parseObject(reply)
  if (parsed?.success === false) throw call.reported(reply)
  // A model that does not stream answers {result: {response}}: the same as one chunk and an end.
  yield* readStream(call, both(JSON.stringify(parsed?.result ?? {}), '[DONE]'))
}

async function* both(...events: string[]): AsyncGenerator<string> {
  yield* events
}

export const cloudflare: LanguageModelProvider = {
  namespace: 'cloudflare',
  validate(config, env) {
    if (usesBinding(config, env)) return
    requireString(config, 'api_key', 'API key is not provided', 'API key is not a string')
    requireString(config, 'account_id', 'Account ID is not provided', 'Account ID is not a string')
    allowString(config, 'cloudflare_url', 'Property `cloudflare_url` is not a string.')
  },
  async probe(config, env) {
    const call = new ProviderCall({ ...options(config, env), timeoutStatus: 408 })
    const inputs = { messages: [{ role: 'user', content: 'hello' }], stream: true }
    const reply = await open(call, config, env, inputs)
    if (typeof reply === 'string') {
      if (parseObject(reply)?.success === false) throw call.reported(reply)
    } else {
      // It answers: that is all the check asks, and reading on would be paid for.
      await reply?.cancel()
      call.close()
    }
  },
  create: (config, env) => ({
    name: config.model_name,
    generate: (request, signal) => generate(config, env, request, signal),
  }),
}
