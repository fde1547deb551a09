/** The vector indexes of one collection, a slot each, and the memory that they share. */
import { ApiError } from '../../errors'
import { CLUSTER_HINT, MAX_MATRIX_BYTES } from '../limits'
import type { FieldSlot, StoredSchema } from '../schema/layout'
import type { FieldPlan, Plan } from '../schema/plan'
import type { Field } from '../types'
import type { VectorIndex, VectorIndexes } from './vector-index'

export class VectorFields {
  #from: VectorIndexes
  #indexes = new Map<number, VectorIndex>()

  constructor(from: VectorIndexes) {
    this.#from = from
  }

  index(field: Field, slot: FieldSlot): VectorIndex {
    let index = this.#indexes.get(slot.slot)
    if (index === undefined) {
      index = this.#from.index(field, slot)
      this.#indexes.set(slot.slot, index)
    }
    return index
  }

  /** Call this when the vectors of a slot are no longer needed, before their table is dropped. */
  retire({ slot }: FieldSlot): void {
    this.#from.retire(slot)
    this.#indexes.get(slot)?.reset()
    this.#indexes.delete(slot)
  }

  /** Call this in the transaction that changes the fields. */
  describe(schema: StoredSchema): void {
    this.#from.describe(schema)
  }

  /** Calls `write`, which changes values that a document can be filtered by. */
  rewrite(seq: number, write: () => void): void {
    this.#from.rewrite(seq, write)
  }

  /** Packs what was written. Belongs in the transaction. */
  flush(): void {
    for (const index of this.#indexes.values()) index.flush()
  }

  /** Forgets what is in memory: a transaction was rolled back, and a slot that it gave may be given to another field. */
  reset(): void {
    for (const index of this.#indexes.values()) index.reset()
    this.#indexes.clear()
  }

  /**
   * Whether a search can compare more vectors.
   * @param filled fields that a document has vectors for
   * @param seq the document, undefined for a new one
   * @throws ApiError 422
   */
  requireRoom(plan: Plan, filled: FieldPlan[], seq: number | undefined): void {
    if (filled.length === 0) return
    let bytes = 0
    let added: Field | undefined
    for (const { field, slot } of [...plan.vectors, ...plan.replacing]) {
      const index = this.index(field, slot as FieldSlot)
      const isFilled = filled.some((other) => other.slot?.slot === slot?.slot)
      const adds = isFilled && (seq === undefined || !index.has(seq))
      if (adds) added = field
      bytes += index.memory(index.size + (adds ? 1 : 0))
    }
    if (added === undefined || bytes <= MAX_MATRIX_BYTES) return
    throw new ApiError(
      422,
      `Field \`${added.name}\` takes no more vectors: without Vectorize those of a collection may take ${MAX_MATRIX_BYTES} bytes of memory. ${(added.vec_dist ?? 'cosine') === 'cosine' ? `Bind a Vectorize index of ${added.num_dim} dimensions` : 'Vectorize takes fields whose `vec_dist` is `cosine`'}, or ${CLUSTER_HINT} (docs/limits.md, "What happens when vectors fill the memory?").`,
    )
  }
}
