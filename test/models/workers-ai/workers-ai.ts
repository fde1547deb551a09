/**
 * A double of Workers AI, written from its documentation. It is the binding (`env.AI`): `run` answers, limits and
 * fails as the platform does. `serveWorkersAi` (server.ts) puts its REST API before it. It runs in Node and workerd.
 *
 *     const ai = new WorkersAi({ answer: (messages) => `You said: ${messages.at(-1)!.content}` })
 *
 *     // in Node, and wherever an environment is passed
 *     const env = { AI_BACKEND: 'workers-ai', AI: ai } as unknown as Cloudflare.Env
 *
 *     // in a worker test, for the Worker and its Durable Objects too (bind.ts)
 *     bindWorkersAi(ai)
 *
 *     // over HTTP, also for a Parley in another process
 *     const server = await serveWorkersAi(ai)
 *     const model = { model_name: 'cloudflare/@cf/...', account_id, api_key: TOKEN, cloudflare_url: server.url }
 *     const bound = new OwnParley({ WORKERS_AI_URL: server.url }) // by its binding
 *
 *     ai.failNext(3040, { times: 2 })    // out of capacity, twice
 *     ai.calls                           // what was asked
 *
 * The catalogue (catalogue.ts) has models of either stream shape, embedders and the reranker.
 */
import { CATALOGUE, type Model } from './catalogue'
import { InferenceUpstreamError } from './errors'
import { type Answer, streamed, whole } from './shapes'
import { embed, score } from './vectors'

export interface Message {
  role: string
  content: string
}

export interface Call {
  model: string
  inputs: Record<string, unknown>
  options: Record<string, unknown>
}

export interface Script {
  /** what a language model says; a string is an answer that is complete */
  answer?: (messages: Message[], call: Call) => string | Answer | Promise<string | Answer>
  /** awaited before a call is answered; what it throws is the answer */
  before?: (call: Call) => void | Promise<void>
}

const DEFAULT_MAX_TOKENS = 256

export class WorkersAi {
  /** every call, those that failed included, oldest first */
  readonly calls: Call[] = []
  readonly #script: Script
  readonly #failures: InferenceUpstreamError[] = []

  constructor(script: Script = {}) {
    this.#script = script
  }

  /** Makes the next calls fail with an internal code of Workers AI. */
  failNext(code: number, { times = 1, description }: { times?: number; description?: string } = {}): void {
    for (let n = 0; n < times; n++) this.#failures.push(new InferenceUpstreamError(code, description))
  }

  /** The binding's `run`. An arrow function, so that it can be handed over alone. */
  run = async (
    model: string,
    inputs: Record<string, unknown>,
    options: { signal?: AbortSignal; gateway?: { id: string } } = {},
  ): Promise<unknown> => {
    const call = { model, inputs: structuredClone(inputs), options: { ...options } }
    this.calls.push(call)
    options.signal?.throwIfAborted()
    const failure = this.#failures.shift()
    if (failure) throw failure
    await this.#script.before?.(call)
    const served = modelNamed(model)
    switch (served.task) {
      case 'text-generation':
        return this.#generate(served, call, options.signal)
      case 'text-embeddings':
        return embeddings(served, call)
      case 'reranking':
        return rerank(inputs)
    }
  }

  async #generate(model: Model & { task: 'text-generation' }, call: Call, signal?: AbortSignal) {
    const messages = messagesIn(call.inputs)
    requireContext(messages, call.inputs, model.context)
    const said = (await this.#script.answer?.(messages, call)) ?? `You said: ${messages.at(-1)?.content}`
    signal?.throwIfAborted()
    const answer: Answer = typeof said === 'string' ? { text: said } : said
    answer.usage ??= [tokensOf(messages.map(({ content }) => content).join()), tokensOf(answer.text)]
    return call.inputs.stream === true
      ? streamed(answer, model.shape, call.model, signal)
      : whole(answer, model.shape, call.model)
  }
}

function modelNamed(name: string): Model {
  if (!/^@(?:cf|hf)\/[\w.-]+\/[\w.-]+$/.test(name)) throw new InferenceUpstreamError(3042)
  const model = CATALOGUE[name]
  if (!model) throw new InferenceUpstreamError(5007, `No such model ${name} or task`)
  return model
}

/** About four bytes a token, as the platform's own estimate. */
const tokensOf = (text: string): number => Math.ceil(new TextEncoder().encode(text).length / 4)

function messagesIn({ messages, prompt }: Record<string, unknown>): Message[] {
  if (typeof prompt === 'string' && prompt !== '') return [{ role: 'user', content: prompt }]
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new InferenceUpstreamError(
      5006,
      "Error: oneOf at '/' not met, 0 matches: required properties at '/' are 'prompt', required properties at '/' are 'messages'",
    )
  }
  for (const [at, message] of messages.entries()) {
    if (typeof message?.role !== 'string' || typeof message.content !== 'string') {
      throw new InferenceUpstreamError(5006, `Error: Type mismatch of '/messages/${at}/content'`)
    }
  }
  return messages
}

function requireContext(messages: Message[], inputs: Record<string, unknown>, limit: number): void {
  const output = typeof inputs.max_tokens === 'number' ? inputs.max_tokens : DEFAULT_MAX_TOKENS
  const tokens = tokensOf(messages.map(({ content }) => content).join('')) + output
  if (tokens > limit) {
    throw new InferenceUpstreamError(
      5021,
      `The estimated number of input and maximum output tokens (${tokens}) exceeded this model context window limit (${limit}).`,
    )
  }
}

function embeddings(model: Model & { task: 'text-embeddings' }, { inputs, model: name }: Call): unknown {
  if (model.scores && typeof inputs.query === 'string') return rerank(inputs)
  const given = model.asymmetric ? (inputs.text ?? inputs.documents ?? inputs.queries) : inputs.text
  const texts = typeof given === 'string' ? [given] : given
  if (!Array.isArray(texts) || texts.some((text) => typeof text !== 'string')) {
    throw new InferenceUpstreamError(5006, "Error: required properties at '/' are 'text'")
  }
  if (texts.length === 0 || texts.length > model.batch) {
    throw new InferenceUpstreamError(5006, `Error: Length of '/text' must be between 1 and ${model.batch}`)
  }
  const pooling = inputs.pooling ?? 'mean'
  return {
    shape: [texts.length, model.dimensions],
    data: texts.map((text) => embed(text, model.dimensions, model.tokens, `${name} ${pooling} `)),
    ...(name.includes('/bge-') && { pooling }),
  }
}

/** bge-reranker-base, and bge-m3 asked with a query. Ids are places in the request; the best comes first. */
function rerank({ query, contexts, top_k }: Record<string, unknown>): unknown {
  if (typeof query !== 'string' || query === '') {
    throw new InferenceUpstreamError(5006, "Error: required properties at '/' are 'query'")
  }
  if (!Array.isArray(contexts) || contexts.length === 0) {
    throw new InferenceUpstreamError(5006, "Error: required properties at '/' are 'contexts'")
  }
  const response = contexts
    .map((context: { text?: unknown }, id) => ({ id, score: score(query, String(context?.text ?? '')) }))
    .sort((a, b) => b.score - a.score)
  return { response: typeof top_k === 'number' ? response.slice(0, top_k) : response }
}
