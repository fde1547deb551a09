/** Embeds a collection's documents in the background, with a queue for each embedding field. */

import { Gate } from '../../lib/few'
import { EmbeddingQueue, PARALLEL_CALLS, type QueueSurroundings } from './queue'
import { completeReplacement } from './replacement'

export class EmbeddingQueues {
  #around: QueueSurroundings
  #queues = new Map<number, EmbeddingQueue>()

  /** @param onReplaced a field has switched to its new vectors, and tables are to be dropped */
  constructor(around: Omit<QueueSurroundings, 'onDrained' | 'gate' | 'share'>, onReplaced: () => void) {
    const { storage, store } = around
    this.#around = {
      ...around,
      gate: new Gate(PARALLEL_CALLS),
      share: () => Math.max(1, Math.floor(PARALLEL_CALLS / this.#called())),
      onDrained: (slot) => {
        if (completeReplacement(storage, store, slot)) onReplaced()
      },
    }
  }

  /** The number of fields with remote models. */
  #called(): number {
    const { store, embedders } = this.#around
    const { embedded, replacing } = store.plan
    return Math.max(1, [...embedded, ...replacing].filter(({ field }) => !embedders.isBuiltIn(field)).length)
  }

  /** The queues of all present fields. */
  works(): EmbeddingQueue[] {
    const { embedded, replacing } = this.#around.store.plan
    const slots = [...embedded, ...replacing].flatMap(({ slot }) => slot ?? [])
    const numbers = new Set(slots.map(({ slot }) => slot))
    for (const slot of this.#queues.keys()) if (!numbers.has(slot)) this.#queues.delete(slot)
    return slots.map((slot) => {
      const queue = this.#queues.get(slot.slot) ?? new EmbeddingQueue(slot, this.#around)
      this.#queues.set(slot.slot, queue)
      return queue
    })
  }

  queueOf(slot: number): EmbeddingQueue | undefined {
    if (!this.#queues.has(slot)) this.works()
    return this.#queues.get(slot)
  }

  /** The queues with work left, even if only the switch to finished new vectors. */
  waiting(): EmbeddingQueue[] {
    const { pending, plan } = this.#around.store
    const replacing = new Set(plan.replacing.map(({ slot }) => slot!.slot))
    return this.works().filter(({ slot }) => replacing.has(slot) || pending.next({ slot }, 1).length > 0)
  }

  /** Retries everything: the owner has changed something. */
  retry(): void {
    this.#around.store.pending.retryRefused()
    for (const queue of this.works()) queue.clearStall()
  }

  /** Whether any field is being replaced without a stall. */
  get replacing(): boolean {
    return this.#around.store.plan.replacing.some(({ slot }) => this.queueOf(slot!.slot)?.stall === undefined)
  }

  /**
   * Takes a step towards replacing fields by the built-in model. A PATCH of the schema waits for this, since no
   * provider is involved.
   * @returns whether all is done
   */
  async replaceAtOnce(): Promise<boolean> {
    const { store, embedders } = this.#around
    const next = store.plan.replacing.find(({ field }) => embedders.isBuiltIn(field))
    return next === undefined || (await this.queueOf(next.slot!.slot)?.step()) !== 0
  }

  /** What GET /collections/:name reports; nothing when all is done. */
  summary(): Record<string, unknown> {
    const { pending, plan } = this.#around.store
    const counts = pending.counts()
    const refused = pending.refused()
    const stalls = this.works().flatMap(({ stall }) => stall ?? [])
    const summary: Record<string, unknown> = {}
    if (counts.size > 0) summary.pending_embeddings = [...counts.values()].reduce((sum, count) => sum + count)
    if (refused !== undefined) {
      summary.refused_embeddings = refused.count
      summary.embedding_error = `Document \`${refused.id}\`: ${refused.error}`
    }
    // A stalled queue matters more than a refused document, so its message wins.
    if (stalls[0] !== undefined) summary.embedding_error = stalls[0].message
    if (plan.replacing.length > 0) {
      summary.replacing_embeddings = plan.replacing.map(({ name, field, slot }) => ({
        name,
        num_dim: field.num_dim,
        model_name: field.embed?.model_config.model_name,
        pending: counts.get(slot!.slot) ?? 0,
      }))
    }
    return summary
  }
}
