/** `google/`: Gemini over its REST API. The key is in a header, so that it never appears in a logged URL. */

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
import { finishReasonIn, isCount, Reply, usageOf } from './reply'
import { addressIn, allowString, geminiSampling, modelId, requireString } from './sampling'

export const GOOGLE_URL = 'https://generativelanguage.googleapis.com'

const options = (config: ConversationModelConfig, env: Cloudflare.Env) =>
  callOptions(config, wording('Gemini'), env)

const url = (config: ConversationModelConfig, method: string): string =>
  `${addressIn(config, 'google_url', GOOGLE_URL)}/v1beta/models/${encodeURIComponent(modelId(config.model_name))}:${method}`

const post = (config: ConversationModelConfig, body: unknown): RequestInit =>
  jsonRequest(body, { 'x-goog-api-key': config.api_key ?? '' })

/** Chat messages in Gemini's form: the system prompt apart, the assistant called `model`. */
export function contents(request: Said): Record<string, unknown> {
  const { system, messages } = apart(request)
  return {
    ...(system.length > 0 && { system_instruction: { parts: [{ text: system.join('\n\n') }] } }),
    contents: messages.map(({ role, ...said }) => ({
      role: role === 'user' ? 'user' : 'model',
      parts: partsOf(said),
    })),
    ...(request.tools && {
      tools: [
        {
          functionDeclarations: request.tools.map(({ parameters, ...tool }) => ({
            ...tool,
            parametersJsonSchema: parameters,
          })),
        },
      ],
      ...(request.mustAnswer && { toolConfig: { functionCallingConfig: { mode: 'NONE' } } }),
    }),
  }
}

/** The parts of a message. A call's id holds the signature of the thoughts before it, which Gemini wants back with it. */
function partsOf({ content, pictures = [], calls = [], results = [] }: Omit<ChatMessage, 'role'>): unknown[] {
  return [
    ...pictures.map(({ media_type: mimeType, data }) => ({ inlineData: { mimeType, data } })),
    ...(content === '' && calls.length + results.length > 0 ? [] : [{ text: content }]),
    ...calls.map((call) => {
      const { signature } = idIn(call.id)
      const functionCall = { name: call.name, args: argumentsOf(call) }
      return { functionCall, ...(signature && { thoughtSignature: signature }) }
    }),
    ...results.map(({ id, text }) => ({
      functionResponse: { name: idIn(id).name, response: { result: text } },
    })),
  ]
}

/**
 * Gemini gives calls no id, and wants a result by the name of its function, and a call with its signature
 * (https://ai.google.dev/gemini-api/docs/thought-signatures). So an id is made that holds both.
 */
const idOf = (name: string, signature: unknown): string =>
  ['call', crypto.randomUUID().slice(0, 8), name, typeof signature === 'string' ? signature : ''].join('.')

function idIn(id: string): { name: string; signature: string } {
  const [, , name = '', signature = ''] = id.split('.')
  return { name, signature }
}

/** Forms: https://ai.google.dev/gemini-api/docs/structured-output */
function generationConfig(config: ConversationModelConfig, form?: AnswerForm): Record<string, unknown> {
  const settings = {
    ...geminiSampling(config, modelId(config.model_name)),
    ...(form && { responseMimeType: 'application/json' }),
    ...(form?.type === 'schema' && { responseJsonSchema: form.schema }),
  }
  return Object.keys(settings).length > 0 ? { generationConfig: settings } : {}
}

async function* generate(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const call = textCall(options(config, env), signal, request)
  const method = request.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
  const response = await call.fetch(
    url(config, method),
    post(config, { ...contents(request), ...generationConfig(config, request.form) }),
  )
  yield* readContents(call, request.stream ? call.events(response.body) : [await call.text(response)])
}

interface Content {
  candidates?: ({
    content?: { parts?: unknown } | null
    finishReason?: unknown
  } | null)[]
  usageMetadata?: { promptTokenCount?: unknown; candidatesTokenCount?: unknown; thoughtsTokenCount?: unknown }
  promptFeedback?: { blockReason?: unknown }
  error?: unknown
}

/** Gemini streams the same objects as in a whole answer. Its only end marker is finishReason. */
async function* readContents(
  call: ProviderCall,
  contents: AsyncIterable<string> | string[],
): AsyncGenerator<Delta> {
  const reply = new Reply(call, { whole: Array.isArray(contents) })
  for await (const json of contents) {
    reply.any = true
    const content = parseObject(json) as Content | undefined
    if (!content) throw call.malformed()
    if (content.error) throw call.reported(json)
    const blocked = content.promptFeedback?.blockReason
    if (blocked)
      throw call.failed(
        `the prompt was blocked (${typeof blocked === 'string' ? blocked : 'no reason given'})`,
      )
    reply.usage = costOf(content.usageMetadata) ?? reply.usage
    const candidate = content.candidates?.[0]
    const parts = candidate?.content?.parts
    for (const part of Array.isArray(parts) ? parts : []) {
      yield* part?.thought === true ? reply.said('', part.text) : reply.said(part?.text)
      const { name, args } = part?.functionCall ?? {}
      if (typeof name !== 'string') continue
      const id = idOf(name, part.thoughtSignature)
      reply.calls(id, { id, name, piece: args })
    }
    if (candidate?.finishReason) reply.finish = finishReasonIn(FINISH_REASONS, candidate.finishReason)
  }
  yield* reply.end()
}

function costOf(usage: Content['usageMetadata']): Delta | undefined {
  if (!usage) return undefined
  // Thoughts are charged as output, and counted separately.
  const counts = [usage.candidatesTokenCount, usage.thoughtsTokenCount].filter(isCount)
  if (counts.length === 0) return undefined
  const outputTokens = counts.reduce((sum, count) => sum + count, 0)
  return usageOf(usage.promptTokenCount, outputTokens)
}

const FINISH_REASONS: Record<string, FinishReason> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
}

export const google: LanguageModelProvider = {
  namespace: 'google',
  callsTools: true,
  forms: ['json', 'schema'],
  validate(config) {
    requireString(config, 'api_key', 'Gemini API key is not provided', 'Gemini API key is not a string')
    allowString(config, 'google_url', 'Property `google_url` is not a string.')
  },
  destination: (config) => url(config, 'generateContent'),
  async probe(config, env) {
    const call = new ProviderCall(options(config, env))
    const hello = contents({ messages: [{ role: 'user', content: 'hello' }] })
    const response = await call.fetch(
      url(config, 'generateContent'),
      post(config, { ...hello, ...generationConfig(config) }),
    )
    const reply = parseObject(await call.text(response)) as Content | undefined
    if (!Array.isArray(reply?.candidates)) throw call.malformed()
  },
  generate,
}
