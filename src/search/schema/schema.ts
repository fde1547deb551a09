/** Reads a collection's schema from the request that creates it, and describes it for GET. */

import * as v from 'valibot'
import { once } from '../../lib/once'
import { readMeta, writeMeta } from '../meta'
import { refuse } from '../refused'
import { STEMS, WORDS } from '../text/analyzer'
import { type CollectionSchema, type CollectionSummary, type Field, fieldShape } from '../types'
import { maskConfig } from './embedding-secrets'
import {
  checkEmbedSources,
  checkFields,
  isDynamic,
  parseField,
  REFUSED_OF_COLLECTIONS,
  referenceOf,
  requireOptions,
} from './field'
import { isReference, isSearchable, isVector, type StoredSchema, slotShape } from './layout'
import { createTextIndexes, dropStemWords, dropValues, NEXT, OWN_TEXT_COLUMNS } from './tables'
import { isObject } from './values'

/** @throws ApiError 400 in the words of POST /collections */
export function parseName(body: unknown): string {
  if (!isObject(body)) refuse('Bad JSON.')
  if (!('name' in body)) refuse('Parameter `name` is required.')
  if (typeof body.name !== 'string' || body.name === '')
    refuse('Parameter `name` must be a non-empty string.')
  return body.name
}

function names(value: unknown, property: string, what: string): string[] {
  if (!Array.isArray(value)) refuse(`\`${property}\` should be an array of ${what} sets.`)
  if (!value.every((name) => typeof name === 'string' && name !== '')) {
    refuse(`\`${property}\` should be an array of non-empty strings.`)
  }
  return value
}

/**
 * Reads the body of POST /collections. Makes every check that needs no call, in Typesense's order and words.
 * Dimensions of embedding fields are determined later (vectors/embedders.ts).
 * @throws ApiError 400
 */
export function parseSchema(body: unknown): CollectionSchema {
  const name = parseName(body)
  const raw = body as Record<string, unknown>
  if (!('fields' in raw)) refuse('Parameter `fields` is required.')
  const defaultSortingField = raw.default_sorting_field ?? ''
  if (typeof defaultSortingField !== 'string') {
    refuse('`default_sorting_field` should be a string. It should be the name of an int32/float field.')
  }
  const symbols = raw.symbols_to_index ?? []
  if (!Array.isArray(symbols)) refuse('`symbols_to_index` should be an array of character symbols.')
  const separators = raw.token_separators ?? []
  if (!Array.isArray(separators)) refuse('`token_separators` should be an array of character symbols.')
  const nested = raw.enable_nested_fields ?? false
  if (typeof nested !== 'boolean') refuse('`enable_nested_fields` should be a boolean.')
  const synonymSets = names(raw.synonym_sets ?? [], 'synonym_sets', 'synonym')
  const curationSets = names(raw.curation_sets ?? [], 'curation_sets', 'curation')
  const isSymbol = (symbol: unknown): boolean => typeof symbol === 'string' && symbol.length === 1
  if (!symbols.every(isSymbol)) refuse('`symbols_to_index` should be an array of character symbols.')
  if (!separators.every(isSymbol)) refuse('`token_separators` should be an array of character symbols.')
  if (!Array.isArray(raw.fields) || raw.fields.length === 0) {
    refuse(
      'The `fields` value should be an array of objects containing `name`, `type` and optionally, `facet` properties.',
    )
  }
  const metadata = raw.metadata ?? {}
  if (!isObject(metadata)) refuse('The `metadata` value should be an object.')
  if (defaultSortingField === 'id') refuse('Invalid `default_sorting_field` value: cannot be `id`.')

  requireOptions(REFUSED_OF_COLLECTIONS, raw, '')
  const fields = parseFields(raw.fields, nested)
  checkFields(fields, defaultSortingField)
  checkReferences(name, fields)
  return {
    name,
    fields,
    default_sorting_field: defaultSortingField,
    enable_nested_fields: nested,
    token_separators: separators,
    symbols_to_index: symbols,
    synonym_sets: synonymSets,
    curation_sets: curationSets,
    metadata,
  }
}

