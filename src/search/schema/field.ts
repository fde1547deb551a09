/** Reads the definition of one field. Checks come in Typesense's order and words. */

import { ApiError } from '../../errors'
import { insteadOf, passes, type Refused, refuse, refused } from '../refused'
import { DEFAULT_LENGTH, stemmedLocales, stemmerOf } from '../text/analyzer'
import { type EmbedConfig, FIELD_TYPES, type Field, type FieldType, VECTOR_DISTANCES } from '../types'
import { requireClear } from './embedding-secrets'
import { isObject } from './values'

type Json = Record<string, unknown>

const TYPES = new Set<string>(FIELD_TYPES)

const isPositiveInteger = (value: unknown): value is number => Number.isInteger(value) && Number(value) > 0

const isScalarNumberOrBool = (type: string): boolean => /^(int32|int64|float|bool)$/.test(type)

const isObjectType = (type: string): boolean => type === 'object' || type === 'object[]'

const isGeo = (type: string): boolean => type === 'geopoint' || type === 'geopoint[]' || type === 'geopolygon'

/** The catch-all: every field that no other definition names. */
export const isFallback = (field: Field): boolean => field.name === '.*'

/**
 * Whether a definition stands for future fields: a pattern, or a field whose type is decided by the first document.
 */
export const isDynamic = (field: Pick<Field, 'name' | 'type'>): boolean =>
  field.name.includes('.*') || field.type === 'auto' || field.type === 'string*'

/** The collection and the field that a reference field names. */
export function referenceOf({ reference = '' }: Field): { collection: string; field: string } {
  const dot = reference.indexOf('.')
  return { collection: reference.slice(0, dot), field: reference.slice(dot + 1) }
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
  const name = raw.name
  const type = raw.type as FieldType
  if (name === '') refuse('Field name cannot be empty.')
  // A plain object cannot keep `__proto__` as a key of its own, and documents are plain objects.
  if (name === '__proto__') refuse('Field name cannot be `__proto__`.')
  const flag = (property: string, fallback = false) => boolean(raw, property, name, fallback)
  const store = flag('store', true)
  if ('drop' in raw) {
    refuse(`Invalid property \`drop\` on field \`${name}\`: it is allowed only during schema update.`)
  }
  const base = {
    name,
    type,
    facet: flag('facet'),
    optional: flag('optional', isDynamic({ name, type })),
    index: flag('index', true),
    sort: flag('sort', isScalarNumberOrBool(type) || isGeo(type)),
    infix: flag('infix'),
    locale: parseLocale(raw, name),
  }
  const reference = parseReference(raw, name)
  const { stem, dictionary } = parseStemming(raw, base)
  const rangeIndex = flag('range_index')
  if (rangeIndex && !/^(int32|int64|float)(\[\])?$/.test(type)) {
    refuse('The `range_index` property is only allowed for the numerical fields`')
  }
  const field: Field = { ...base, stem, store, stem_dictionary: dictionary }
  if (isFallback(field)) checkFallback(field, reference)
  checkType(field, nestedFields)
  Object.assign(field, characters(raw, 'token_separators'), characters(raw, 'symbols_to_index'))
  Object.assign(field, parseLength(raw, name), rangeIndex && { range_index: true })
  if (reference.reference) checkReference(field, reference.reference)
  Object.assign(field, reference)
  const embed = parseEmbed(raw.embed, name, type)
  if (embed !== undefined) field.embed = embed
  parseVector(raw, field)
  const isInside = nestedFields && !name.includes('.*') && name.includes('.')
  if (isObjectType(type) || isInside) field.nested = true
  return field
}

function parseLocale(raw: Json, name: string): string {
  const locale = raw.locale ?? ''
  if (typeof locale !== 'string')
    refuse(`The \`locale\` property of the field \`${name}\` should be a string.`)
  if (locale !== '' && locale.length !== 2 && locale !== 'de_en') {
    refuse(`The \`locale\` value of the field \`${name}\` is not valid.`)
  }
  return locale
}

