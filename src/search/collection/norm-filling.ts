/**
 * Writes the normal forms of strings again in a collection that is older than text/compared.ts, some documents at a time.
 * Documents that are written meanwhile have theirs. Until the last document has them, filters compare the values
 * themselves, and Vectorize gets no filter on these fields; orders in SQL may have signs where the old forms had them.
 */
import * as v from 'valibot'
import type { Store } from '../documents/store'
import { readMeta, writeMeta } from '../meta'
import {
  columnsTable,
  hasValues,
  isArray,
  isString,
  normColumn,
  type StoredSchema,
  scalarColumn,
  valuesTable,
} from '../schema/layout'
import { readSchema, writeSchema } from '../schema/stored'
import { normalForm } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { Background } from '../work'

/** Row of `meta` with the first document whose forms may be old. */
const KEY = 'norms_from'

/** Documents in a step. */
const STEP = 500

/** Notes that the forms of a collection are old. */
export function beginNormFilling(sql: SqlStorage): void {
  const schema = readSchema(sql)
  if (schema === undefined) return
  for (const field of schema.fields) {
    const slot = Object.hasOwn(schema.slots, field.name) ? schema.slots[field.name] : undefined
    if (slot !== undefined && isString(field) && hasValues(field)) slot.parted = true
  }
  writeSchema(sql, schema)
}

const fieldsOf = ({ fields, slots }: StoredSchema) =>
  fields.flatMap((field) => {
    const slot = Object.hasOwn(slots, field.name) ? slots[field.name]! : undefined
    return slot?.parted && isString(field) && hasValues(field) ? [{ field, slot }] : []
  })

export const isNormFilling = (schema: StoredSchema): boolean =>
  Object.values(schema.slots).some(({ parted }) => parted)

export const normFilling = (storage: DurableObjectStorage, store: Store): Background => ({
  name: 'norms',
  step: async () => {
    if (store.closed || !isNormFilling(store.schema)) return undefined
    const { sql } = storage
    const seqs = sql
      .exec<{ seq: number }>(
        `SELECT seq FROM documents WHERE seq >= ? ORDER BY seq LIMIT ${STEP}`,
        readMeta(sql, KEY, v.number()) ?? 0,
      )
      .toArray()
      .map(({ seq }) => seq)
    const isLast = seqs.length < STEP
    try {
      storage.transactionSync(() => {
        const last = seqs.at(-1)
        if (last !== undefined) rewrite(sql, store, seqs[0]!, last)
        writeMeta(sql, KEY, isLast ? undefined : last! + 1)
        if (!isLast) return
        for (const slot of Object.values(store.schema.slots)) delete slot.parted
        writeSchema(sql, store.schema)
      })
    } catch (error) {
      store.reset()
      throw error
    }
    return isLast ? undefined : 0
  },
})

/** Writes the forms that have changed. The labels of a document's vectors change with them. */
function rewrite(sql: SqlStorage, store: Store, low: number, high: number): void {
  const changes = new Map<number, (() => void)[]>()
  for (const { field, slot } of fieldsOf(store.schema)) {
    const rules = rulesOf(store.schema, field)
    const [table, pos, value, norm] = isArray(field)
      ? [valuesTable(slot), 'pos', 'value', 'norm']
      : [columnsTable(slot), '0', scalarColumn(slot), normColumn(slot)]
    const rows = sql
      .exec<{ seq: number; pos: number; value: string; norm: string }>(
        `SELECT seq, ${pos} AS pos, ${value} AS value, ${norm} AS norm FROM ${table}
          WHERE seq BETWEEN ? AND ? AND ${value} IS NOT NULL`,
        low,
        high,
      )
      .toArray()
    for (const row of rows) {
      const form = normalForm(row.value, rules)
      if (form === row.norm) continue
      const changed = changes.get(row.seq) ?? []
      changes.set(row.seq, changed)
      changed.push(() =>
        sql.exec(`UPDATE ${table} SET ${norm} = ? WHERE seq = ? AND ${pos} = ?`, form, row.seq, row.pos),
      )
    }
  }
  for (const [seq, changed] of changes) {
    store.vectorFields.rewrite(seq, () => {
      for (const change of changed) change()
    })
  }
}
