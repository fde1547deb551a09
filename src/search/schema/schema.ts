/** Reads a collection's schema from the request that creates it, and describes it for GET. */
import { ApiError } from '../../errors'
import type { CollectionSchema, CollectionSummary, Field } from '../types'
import { maskConfig } from './embedding-secrets'
import { checkEmbedSources, checkFields, parseField, referenceOf } from './field'
import { isReference } from './layout'
import { REFUSED_OF_COLLECTIONS, requireOptions } from './options'
import { isObject } from './values'

function refuse(message: string): never {
  throw new ApiError(400, message)
}

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
