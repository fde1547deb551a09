/**
 * Replaces the model of an embedding field. Until every document has its new vector, searches and the schema show the
 * old field. Then one transaction switches it.
 *
 * Vectors of two models cannot be compared. A field with both would rank documents by which model made their vectors.
 * So the new vectors go to a table of their own (`schema.replacing`), and a document that is written meanwhile is
 * embedded for both.
 */

import * as v from 'valibot'
import { once } from '../../lib/once'
import type { Store } from '../documents/store'
import { readMeta, writeMeta } from '../meta'
import { type FieldSlot, packedTable, replacementOf, type StoredSchema, vectorsTable } from '../schema/layout'
import { createVectorsTable } from '../schema/tables'
import type { Field } from '../types'
import type { Background } from '../work'
import { stallKey } from './queue'

/** Starts making the vectors that `field` asks for. Changes `schema` in place; belongs in a transaction. */
export function beginReplacement(store: Store, schema: StoredSchema, field: Field): void {
  cancelReplacement(store, schema, field.name)
  const slot: FieldSlot = { slot: schema.nextSlot++ }
  createVectorsTable(store.sql, slot)
  schema.replacing = { ...schema.replacing, [field.name]: { field, slot } }
  store.pending.markAll(slot)
}

/** Cancels a replacement. Changes `schema` in place; belongs in a transaction. */
export function cancelReplacement(store: Store, schema: StoredSchema, name: string): void {
  const begun = replacementOf(schema, name)
  if (begun === undefined) return
  discardVectors(store, begun.slot)
  delete schema.replacing?.[name]
}

/**
 * Switches a field to its new vectors, which are complete.
 * @returns false when `slot` is not a replacement's
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

/** Names of tables to be dropped. */
const tables = once(() => v.array(v.string()))

/**
 * Discards the vectors of an embedding field, pending ones included. The background drops the table, which can be as
 * large as the rest of the collection.
 */
export function discardVectors(store: Store, slot: FieldSlot): void {
  store.pending.forgetSlot(slot)
  writeMeta(store.sql, stallKey(slot), undefined)
  store.vectorFields.retire(slot)
  discard(store.sql, [vectorsTable(slot), packedTable(slot)])
}

/** Marks tables whose rows have a `seq` to be dropped. */
export const discard = (sql: SqlStorage, names: readonly string[]): void =>
  writeMeta(sql, 'discarded', [...(readMeta(sql, 'discarded', tables()) ?? []), ...names])

/** Vectors deleted in a step, and blocks of vectors: 3 MB at 1,536 dimensions, and at 384. */
const [DISCARD_ROWS, DISCARD_BLOCKS] = [500, 32]

/** Drops discarded tables, a piece at a time. */
export const discarding = (storage: DurableObjectStorage): Background => ({
  name: 'discarding',
  async step() {
    const { sql } = storage
    const [table, ...others] = readMeta(sql, 'discarded', tables()) ?? []
    if (table === undefined) return undefined
    storage.transactionSync(() => {
      const rows = table.startsWith('packed') ? DISCARD_BLOCKS : DISCARD_ROWS
      sql.exec(`DELETE FROM ${table} WHERE seq IN (SELECT seq FROM ${table} LIMIT ${rows})`)
      if (sql.exec(`SELECT 1 FROM ${table} LIMIT 1`).toArray().length > 0) return
      sql.exec(`DROP TABLE ${table}`)
      writeMeta(sql, 'discarded', others.length === 0 ? undefined : others)
    })
    return 0
  },
})
