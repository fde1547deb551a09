/**
 * Writes the normal forms of strings again, some values at a time, in a collection that another version had open before
 * (outlining.ts), which may have had other forms than text/compared.ts. Documents that are written meanwhile have theirs.
 * Until the last value of a field has its form, filters and facet queries compare the values themselves where a form may be
 * old, and Vectorize gets no filter on this field. Where SQL orders by a string, signs may part words until then.
 */
import type { Store } from '../documents/store'
import {
  columnsTable,
  type FieldSlot,
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
import type { Field } from '../types'
import type { Background } from '../work'

/** What a step reads at most, in values and in their characters. A longer value is a step of its own. */
export const STEP = { values: 2_000, characters: 250_000 }

/** When the first step comes after an object has woken, in milliseconds: the call that woke it goes first. */
export const AFTER_WAKING_MS = 250

/** Notes that the forms of a collection are old. */
export function beginNormFilling(sql: SqlStorage): void {
  const schema = readSchema(sql)
  if (schema === undefined) return
  for (const field of schema.fields) {
    const slot = Object.hasOwn(schema.slots, field.name) ? schema.slots[field.name] : undefined
    if (slot !== undefined && isString(field) && hasValues(field)) slot.parted = { seq: 0, pos: -1 }
  }
  writeSchema(sql, schema)
}

/** The next field whose forms are old. */
function nextOf({ fields, slots }: StoredSchema) {
  const field = fields.find(({ name }) => Object.hasOwn(slots, name) && slots[name]!.parted)
  return field && { field, slot: slots[field.name]! }
}

export const isNormFilling = (schema: StoredSchema): boolean => nextOf(schema) !== undefined

export const normFilling = (storage: DurableObjectStorage, store: Store): Background => ({
  name: 'norms',
  step: async () => {
    const next = store.closed ? undefined : nextOf(store.schema)
    if (next === undefined) return undefined
    try {
      storage.transactionSync(() => rewrite(storage.sql, store, next))
    } catch (error) {
      store.reset()
      throw error
    }
    return isNormFilling(store.schema) ? 0 : undefined
  },
})

/** The fewest characters of a form that is cut because its row is too long. */
const SHORTEST_CUT = 1_000

/**
 * A row that was written with its old form may be too long with the new one: emoji had none. Then as much of it is written as fits. Else
 * the filling would never get past it.
 */
function update(sql: SqlStorage, statement: string, [form, ...where]: [string, number, number]): void {
  try {
    sql.exec(statement, form, ...where)
  } catch (error) {
    if (form.length < SHORTEST_CUT) throw error
    update(sql, statement, [form.slice(0, form.length >> 1), ...where])
  }
}

/** Writes the forms of some values that have changed. The labels of a document's vectors change with them. */
function rewrite(sql: SqlStorage, store: Store, { field, slot }: { field: Field; slot: FieldSlot }): void {
  const rules = rulesOf(store.schema, field)
  const [table, pos, value, norm] = isArray(field)
    ? [valuesTable(slot), 'pos', 'value', 'norm']
    : [columnsTable(slot), '0', scalarColumn(slot), normColumn(slot)]
  // SQLite reads each row when it is asked for it.
  const rows = sql.exec<{ seq: number; pos: number; value: string | null; norm: string }>(
    `SELECT seq, ${pos} AS pos, ${value} AS value, ${norm} AS norm FROM ${table}
      WHERE (seq, ${pos}) > (?, ?) ORDER BY seq, pos LIMIT ${STEP.values}`,
    slot.parted!.seq,
    slot.parted!.pos,
  )
  const changes = new Map<number, [pos: number, form: string][]>()
  let [count, characters] = [0, 0]
  let last: { seq: number; pos: number } | undefined
  for (const row of rows) {
    last = row
    count++
    if (row.value === null) continue
    const form = normalForm(row.value, rules)
    if (form !== row.norm) {
      const changed = changes.get(row.seq) ?? []
      changes.set(row.seq, changed)
      changed.push([row.pos, form])
    }
    characters += row.value.length
    if (characters >= STEP.characters) break
  }
  for (const [seq, changed] of changes) {
    store.vectorFields.rewrite(seq, () => {
      for (const [at, form] of changed) {
        update(sql, `UPDATE ${table} SET ${norm} = ? WHERE seq = ? AND ${pos} = ?`, [form, seq, at])
      }
    })
  }
  const isLast = count < STEP.values && characters < STEP.characters
  if (isLast) delete slot.parted
  else slot.parted = { seq: last!.seq, pos: last!.pos }
  writeSchema(sql, store.schema)
}
