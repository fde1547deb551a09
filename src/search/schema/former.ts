/**
 * Fields that were dropped and added again with other options, as they were before (row `former` of `meta`). Searches read them
 * until a job has filled the indexes of their successors, and then one transaction changes all of them. Writes reach both.
 *
 * A former field keeps its slot, so its values stand beside the new ones. FTS5 tables have fixed columns and cannot lose one: if
 * a text is among the fields, the full-text indexes are filled anew in `text_next` and `word_next`, which then take the names of
 * the old ones. The schema itself is already the new one, with the fields in `filling`: a version that knows nothing of this
 * begins the job from the start and refuses searches until it is done.
 */
import * as v from 'valibot'
import { once } from '../../lib/once'
import { readMeta, writeMeta } from '../meta'
import { STEMS, WORDS } from '../text/analyzer'
import type { Field } from '../types'
import { isDynamic } from './field'
import { isSearchable, isVector, type StoredSchema } from './layout'
import { OWN_TEXT_COLUMNS } from './shared-column'
import { dropStemWords } from './stem-words'
import { fieldShape, slotShape } from './stored'
import { createTextIndexes, dropValues, NEXT } from './tables'

const shape = once(() =>
  v.object({
    fields: v.array(fieldShape()),
    slots: v.record(v.string(), slotShape()),
    /** the full-text indexes are filled anew */
    texts: v.boolean(),
  }),
)

export type Former = v.InferOutput<ReturnType<typeof shape>>

const KEY = 'former'

export const readFormer = (sql: SqlStorage): Former | undefined => readMeta(sql, KEY, shape())

/** What changes the values that documents have, or the keys of joins. */
const SAME = ['type', 'store', 'reference', 'async_reference', 'cascade_delete'] as const

const isPlain = (field: Field): boolean =>
  !isDynamic(field) && !isVector(field) && !/^(object|image)/.test(field.type)

/** Whether searches can read a field as it was while documents have the values of its successor. */
const isKept = ({ linked }: StoredSchema, old: Field, next: Field): boolean =>
  isPlain(old) &&
  isPlain(next) &&
  SAME.every((option) => old[option] === next[option]) &&
  // Others refer only to fields that are indexed.
  (old.index === next.index || !Object.hasOwn(linked?.keyed ?? {}, old.name))

/** The numbers of texts that no field has, and that have a column of their own. */
export const freeTexts = ({ slots, textColumns }: StoredSchema): number[] => {
  const taken = new Set(Object.values(slots).map(({ text }) => text))
  return Array.from({ length: Math.min(textColumns, OWN_TEXT_COLUMNS) }, (_, text) => text).filter(
    (text) => !taken.has(text),
  )
}

/**
 * Which fields stay as they were while a change of the schema is carried out.
 * @returns undefined if none can: searches for those that are dropped and added again then wait, or are refused
 */
export function formerOf(
  schema: StoredSchema,
  dropped: readonly Field[],
  added: readonly Field[],
): Former | undefined {
  const names = new Set(dropped.map(({ name }) => name))
  const fields = schema.fields.filter(
    (old) => names.has(old.name) && added.some((next) => next.name === old.name && isKept(schema, old, next)),
  )
  const kept = new Set(fields.map(({ name }) => name))
  const others = added.filter(({ name }) => !kept.has(name))
  const texts = [...fields, ...added].some(isSearchable)
  if (
    fields.length === 0 ||
    // A new text is found in the documents that are done, so it has to be in the index that searches read.
    others.some((field) => isSearchable(field) || !isPlain(field)) ||
    dropped.some((field) => isVector(field) && field.embed === undefined) ||
    schema.nextText > schema.textColumns ||
    (texts && freeTexts(schema).length < added.filter(isSearchable).length)
  ) {
    return undefined
  }
  const slots = Object.entries(schema.slots).filter(([name]) => kept.has(name))
  return { fields, slots: Object.fromEntries(slots), texts }
}

/** Begins to keep former fields. Belongs in the transaction that changes the schema. */
export function beginFormer(sql: SqlStorage, schema: StoredSchema, former: Former): void {
  writeMeta(sql, KEY, former)
  if (former.texts) createTextIndexes(sql, schema.textColumns, NEXT)
}

/** A schema with the fields as they were. */
export function withFormer(schema: StoredSchema, former: Former | undefined): StoredSchema {
  if (former === undefined) return schema
  const olds = new Map(former.fields.map((field) => [field.name, field]))
  const slots = Object.entries(schema.slots).filter(([name]) => !olds.has(name))
  const filling = schema.filling?.filter((name) => !olds.has(name))
  return {
    ...schema,
    fields: schema.fields.map((field) => olds.get(field.name) ?? field),
    slots: { ...Object.fromEntries(slots), ...former.slots },
    ...(filling && { filling }),
  }
}

/** Puts the successors in the place of former fields. Changes `schema` in place; belongs in a transaction. */
export function completeFormer(sql: SqlStorage, schema: StoredSchema, former: Former): void {
  if (former.texts) {
    for (const { table } of [STEMS, WORDS]) {
      sql.exec(`DROP TABLE ${table}`)
      sql.exec(`ALTER TABLE ${NEXT[table]} RENAME TO ${table}`)
    }
    schema.nextText = Math.max(-1, ...Object.values(schema.slots).map(({ text }) => text ?? -1)) + 1
  }
  discardFormer(sql, schema.fields)
}

/** Removes former fields, and the full-text indexes that did not take their place. @param fields of the schema */
export function discardFormer(sql: SqlStorage, fields: readonly Field[]): void {
  const former = readFormer(sql)
  if (former === undefined) return
  for (const table of Object.values(NEXT)) sql.exec(`DROP TABLE IF EXISTS ${table}`)
  for (const field of former.fields) {
    dropStemWords(sql, field, fields)
    const slot = Object.hasOwn(former.slots, field.name) ? former.slots[field.name] : undefined
    if (slot !== undefined) dropValues(sql, field, slot)
  }
  writeMeta(sql, KEY, undefined)
}
