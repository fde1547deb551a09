/** Keeps the labels of a collection's vectors in step with its schema and its documents. */
import { isVector, type StoredSchema } from '../search/schema/layout'
import { chooseLabels, PROPERTIES, readLabelling, readLabels, sameLabels, writeLabelling } from './labels'
import type { VectorOutbox } from './outbox'

export class Labeller {
  #sql: SqlStorage
  #outbox: VectorOutbox
  #onChange: () => void

  /** @param onChange called when there is something to send */
  constructor(sql: SqlStorage, outbox: VectorOutbox, onChange: () => void) {
    this.#sql = sql
    this.#outbox = outbox
    this.#onChange = onChange
  }

  /** Whether the collection has fields to filter by. */
  get labels(): boolean {
    return Object.keys(readLabelling(this.#sql)).length > 0
  }

  /** Chooses the fields that become labels. Belongs in the transaction that changes the schema. */
  describe(schema: StoredSchema): void {
    if (!schema.fields.some(isVector)) return
    const old = readLabelling(this.#sql)
    const chosen = chooseLabels(schema, old)
    if (PROPERTIES.some((property) => old[property] !== chosen[property])) writeLabelling(this.#sql, chosen)
    // A property that was unused has the same value in every vector. Indexing the documents again changes it.
    const hasMoved = PROPERTIES.some((name) => old[name] !== undefined && old[name] !== chosen[name])
    const { labels } = this
    for (const { slot, retired, labelled } of this.#outbox.fields()) {
      if (retired || (labelled === labels && !(labels && hasMoved))) continue
      this.#outbox.relabel(slot, labels)
      this.#onChange()
    }
  }

  /** Runs `write`, and queues the document's vectors if that changed their labels. */
  rewrite(seq: number, write: () => void): void {
    const fields = this.#outbox.fields().filter(({ retired, labelled }) => labelled && !retired)
    const before = fields.length === 0 ? undefined : readLabels(this.#sql, [seq]).get(seq)
    write()
    if (before === undefined || sameLabels(before, readLabels(this.#sql, [seq]).get(seq) ?? {})) return
    for (const { slot } of fields) this.#outbox.markLabels(slot, seq)
    this.#onChange()
  }
}