/** @returns nothing for a field that refers to none */
function parseReference(
  raw: Json,
  name: string,
): Pick<Field, 'reference' | 'async_reference' | 'cascade_delete'> {
  const { reference = '' } = raw
  if (typeof reference !== 'string') refuse('Reference should be a string.')
  const asyncReference = boolean(raw, 'async_reference', name, false)
  if (asyncReference && reference === '') {
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
  if (reference === '') return {}
  return { reference, async_reference: asyncReference, ...(!cascades && { cascade_delete: false }) }
}

function parseStemming(
  raw: Json,
  { name, type, locale }: Pick<Field, 'name' | 'type' | 'locale'>,
): { stem: boolean; dictionary: string } {
  const isText = type === 'string' || type === 'string[]'
  const stem = boolean(raw, 'stem', name, false)
  if (stem && !isText) refuse('The `stem` property is only allowed for string and string[] fields.')
  const { stem_dictionary: dictionary = '' } = raw
  if (typeof dictionary !== 'string') {
    refuse(`The \`stem_dictionary\` property of the field \`${name}\` should be a string.`)
  }
  if (dictionary !== '' && !isText) {
    refuse('The `stem_dictionary` property is only allowed for string and string[] fields.')
  }
  if (stem && dictionary === '' && stemmerOf(locale) === undefined) {
    refuse(
      `The \`locale\` value of the field \`${name}\` is not supported for stemming. Set it to one of ${stemmedLocales().join(', ')}.`,
    )
  }
  return { stem, dictionary }
}

function checkFallback(
  { optional, facet, index, type }: Field,
  { reference }: Pick<Field, 'reference'>,
): void {
  if (!optional) refuse('Field `.*` must be an optional field.')
  if (facet) refuse('Field `.*` cannot be a facet field.')
  if (!index) refuse('Field `.*` must be an index field.')
  if (reference) refuse('Field `.*` cannot be a reference field.')
  if (!TYPES.has(type)) refuse('The `type` of field `.*` is invalid.')
}

function checkType({ name, type, sort }: Field, nestedFields: boolean): void {
  if (!sort && isGeo(type)) {
    refuse(
      `The \`sort\` property of the field \`${name}\` having \`${type}\` type cannot be \`false\`. The sort index is used during GeoSearch.`,
    )
  }
  if (isObjectType(type) && !nestedFields) {
    refuse(
      'Type `object` or `object[]` can be used only when nested fields are enabled by setting` enable_nested_fields` to true.',
    )
  }
}

/** @returns nothing for the default, so that fields with and without it are alike */
function parseLength({ truncate_len: length }: Json, name: string): Pick<Field, 'truncate_len'> {
  if (length === undefined || length === DEFAULT_LENGTH) return {}
  if (!isPositiveInteger(length)) {
    refuse(`The \`truncate_len\` property of the field \`${name}\` should be a positive integer.`)
  }
  return { truncate_len: length }
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
    field.num_dim = raw.num_dim
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

// =============================================================================
// Typesense's options of fields and collections that would change results and that Parley does not have.

type Refusals = Readonly<Record<string, Refused>>

const PERSONAL = refused('Parley does not personalize searches.', '')

/** Of `embed` and its `model_config`. */
export const REFUSED_OF_EMBEDDINGS: Refusals = {
  mapping: PERSONAL,
  personalization_type: PERSONAL,
}

export const REFUSED_OF_COLLECTIONS: Refusals = {
  voice_query_model: refused('Parley does not transcribe speech.', ''),
}

/**
 * Refuses options by name.
 * @param what names the owner: "of the field `x`"
 * @throws ApiError 400
 */
export function requireOptions(
  refusals: Refusals,
  given: Readonly<Record<string, unknown>>,
  what: string,
): void {
  for (const [name, refusal] of Object.entries(refusals)) {
    const value = given[name]
    if (value === undefined || value === null || passes(refusal, asText(value))) continue
    throw new ApiError(400, `The option \`${name}\`${what} is not supported. ${insteadOf(refusal)}`)
  }
}

/** Empty lists and objects ask for nothing, like an empty text. */
const asText = (value: unknown): string =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0 ? '' : String(value)
