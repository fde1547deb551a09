/** The port to embedding models: texts in, vectors out. */

export interface EmbeddingModel {
  /** as the schema named it: `ts/e5-small`, `openai/text-embedding-3-small`, `local/hash-384` */
  readonly name: string
  /**
   * What its cosines weigh beside words where both are joined by their scores (search/run/fusion.ts), from 0 to 1.
   * Absent for models that read a text in context. Simpler ones know less than the words do, and their cosines differ
   * more.
   */
  readonly weight?: number
  /** the most texts that one call takes */
  readonly batchSize: number
  /**
   * One vector a text, in order, each of the model's dimensions, not necessarily normalised.
   * @param kind documents and queries are told apart where the model does
   * @throws ApiError with the provider's message
   */
  embed(texts: string[], kind: 'document' | 'query'): Promise<Float32Array[]>
  /**
   * A document's vector without a wait: only where the model runs here. Others are asked in the background.
   * @returns undefined while the model is not `ready`
   */
  embedNow?(text: string): Float32Array | undefined
  /**
   * Loads what `embedNow` needs, where that is not there from the start.
   * @throws ApiError 503 when it cannot be loaded
   */
  ready?(): Promise<void>
}

/** Whether a part of a provider's reply is a vector. */
export const isVector = (value: unknown): value is number[] =>
  Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'number')

/** `embed.model_config` of a field, as its schema holds it with the key in clear. */
export interface EmbeddingModelConfig {
  model_name: string
  api_key?: string
  url?: string
  path?: string
  [extra: string]: unknown
}
