/** Workers AI's embedding models, through its binding. */
import { ApiError } from '../errors'
import type { AiRunner } from './ai-runner'
import type { EmbeddingModel } from './embedding-model'

export const WORKERS_AI_EMBEDDER = '@cf/baai/bge-m3'
export const WORKERS_AI_DIMENSIONS = 1024

/**
 * @param name as the schema named it
 * @param ai the binding, or an instance of the SDK around it
 */
export const workersAiEmbedder = (
  name: string,
  ai: AiRunner,
  model: string = WORKERS_AI_EMBEDDER,
): EmbeddingModel => ({
  name,
  batchSize: 100,
  async embed(texts) {
    const reply = (await run(ai, model, texts)) as { data?: unknown }
    if (!Array.isArray(reply?.data) || reply.data.length !== texts.length) {
      throw new ApiError(400, 'Got malformed response from Cloudflare API.')
    }
    return reply.data.map((vector: number[]) => Float32Array.from(vector))
  },
})

async function run(ai: AiRunner, model: string, texts: string[]): Promise<unknown> {
  try {
    return await ai.run(model, { text: texts })
  } catch (error) {
    throw new ApiError(400, `Cloudflare API error: ${error instanceof Error ? error.message : String(error)}`)
  }
}
