/** The models that the double of Workers AI serves, with the figures of their pages in Cloudflare's catalogue. */

export type Model =
  | {
      task: 'text-generation'
      /** tokens of prompt and answer together */
      context: number
      /** what its replies look like: Workers AI's own `{response}`, or OpenAI's `{choices}` */
      shape: 'native' | 'openai'
    }
  | {
      task: 'text-embeddings'
      dimensions: number
      /** texts a call */
      batch: number
      /** what is past it has no part in the vector */
      tokens: number
      /** takes `queries` and `documents` besides `text` */
      asymmetric?: true
      /** takes `query` and `contexts`, and scores them */
      scores?: true
    }
  | { task: 'reranking' }

export const CATALOGUE: Record<string, Model> = {
  '@cf/meta/llama-3.3-70b-instruct-fp8-fast': { task: 'text-generation', context: 24_000, shape: 'native' },
  '@cf/meta/llama-3.2-1b-instruct': { task: 'text-generation', context: 60_000, shape: 'native' },
  '@cf/zai-org/glm-4.7-flash': { task: 'text-generation', context: 131_072, shape: 'openai' },
  '@cf/ibm-granite/granite-4.0-h-micro': { task: 'text-generation', context: 131_000, shape: 'native' },
  '@cf/google/gemma-4-26b-a4b-it': { task: 'text-generation', context: 256_000, shape: 'openai' },
  '@cf/openai/gpt-oss-120b': { task: 'text-generation', context: 128_000, shape: 'openai' },
  '@cf/zai-org/glm-5.3-flash': { task: 'text-generation', context: 1_310_720, shape: 'openai' },
  '@cf/openai/gpt-oss-20b': { task: 'text-generation', context: 128_000, shape: 'openai' },
  '@cf/baai/bge-m3': { task: 'text-embeddings', dimensions: 1024, batch: 100, tokens: 60_000, scores: true },
  '@cf/baai/bge-small-en-v1.5': { task: 'text-embeddings', dimensions: 384, batch: 100, tokens: 512 },
  '@cf/baai/bge-base-en-v1.5': { task: 'text-embeddings', dimensions: 768, batch: 100, tokens: 512 },
  '@cf/baai/bge-large-en-v1.5': { task: 'text-embeddings', dimensions: 1024, batch: 100, tokens: 512 },
  '@cf/qwen/qwen3-embedding-0.6b': {
    task: 'text-embeddings',
    dimensions: 1024,
    batch: 32,
    tokens: 8192,
    asymmetric: true,
  },
  '@cf/google/embeddinggemma-300m': { task: 'text-embeddings', dimensions: 768, batch: 100, tokens: 2048 },
  '@cf/baai/bge-reranker-base': { task: 'reranking' },
}
