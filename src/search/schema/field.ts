/** Reads the definition of one field. Checks come in Typesense's order and words. */
import { ApiError } from '../../errors'
import { stemmedLocales, stemmerOf } from '../text/stemmers'
import { DEFAULT_LENGTH } from '../text/written'
import { type EmbedConfig, FIELD_TYPES, type Field, type FieldType, VECTOR_DISTANCES } from '../types'
import { requireClear } from './embedding-secrets'
import { REFUSED_OF_EMBEDDINGS, requireOptions } from './options'
import { isObject } from './values'

type Json = Record<string, unknown>

const TYPES = new Set<string>(FIELD_TYPES)

const isPositiveInteger = (value: unknown): boolean => Number.isInteger(value) && (value as number) > 0

const isScalarNumberOrBool = (type: string): boolean => /^(int32|int64|float|bool)$/.test(type)

const isGeo = (type: string): boolean => type === 'geopoint' || type === 'geopoint[]' || type === 'geopolygon'

/** The catch-all: every field that no other definition names. */
export const isFallback = (field: Field): boolean => field.name === '.*'

/**
 * Whether a definition stands for future fields: a pattern, or a field whose type is decided by the first document.
 */
export const isDynamic = (field: Field): boolean =>
  field.name.includes('.*') || field.type === 'auto' || field.type === 'string*'

/** The collection and the field that a reference field names. */
export function referenceOf({ reference = '' }: Field): { collection: string; field: string } {
  const dot = reference.indexOf('.')
  return { collection: reference.slice(0, dot), field: reference.slice(dot + 1) }
}

function refuse(message: string): never {
  throw new ApiError(400, message)
}

function boolean(raw: Json, property: string, name: string, fallback: boolean): boolean {
  const value = raw[property] ?? fallback
  if (typeof value !== 'boolean')
    refuse(`The \`${property}\` property of the field \`${name}\` should be a boolean.`)
  return value
}

/**
 * Reads a field's definition and fills in the defaults. `num_dim` of an embedding field stays undefined unless the
 * definition has it. `checkEmbedSources` checks its sources later, when all fields are known.
 * @throws ApiError 400
 */
