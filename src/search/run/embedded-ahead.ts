/**
 * Vectors of questions that were embedded before their search came. A question's Worker asks for them beside the call to the
 * conversation, so that the search does not wait for a call to the embedder that nobody began.
 */
import type { EmbeddingLimits, EmbeddingModel } from '../../models/embedding-model'

/** How long a search may take to come, in milliseconds. */
const KEEP_MS = 10_000
const MOST = 32

interface Ahead {
  model: EmbeddingModel
  vectors: Promise<Float32Array[]>
  /** milliseconds since 1970 */
  until: number
}

export class EmbeddedAhead {
  readonly #kept = new Map<string, Ahead>()

  /** Embeds texts as queries for the searches to come. @throws ApiError the embedder's own */
  async begin(model: EmbeddingModel, texts: string[], limits: EmbeddingLimits): Promise<void> {
    if (this.find(model, texts)) return
    const key = JSON.stringify(texts)
    const vectors = model.embed(texts, 'query', limits)
    const ahead = { model, vectors, until: Date.now() + KEEP_MS }
    this.#kept.delete(key)
    this.#kept.set(key, ahead)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MOST) break
      this.#kept.delete(oldest)
    }
    try {
      await vectors
    } catch (error) {
      // A search that comes later tries again.
      if (this.#kept.get(key) === ahead) this.#kept.delete(key)
      throw error
    }
  }

  /** The vectors of texts as queries, if they were begun. A changed schema has other models. */
  find(model: EmbeddingModel, texts: string[]): Promise<Float32Array[]> | undefined {
    const ahead = this.#kept.get(JSON.stringify(texts))
    return ahead?.model === model && Date.now() < ahead.until ? ahead.vectors : undefined
  }
}
