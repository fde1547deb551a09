/** An OpenAI-compatible server of embeddings, and what it makes of texts. */
import { LLMock } from '@copilotkit/aimock'

export const DIMENSIONS = 64

export interface Embedder {
  /** for `url` of a `model_config` */
  url: string
  /** calls that came in since `forget` */
  calls(): number
  forget(): void
  /** Answers 429 to the next calls. @param retryAfter seconds */
  limit(times: number, retryAfter: number): void
  /** What the server makes of texts, asked as anybody may ask it. */
  vectors(texts: string[]): Promise<number[][]>
  stop(): Promise<void>
}

/** The field whose vectors it makes. @param from names of its sources */
export const embeddedBy = (embedder: Embedder, from: string[]) => ({
  name: 'embedding',
  type: 'float[]',
  num_dim: DIMENSIONS,
  embed: {
    from,
    model_config: {
      model_name: 'openai/text-embedding-3-small',
      url: embedder.url,
      api_key: 'sk-1234567890',
    },
  },
})

/** @param latency milliseconds that a call takes */
export async function startEmbedder({ latency = 0 } = {}): Promise<Embedder> {
  const mock = new LLMock({ port: 0, ...(latency > 0 && { chaos: { latencyMs: latency } }) })
  let limited = 0
  let seconds = 0
  mock.on({ endpoint: 'embedding', predicate: () => limited > 0 }, () => {
    limited -= 1
    return { error: { message: 'Rate limit reached' }, status: 429, retryAfter: seconds }
  })
  await mock.start()
  return {
    url: mock.url,
    calls: () => mock.getRequests().length,
    forget: () => mock.clearRequests(),
    limit: (times, retryAfter) => {
      limited = times
      seconds = retryAfter
    },
    vectors: async (texts) => {
      const response = await fetch(`${mock.url}/v1/embeddings`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'text-embedding-3-small', input: texts, dimensions: DIMENSIONS }),
      })
      const { data } = (await response.json()) as { data: { embedding: number[] }[] }
      return data.map(({ embedding }) => embedding)
    },
    stop: () => mock.stop(),
  }
}
