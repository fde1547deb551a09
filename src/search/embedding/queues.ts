/** The embedding of a collection's documents in the background: a queue for each embedding field. */

import { EmbeddingQueue, type QueueSurroundings } from './queue'
import { completeReplacement } from './replacement'

export class EmbeddingQueues {
  #around: QueueSurroundings
  #queues = new Map<number, EmbeddingQueue>()

  /** @param onReplaced a field has got its new vectors, and its old ones are to be dropped */
  constructor(around: Omit<QueueSurroundings, 'onDrained'>, onReplaced: () => void) {
    const { storage, store } = around
    this.#around = {
      ...around,
      onDrained: (slot) => {
        if (completeReplacement(storage, store, slot)) onReplaced()
      },
    }
  }

  /** The queues of the fields that there are now. */
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

  /** The queues with something left to do, be it only to put the new vectors in the place of the old ones. */
  waiting(): EmbeddingQueue[] {
    const { pending, plan } = this.#around.store
    const replacing = new Set(plan.replacing.map(({ slot }) => slot!.slot))
    return this.works().filter(({ slot }) => replacing.has(slot) || pending.next({ slot }, 1).length > 0)
  }

  /** Has models asked again, whatever kept them from answering: their owner has changed something. */
  retry(): void {
    this.#around.store.pending.retryRefused()
    for (const queue of this.works()) queue.clearStall()
  }

  /** Whether a field is on its way to another model, and gets on. */
  get replacing(): boolean {
    return this.#around.store.plan.replacing.some(({ slot }) => this.queueOf(slot!.slot)?.stall === undefined)
  }

  /**
   * A step towards replacing the fields whose new model is the built-in one: whoever altered the schema waits for
   * those, as for all that takes no provider.
   * @returns whether nothing of that is left
   */
  async replaceAtOnce(): Promise<boolean> {
    const { store, embedders } = this.#around
    const next = store.plan.replacing.find(({ field }) => embedders.isBuiltIn(field))
    return next === undefined || (await this.queueOf(next.slot!.slot)?.step()) !== 0
  }

  /** What GET /collections/:name says of it: nothing, once all is done. */
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
    // That nothing gets on is worse news than that one document is refused.
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
