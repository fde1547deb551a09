/** How each field of a document is indexed, computed once for each version of a schema. */

import { readMeta, writeMeta } from '../meta'
import type { Field, FieldType } from '../types'
import { isDynamic } from './field'
import {
  columnsTable,
  type FieldSlot,
  hasValues,
  isArray,
  isReference,
  isSearchable,
  isVector,
  type StoredSchema,
  storedSchema,
} from './layout'
import { partsOf } from './values'

/** The type of a field's values, one by one. */
export type Kind = 'vector' | Single<Exclude<FieldType, 'auto' | 'string*'>>
type Single<Type> = Type extends `${infer Value}[]` ? Value : Type

export type FieldPlan = ReturnType<typeof planField>

/** One `columns` table with the fields that have their scalars in it. */
type ColumnsPlan = { table: string; fields: FieldPlan[] }

const isKeyed = ({ linked }: StoredSchema, name: string): boolean =>
  linked !== undefined && Object.hasOwn(linked.keyed, name)

function planField(field: Field, schema: StoredSchema) {
  return {
    field,
    name: field.name,
    kind: isVector(field) ? 'vector' : (field.type.replace(/\[\]$/, '') as Kind),
    /** a list of values; a vector is not one */
    array: isArray(field),
    /** parts of a dotted name, in a collection with nested fields */
    path: schema.enable_nested_fields ? partsOf(field.name) : undefined,
    slot: Object.hasOwn(schema.slots, field.name) ? schema.slots[field.name] : undefined,
    /** false while the join keys of older documents are missing */
    keysComplete: isReference(field) || (isKeyed(schema, field.name) && schema.linked!.keyed[field.name]!),
  }
}

export type Plan = ReturnType<typeof planOf>

/** @param former fields whose typed values are written as well (schema.ts) */
export function planOf(schema: StoredSchema, former?: Pick<StoredSchema, 'fields' | 'slots'>) {
  const dynamic = schema.fields.filter(isDynamic)
  const fields = schema.fields.filter((field) => !isDynamic(field)).map((field) => planField(field, schema))
  const before = former?.fields.map((field) => planField(field, { ...schema, slots: former.slots })) ?? []
  const valued = [...fields, ...before].filter(({ field, slot }) => slot !== undefined && hasValues(field))
  const columns = new Map<string, ColumnsPlan>()
  for (const plan of valued) {
    if (plan.array) continue
    const table = columnsTable(plan.slot as FieldSlot)
    const columnsPlan = columns.get(table) ?? { table, fields: [] }
    columnsPlan.fields.push(plan)
    columns.set(table, columnsPlan)
  }
  const vectors = fields.filter(({ kind }) => kind === 'vector')
  const embedded = vectors.filter(({ field }) => field.embed !== undefined)
  const replacing = Object.values(schema.replacing ?? {}).map(({ field, slot }) => ({
    ...planField(field, schema),
    slot,
  }))
  return {
    /** fields that exist; patterns are in `dynamic` */
    fields,
    /** patterns, `.*`, and fields whose type is not known yet */
    dynamic,
    /** the default of dirty_values is to coerce */
    coerces: dynamic.length > 0 || schema.fields.some((field) => field.detected === true),
    text: fields.filter(({ field, slot }) => slot?.text !== undefined && isSearchable(field)),
    columns: [...columns.values()],
    /** fields with a values table */
    lists: valued.filter(({ array }) => array),
    vectors,
    embedded,
    /** the future definitions of embedding fields that are being replaced */
    replacing,
    /** names of the fields that embeddings are made from */
    sources: new Set([...embedded, ...replacing].flatMap(({ field }) => field.embed?.from ?? [])),
    /** fields that are indexed but not stored */
    unstored: fields.filter(({ field, kind }) => !field.store && kind !== 'vector'),
    objects: fields.filter(({ kind }) => kind === 'object'),
    /** fields whose values are join keys (documents/join-keys.ts) */
    keyed: fields.filter(({ field, name }) => isReference(field) || isKeyed(schema, name)),
    references: fields.filter(({ field }) => isReference(field)),
  }
}

// =============================================================================
// A collection's schema as `meta` holds it.

export const readSchema = (sql: SqlStorage): StoredSchema | undefined =>
  readMeta(sql, 'schema', storedSchema())

export const writeSchema = (sql: SqlStorage, schema: StoredSchema): void => writeMeta(sql, 'schema', schema)