export function parseField(raw: unknown, nestedFields: boolean): Field {
  if (!isObject(raw) || typeof raw.name !== 'string' || typeof raw.type !== 'string') {
    refuse(
      'Wrong format for `fields`. It should be an array of objects containing `name`, `type`, `optional` and `facet` properties.',
    )
  }
  const { name, type } = raw
  if (name === '') refuse('Field name cannot be empty.')
  // A plain object cannot keep `__proto__` as a key of its own, and documents are plain objects.
  if (name === '__proto__') refuse('Field name cannot be `__proto__`.')
  const dynamic = name === '.*' || name.includes('.*') || type === 'auto' || type === 'string*'

  const store = boolean(raw, 'store', name, true)
  if ('drop' in raw) {
    refuse(`Invalid property \`drop\` on field \`${name}\`: it is allowed only during schema update.`)
  }
  const facet = boolean(raw, 'facet', name, false)
  const optional = boolean(raw, 'optional', name, dynamic)
  const index = boolean(raw, 'index', name, true)
  const sort = boolean(raw, 'sort', name, isScalarNumberOrBool(type) || isGeo(type))
  const infix = boolean(raw, 'infix', name, false)
  const locale = raw.locale ?? ''
  if (typeof locale !== 'string')
    refuse(`The \`locale\` property of the field \`${name}\` should be a string.`)
  if (locale !== '' && locale.length !== 2 && locale !== 'de_en') {
    refuse(`The \`locale\` value of the field \`${name}\` is not valid.`)
  }
  if (raw.reference !== undefined && typeof raw.reference !== 'string')
    refuse('Reference should be a string.')
  const asyncReference = boolean(raw, 'async_reference', name, false)
  if (asyncReference && !raw.reference) {
    refuse(
      `The \`async_reference\` property of the field \`${name}\` is only applicable if \`reference\` is specified.`,
    )
  }
  const cascades = boolean(raw, 'cascade_delete', name, true)
  if (!cascades && !asyncReference) {
    refuse(
      `The \`cascade_delete\` property of the field \`${name}\` can be \`false\` only if \`async_reference\` is \`true\`.`,
    )
  }
  const stem = boolean(raw, 'stem', name, false)
  if (stem && type !== 'string' && type !== 'string[]') {
    refuse('The `stem` property is only allowed for string and string[] fields.')
  }
  const { stem_dictionary: dictionary = '' } = raw
  if (typeof dictionary !== 'string') {
    refuse(`The \`stem_dictionary\` property of the field \`${name}\` should be a string.`)
  }
  if (dictionary !== '' && type !== 'string' && type !== 'string[]') {
    refuse('The `stem_dictionary` property is only allowed for string and string[] fields.')
  }
  if (stem && dictionary === '' && stemmerOf(locale) === undefined) {
    refuse(
      `The \`locale\` value of the field \`${name}\` is not supported for stemming. Set it to one of ${stemmedLocales().join(', ')}.`,
    )
  }
  const rangeIndex = boolean(raw, 'range_index', name, false)
  if (rangeIndex && !/^(int32|int64|float)(\[\])?$/.test(type)) {
    refuse('The `range_index` property is only allowed for the numerical fields`')
  }

  if (name === '.*') {
    if (!optional) refuse('Field `.*` must be an optional field.')
    if (facet) refuse('Field `.*` cannot be a facet field.')
    if (!index) refuse('Field `.*` must be an index field.')
    if (raw.reference) refuse('Field `.*` cannot be a reference field.')
    if (!TYPES.has(type)) refuse('The `type` of field `.*` is invalid.')
  }
  if (!sort && isGeo(type)) {
    refuse(
      `The \`sort\` property of the field \`${name}\` having \`${type}\` type cannot be \`false\`. The sort index is used during GeoSearch.`,
    )
  }
  if ((type === 'object' || type === 'object[]') && !nestedFields) {
    refuse(
      'Type `object` or `object[]` can be used only when nested fields are enabled by setting` enable_nested_fields` to true.',
    )
  }

  const field: Field = {
    name,
    type: type as FieldType,
    facet,
    optional,
    index,
    sort,
    infix,
    locale,
    stem,
    store,
    stem_dictionary: dictionary,
  }
  Object.assign(field, characters(raw, 'token_separators'), characters(raw, 'symbols_to_index'))
  if (raw.truncate_len !== undefined) {
    if (!isPositiveInteger(raw.truncate_len)) {
      refuse(`The \`truncate_len\` property of the field \`${name}\` should be a positive integer.`)
    }
    // The default is not stored, so that fields with and without it are alike.
    if (raw.truncate_len !== DEFAULT_LENGTH) field.truncate_len = raw.truncate_len as number
  }
  if (rangeIndex) field.range_index = true
  if (typeof raw.reference === 'string' && raw.reference !== '') {
    checkReference(field, raw.reference)
    Object.assign(field, { reference: raw.reference, async_reference: asyncReference })
    if (!cascades) field.cascade_delete = false
  }

  const embed = parseEmbed(raw.embed, name, type)
  if (embed !== undefined) field.embed = embed
  parseVector(raw, field)
  if (
    type === 'object' ||
    type === 'object[]' ||
    (nestedFields && !name.includes('.*') && name.includes('.'))
  ) {
    field.nested = true
  }
  return field
}

function checkReference({ name, type, index, store }: Field, reference: string): void {
  if (name.includes('.*')) refuse('Wildcard field cannot have a reference.')
  if (!/^[^.]+\../.test(reference)) refuse(`Invalid reference \`${reference}\`.`)
  if (name.split('.').length > 2) {
    refuse(`\`${name}\` field cannot have a reference. Only the top-level field of an object is allowed.`)
  }
  if (!/^(string|int32|int64)(\[\])?$/.test(type)) {
    refuse(
      `Field \`${name}\` of type \`${type}\` cannot have a reference: it takes strings and whole numbers.`,
    )
  }
  if (!index || !store) refuse(`Field \`${name}\` has a reference, so it has to be indexed and stored.`)
}

/** A list of single characters, as an option of a field. An empty list is the same as none. */
function characters(raw: Json, option: 'token_separators' | 'symbols_to_index'): Partial<Field> {
  const value = raw[option] ?? []
  if (!Array.isArray(value) || !value.every((one) => typeof one === 'string' && one.length === 1)) {
    refuse(`The \`${option}\` must be an array of characters.`)
  }
  return value.length === 0 ? {} : { [option]: value }
}

