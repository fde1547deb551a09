/** Reranking models: cross-encoders that score how well a text fits a question. */
import { badRequest } from '../errors'
import { workersAiError } from './cloudflare'
import { type AiRunner, aiBinding } from './egress'
import { ProviderError } from './provider-error'
import { modelId } from './sampling'

/** https://developers.cloudflare.com/workers-ai/models/bge-reranker-base/ */
export const BGE_RERANKER = 'cloudflare/@cf/baai/bge-reranker-base'

/** Characters of a text that are sent: more than the 512 tokens that the model reads. */
const LONGEST_TEXT = 3_000

export interface Reranker {
  /** the caller's name for it */
  readonly name: string
  /**
   * Scores how well each text fits the query, in the order of the texts. Higher is better; the scale depends on the
   * model.
   * @throws ProviderError with the provider's message
   */
  score(query: string, texts: string[], signal: AbortSignal): Promise<number[]>
}

/**
 * Finds a reranking model by name. Makes no call.
 * @returns undefined if this deployment cannot serve it
 * @throws ApiError 400 for an unknown name
 */
export function createReranker(name: string, env: Cloudflare.Env): Reranker | undefined {
  if (name !== BGE_RERANKER) {
    throw badRequest(`\`${name}\` is not a reranking model: use \`${BGE_RERANKER}\`.`)
  }
  if (env.AI_BACKEND !== 'workers-ai') return undefined
  const ai = aiBinding(env)
  return { name, score: (query, texts, signal) => scoreOnWorkersAi(ai, name, query, texts, signal) }
}

async function scoreOnWorkersAi(
  ai: AiRunner,
  name: string,
  query: string,
  texts: string[],
  signal: AbortSignal,
): Promise<number[]> {
  const contexts = texts.map((text) => ({ text: text.slice(0, LONGEST_TEXT) }))
  const inputs = { query, contexts, top_k: texts.length }
  let reply: unknown
  try {
    reply = await ai.run(modelId(name), inputs, { signal })
  } catch (error) {
    const { message, upstream } = workersAiError(error)
    throw new ProviderError(400, `Cloudflare API error: ${message}`, upstream)
  }
  const scores = new Array<number>(texts.length).fill(Number.NEGATIVE_INFINITY)
  for (const { id, score } of scoresOf(reply, texts.length)) scores[id] = score
  return scores
}

/**
 * @param count of texts: their indexes are the ids, and each has at most one score
 * @throws ProviderError 400 for a malformed reply
 */
function scoresOf(reply: unknown, count: number): { id: number; score: number }[] {
  const response = (reply as { response?: unknown } | null)?.response
  const valid =
    Array.isArray(response) &&
    response.every((entry) => isScore(entry, count)) &&
    new Set(response.map(({ id }) => id)).size === response.length
  if (!valid) {
    throw new ProviderError(400, 'Got malformed response from Cloudflare API.', { upstream: 200 })
  }
  return response
}

function isScore(entry: unknown, count: number): entry is { id: number; score: number } {
  const { id, score } = (entry ?? {}) as Record<string, unknown>
  return Number.isInteger(id) && Number(id) >= 0 && Number(id) < count && Number.isFinite(score)
}
