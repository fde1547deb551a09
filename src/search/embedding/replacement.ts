/**
 * Another model for an embedding field. Until every document has its vector by the new one, the field goes on
 * being what it was, for searches and for its owner; then it becomes the new one in a single transaction.
 *
 * Vectors of two models cannot be compared, so a field that had some of each would order documents by which model
 * they met. The new vectors therefore grow in a table of their own (`schema.replacing`), and a document that is
 * written meanwhile is embedded for both.
 */

import * as v from 'valibot'
import type { Store } from '../documents/store'
import { readMeta, writeMeta } from '../meta'
import { type FieldSlot, replacementOf, type StoredSchema, vectorsTable } from '../schema/layout'
import { createVectorsTable } from '../schema/tables'
import type { Field } from '../types'
import type { Background } from '../work'
import { stallKey } from './queue'

/** Begins to make the vectors that `field` asks for. Changes `schema` in place; belongs in a transaction. */
export function beginReplacement(store: Store, schema: StoredSchema, field: Field): void {
  cancelReplacement(store, schema, field.name)
  const slot: FieldSlot = { slot: schema.nextSlot++ }
  createVectorsTable(store.sql, slot)
  schema.replacing = { ...schema.replacing, [field.name]: { field, slot } }
  store.pending.markAll(slot)
}

/** Gives up what has been made for a field so far. Changes `schema` in place; belongs in a transaction. */
export function cancelReplacement(store: Store, schema: StoredSchema, name: string): void {
  const begun = replacementOf(schema, name)
  if (begun === undefined) return
  discardVectors(store, begun.slot)
  delete schema.replacing?.[name]
}

/**
 * Puts the new vectors in the place of the old ones. All have been made.
 * @returns false when `slot` holds no new ones
 */
export function completeReplacement(storage: DurableObjectStorage, store: Store, slot: FieldSlot): boolean {
  const schema = structuredClone(store.schema)
  const found = Object.entries(schema.replacing ?? {}).find(([, begun]) => begun.slot.slot === slot.slot)
  if (found === undefined) return false
  const [name, { field }] = found
  const old = schema.slots[name] as FieldSlot
  schema.fields = schema.fields.map((other) => (other.name === name ? field : other))
  schema.slots[name] = slot
  delete schema.replacing?.[name]
  try {
    storage.transactionSync(() => {
      store.saveSchema(schema)
      discardVectors(store, old)
    })
  } catch (error) {
    store.reset()
    throw error
  }
  return true
}

/** Names of tables that nothing reads any more. */
const tables = v.array(v.string())

/**
 * Forgets the vectors of an embedding field, those to be made too. Their table is dropped in the background: it
 * can be as large as the rest of the collection.
 */
export function discardVectors(store: Store, slot: FieldSlot): void {
  const table = vectorsTable(slot)
  store.pending.forgetSlot(slot)
  writeMeta(store.sql, stallKey(slot), undefined)
  store.vectorFields.retire(slot)
  writeMeta(store.sql, 'discarded', [...(readMeta(store.sql, 'discarded', tables) ?? []), table])
}

/** Rows that a step deletes: of 1,536 dimensions, 3 MB. */
const DISCARD_ROWS = 500

/** The dropping of tables that nothing reads any more, a piece at a time. */
export const discarding = (storage: DurableObjectStorage): Background => ({
  name: 'discarding',
  async step() {
    const { sql } = storage
    const [table, ...others] = readMeta(sql, 'discarded', tables) ?? []
    if (table === undefined) return undefined
    storage.transactionSync(() => {
      sql.exec(`DELETE FROM ${table} WHERE seq IN (SELECT seq FROM ${table} LIMIT ${DISCARD_ROWS})`)
      if (sql.exec(`SELECT 1 FROM ${table} LIMIT 1`).toArray().length > 0) return
      sql.exec(`DROP TABLE ${table}`)
      writeMeta(sql, 'discarded', others.length === 0 ? undefined : others)
    })
    return 0
  },
})