function parseEmbed(raw: unknown, name: string, type: string): EmbedConfig | undefined {
  if (raw === undefined || raw === null || (isObject(raw) && Object.keys(raw).length === 0)) return undefined
  if (type !== 'float[]') refuse('Fields with the `embed` parameter can only be of type `float[]`.')
  if (!isObject(raw)) refuse('Property `embed` must be an object.')
  if (!('from' in raw)) refuse('Property `embed` must contain a `from` property.')
  if (!Array.isArray(raw.from)) refuse('Property `embed.from` must be an array.')
  if (raw.from.length === 0) refuse('Property `embed.from` must have at least one element.')
  const config = raw.model_config
  if (!isObject(config)) refuse('Property `embed.model_config` not found.')
  if (!('model_name' in config)) refuse('Property `embed.model_config.model_name`not found')
  if (typeof config.model_name !== 'string')
    refuse('Property `embed.model_config.model_name` must be a string.')
  if (config.model_name === '') refuse('Property `embed.model_config.model_name` cannot be empty.')
  for (const prefix of ['indexing_prefix', 'query_prefix']) {
    if (prefix in config && typeof config[prefix] !== 'string') {
      refuse(`Property \`embed.model_config.${prefix}\` must be a string.`)
    }
  }
  const where = ` of the field \`${name}\``
  requireOptions(REFUSED_OF_EMBEDDINGS, raw, where)
  requireOptions(REFUSED_OF_EMBEDDINGS, config, where)
  requireClear(config)
  if (!raw.from.every((source) => typeof source === 'string')) {
    refuse('Property `embed.from` must contain only field names as strings.')
  }
  const { served_by: _, ...embed } = raw
  return { ...embed, from: raw.from, model_config: { ...config, model_name: config.model_name } }
}

function parseVector(raw: Json, field: Field): void {
  if (raw.num_dim !== undefined && raw.num_dim !== 0) {
    if (!isPositiveInteger(raw.num_dim)) refuse('Property `num_dim` must be a positive integer.')
    if (field.type !== 'float[]') refuse('Property `num_dim` is only allowed on a float array field.')
    if (field.facet) refuse('Property `facet` is not allowed on a vector field.')
    if (field.sort) refuse('Property `sort` cannot be enabled on a vector field.')
    field.num_dim = raw.num_dim as number
  }
  if (field.num_dim === undefined && field.embed === undefined) return
  if (field.num_dim !== undefined && field.embed !== undefined) field.asks_dimensions = true

  const distance = raw.vec_dist ?? 'cosine'
  if (typeof distance !== 'string') refuse('Property `vec_dist` must be a string.')
  field.vec_dist =
    VECTOR_DISTANCES.find((known) => known === distance) ?? refuse('Property `vec_dist` is invalid.')

  const params = raw.hnsw_params ?? {}
  if (!isObject(params)) refuse('Property `hnsw_params` must be an object.')
  for (const name of ['ef_construction', 'M']) {
    if (name in params && !isPositiveInteger(params[name])) {
      refuse(`Property \`hnsw_params.${name}\` must be a positive integer.`)
    }
  }
  field.hnsw_params = { M: params.M ?? 16, ef_construction: params.ef_construction ?? 200 }
}

/**
 * Checks `embed.from`, which needs the whole schema.
 * @param known the fields that may be sources
 * @throws ApiError 400
 */
export function checkEmbedSources(field: Field, known: Field[]): void {
  for (const source of field.embed?.from ?? []) {
    const type = known.find(({ name }) => name === source)?.type
    if (type !== 'string' && type !== 'string[]') {
      refuse(
        'Property `embed.from` can only refer to string, string array or image (for supported models) fields.',
      )
    }
  }
}

/**
 * Checks that Typesense makes after it has read all definitions.
 * @throws ApiError 400
 */
export function checkFields(fields: Field[], defaultSortingField: string): void {
  for (const field of fields) {
    if (!TYPES.has(field.type)) {
      refuse(
        `Field \`${field.name}\` has an invalid data type \`${field.type}\`, see docs for supported data types.`,
      )
    }
    if (field.name === defaultSortingField) checkDefaultSortingField(field)
    if (isDynamic(field) && !field.nested && !field.optional) {
      refuse(`Field \`${field.name}\` must be an optional field.`)
    }
    if (!field.index && field.facet) {
      refuse(`Field \`${field.name}\` cannot be a facet since it's marked as non-indexable.`)
    }
    const sortable =
      isScalarNumberOrBool(field.type) || isGeo(field.type) || field.type === 'string' || isDynamic(field)
    if (field.sort && !sortable) refuse(`Field \`${field.name}\` cannot be a sortable field.`)
  }
  if (defaultSortingField !== '' && !fields.some(({ name }) => name === defaultSortingField)) {
    refuse(`Default sorting field is defined as \`${defaultSortingField}\` but is not found in the schema.`)
  }
  if (new Set(fields.map(({ name }) => name)).size < fields.length) {
    refuse('There are duplicate field names in the schema.')
  }
}

function checkDefaultSortingField(field: Field): void {
  const isSortable = isScalarNumberOrBool(field.type)
  const sortableString = field.type === 'string' && field.sort
  if (!isSortable && !sortableString && !isGeo(field.type)) {
    refuse(`Default sorting field \`${field.name}\` is not a sortable type.`)
  }
  if (field.optional) refuse(`Default sorting field \`${field.name}\` cannot be an optional field.`)
  if (isGeo(field.type)) refuse('Default sorting field cannot be of type geopoint.')
}
