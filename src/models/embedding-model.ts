/** The port to embedding models: texts in, vectors out. */
import type { PassageReader } from './static-embedder/reader'

/** Limits for calls of a remote model. */
export interface EmbeddingLimits {
  /** milliseconds for all attempts together */
  timeoutMs?: number
  /** at most; a model is never asked more often than 3 times */
  attempts?: number
}

export interface EmbeddingModel {
  /** as in the schema: `ts/e5-small`, `openai/text-embedding-3-small`, `local/hash-384` */
  readonly name: string
  /**
   * Weight of its cosines, from 0 to 1, when scores of words and vectors are combined (search/run/fusion.ts). Absent
   * for models that read a text in context. Simpler models tell less than the words do, and their cosines vary more.
   */
  readonly weight?: number
  /** most texts in one call */
  readonly batchSize: number
  /**
   * Returns one vector a text, in order, each with the model's dimensions and not necessarily normalised.
   * @param kind document or query; some models treat them differently
   * @param limits for queries to a model that has to be called
   * @throws ApiError with the provider's message; 408 after `limits.timeoutMs`
   */
  embed(texts: string[], kind: 'document' | 'query', limits?: EmbeddingLimits): Promise<Float32Array[]>
  /**
   * Embeds a document synchronously. Only models that run here have it; others are called in the background.
   * @returns undefined until the model is `ready`
   */
  embedNow?(text: string): Float32Array | undefined
  /**
   * Loads the data that `embedNow` needs. Absent if there is nothing to load.
   * @throws ApiError 503 if it cannot be loaded
   */
  ready?(): Promise<void>
  /** The words of the language, common ones first. Only the built-in model has them; none until `ready`. */
  words?(): ReadonlyMap<string, unknown>
  /**
   * Reranks the best hits of a search passage by passage. Only the built-in model has it; undefined until `ready`.
   */
  reader?(): PassageReader | undefined
}

/** Whether a part of a provider's reply is a vector. */
export const isVector = (value: unknown): value is number[] =>
  Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'number')

/** `embed.model_config` of a field as its schema holds it, with the key in clear text. */
export interface EmbeddingModelConfig {
  model_name: string
  api_key?: string
  url?: string
  path?: string
  [extra: string]: unknown
}