/** @throws ApiError 400 for a reference to the collection itself */
export function checkReferences(collection: string, fields: Field[]): void {
  for (const field of fields) {
    const { name } = field
    if (!isReference(field) || referenceOf(field).collection !== collection) continue
    refuse(
      `Referencing a field of the same collection is not allowed: \`${name}\` field references \`${collection}\` collection.`,
    )
  }
}

/** Reads the definitions of fields. One named `id` is ignored: every document has an id anyway. */
function parseFields(raw: unknown[], nested: boolean): Field[] {
  const fields = raw
    .filter((field) => !isObject(field) || field.name !== 'id')
    .map((field) => parseField(field, nested))
  for (const field of fields) checkEmbedSources(field, fields)
  if (fields.filter(({ name }) => name === '.*').length > 1) {
    refuse('There can be only one field named `.*`.')
  }
  return fields
}

/** A field with its embedder's credentials masked. */
export function maskField<T>(field: T): T {
  if (!isObject(field) || !isObject(field.embed) || !isObject(field.embed.model_config)) return field
  return { ...field, embed: { ...field.embed, model_config: maskConfig(field.embed.model_config) } }
}

function describeField(field: Field, length: number | undefined): Record<string, unknown> {
  const { name, type, facet, optional, index, sort, infix, locale, stem, store, stem_dictionary } = field
  const described: Record<string, unknown> = { name, type, facet, optional, index, sort, infix, locale }
  Object.assign(described, { stem, store, stem_dictionary })
  const longest = field.truncate_len ?? length
  if (longest !== undefined) described.truncate_len = longest
  if (field.range_index === true) described.range_index = true
  for (const option of ['token_separators', 'symbols_to_index'] as const) {
    if (field[option] !== undefined) described[option] = field[option]
  }
  if (field.num_dim !== undefined) {
    Object.assign(described, {
      num_dim: field.num_dim,
      vec_dist: field.vec_dist,
      hnsw_params: field.hnsw_params,
    })
  }
  if (field.embed !== undefined) described.embed = maskField(field).embed
  if (field.reference !== undefined) described.reference = field.reference
  if (field.async_reference !== undefined) described.async_reference = field.async_reference
  if (field.cascade_delete !== undefined) described.cascade_delete = field.cascade_delete
  return described
}

/**
 * GET /collections/:name.
 * @param createdAt unix seconds
 * @param length characters that words are cut to where the field does not say; undefined: the engine's own affair
 */
export function summarize(
  schema: CollectionSchema,
  count: number,
  createdAt: number,
  length?: number,
): CollectionSummary {
  const summary: CollectionSummary = {
    name: schema.name,
    num_documents: count,
    created_at: createdAt,
    enable_nested_fields: schema.enable_nested_fields,
    default_sorting_field: schema.default_sorting_field,
    token_separators: schema.token_separators,
    symbols_to_index: schema.symbols_to_index,
    synonym_sets: schema.synonym_sets ?? [],
    curation_sets: schema.curation_sets ?? [],
    fields: schema.fields.map((field) => describeField(field, length)),
  }
  const { metadata } = schema
  if (metadata !== undefined && Object.keys(metadata).length > 0) summary.metadata = metadata
  return summary
}

/** The field of this name. Patterns and fields whose type is not known yet do not count. */
export const findField = (schema: StoredSchema, name: string): Field | undefined =>
  schema.fields.find((field) => field.name === name && !isDynamic(field))

// =============================================================================
// Fields that were dropped and added again with other options, as they were before (row `former` of `meta`). Searches read them
// until a job has filled the indexes of their successors, and then one transaction changes all of them. Writes reach both.
//
// A former field keeps its slot, so its values stand beside the new ones. FTS5 tables have fixed columns and cannot lose one: if
// a text is among the fields, the full-text indexes are filled anew in `text_next` and `word_next`, which then take the names of
// the old ones. The schema itself is already the new one, with the fields in `filling`: a version that knows nothing of this
// begins the job from the start and refuses searches until it is done.

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
