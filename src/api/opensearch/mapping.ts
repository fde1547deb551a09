/** Mappings: converts OpenSearch's field types to a collection's schema, and a schema to a mapping. */

import {
  type ClusterSettings,
  changeSettings,
  type FindResource,
  HISTORY,
  readSettings,
  TRUSTED,
} from '../../registry/resources'
import { isDynamic } from '../../search/schema/field'
import { isString, isVector } from '../../search/schema/layout'
import type { CollectionSchema, Field, VectorDistance } from '../../search/types'
import type { Call } from '../http/router'
import { illegalArgument, incomplete, OpenSearchError, requireKeys, unsupported } from './errors'
import { isObject, isOn, type Json, listed, onlyEntry, own, readObject } from './route'
import { shownName, storedName } from './source'

/** What an index was created with but a schema cannot hold. It is stored in the collection's `metadata`. */
export interface Kept {
  settings: Record<string, string>
  dynamic: boolean
  properties: Json
  /** `dynamic_templates` */
  templates?: Json[] | undefined
}

const METADATA = 'opensearch'

/** @param schema of any collection; one created by another API has nothing kept */
export function keptOf({ metadata }: Pick<CollectionSchema, 'metadata'>): Kept {
  const kept = (isObject(metadata?.[METADATA]) ? metadata[METADATA] : {}) as Partial<Kept>
  const { settings = {}, dynamic = false, properties = {}, templates } = kept
  return { settings, dynamic, properties, templates }
}

export const metadataOf = (kept: Kept, others: Json = {}): Json => ({ ...others, [METADATA]: kept })

/** Accepts every field that a document brings. It is a pattern, because the catch-all `.*` cannot be a facet. */
export const DYNAMIC_FIELD = {
  name: '.*.*',
  type: 'auto',
  facet: true,
  sort: true,
  optional: true,
} as const

const VALUES = { facet: true, sort: true }

/** A field that holds whole values. */
const counted = (type: string) => ({ type, facet: true })

/** The field of a property, by its type. In a text the first document decides between one value and several. */
const FIELDS: Record<string, Json> = {
  long: counted('int64'),
  integer: counted('int32'),
  short: counted('int32'),
  byte: counted('int32'),
  double: counted('float'),
  float: counted('float'),
  half_float: counted('float'),
  boolean: counted('bool'),
  text: { type: 'string*', facet: false, sort: false },
  keyword: { type: 'string*', ...VALUES },
  date: { type: 'string*', ...VALUES },
  flat_object: { type: 'object', index: false },
  knn_vector: { type: 'float[]' },
}

/** How vectors are measured, by the name of the space. */
export const DISTANCES: Record<string, VectorDistance> = {
  l2: 'l2',
  cosinesimil: 'cosine',
  innerproduct: 'ip',
}
const SPACES = Object.fromEntries(Object.entries(DISTANCES).map(([space, distance]) => [distance, space]))

/** Options of a property that tell OpenSearch how to store it, or cut it into words. They are kept and change no result here. */
const KEPT_OPTIONS = `
  analyzer search_analyzer fielddata doc_values store norms index_options similarity term_vector
  eager_global_ordinals type fields ignore_above format properties dimension method space_type
  index
`

/**
 * Checks a mapping, and makes its fields.
 * @param space how vectors are measured that do not say it: the index's `knn.space_type`
 * @throws ApiError 400 that names what cannot be mapped
 */
export function parseMapping(mappings: unknown = {}, space = 'l2') {
  if (!isObject(mappings)) throw mapperError('Expected map for property [mappings]')
  requireKeys(mappings, 'properties dynamic dynamic_templates', (key) =>
    mapperError(`Root mapping definition has unsupported parameters: [${key}]`),
  )
  const properties = mappings.properties ?? {}
  if (!isObject(properties)) throw mapperError('Expected map for property [properties]')
  const { dynamic } = mappings
  if (dynamic !== undefined && !['true', 'false'].includes(String(dynamic))) {
    throw unsupported(`[dynamic: ${String(dynamic)}]`)
  }
  return {
    fields: fieldsOf(properties, '', space),
    properties,
    dynamic: dynamic === undefined ? undefined : String(dynamic) === 'true',
    templates: parseTemplates(mappings.dynamic_templates),
  }
}

const mapperError = (message: string): OpenSearchError =>
  new OpenSearchError(400, 'mapper_parsing_exception', message)

function fieldsOf(properties: Json, prefix: string, space: string): Json[] {
  return Object.entries(properties).flatMap(([key, property]) => {
    const name = prefix + key
    if (!isObject(property)) throw mapperError(`Expected map for property [fields] on field [${name}]`)
    return fieldOf(name, property, space)
  })
}

/** The fields of one property. @throws ApiError 400 */
function fieldOf(name: string, property: Json, space: string): Json[] {
  const type = property.type ?? 'object'
  if (type === 'object' || type === 'nested') {
    for (const [option, value] of Object.entries(property)) {
      const isKept = ['type', 'properties', 'include_in_parent', 'include_in_root'].includes(option)
      const isOn = ['dynamic', 'enabled'].includes(option) && String(value) === 'true'
      if (!isKept && !isOn)
        throw unsupported(`[${option}: ${String(value)}] of the object [${name}]: leave it out, as it`)
    }
    // Children of arrays are arrays themselves, which only the documents show. The mapping is kept to be returned.
    const children = isObject(property.properties) ? property.properties : {}
    const fields = fieldsOf(children, `${name}.`, space)
    return type === 'object' ? fields : []
  }
  requireKeys(property, KEPT_OPTIONS, (option) =>
    mapperError(`unknown parameter [${option}] on mapper [${name}] of type [${String(type)}]`),
  )
  if (property.index !== undefined && property.index !== true) {
    throw unsupported(
      `[index: ${String(property.index)}] of [${name}]: a field is searched, or left out of the mapping; it`,
    )
  }
  // Dates given as numbers are stored as numbers, all others as text.
  const kind = type === 'date' && isEpoch(property) ? 'long' : type
  const field = own(FIELDS, String(kind))
  const keyed = hasKeyword(name, property.fields)
  if (keyed && field?.type !== 'string*')
    throw unsupported(`[fields] of [${name}], which is no text: map a field of its own, as it`)
  if (field === undefined)
    throw mapperError(`No handler for type [${String(type)}] declared on field [${name}]`)
  const more = kind === 'knn_vector' ? vectorOf(name, property, space) : keyed ? VALUES : {}
  return [{ name: storedName(name), optional: true, ...field, ...more }]
}

const isEpoch = ({ format }: Json): boolean =>
  typeof format === 'string' && format.split('||').every((each) => each.startsWith('epoch_'))

function hasKeyword(name: string, fields: unknown): boolean {
  if (fields === undefined) return false
  if (!isObject(fields)) throw mapperError(`expected map for property [fields] on field [${name}]`)
  for (const [key, property] of Object.entries(fields)) {
    if (key !== 'keyword' || !isObject(property) || property.type !== 'keyword') {
      throw unsupported(`The multi-field [${name}.${key}]: only one named [keyword] of type [keyword]`)
    }
    requireKeys(property, 'type ignore_above', (option) =>
      unsupported(`[${option}] of the multi-field [${name}.${key}]`),
    )
  }
  return true
}

function vectorOf(name: string, { dimension, method, space_type }: Json, usual: string): Json {
  if (!Number.isInteger(dimension) || (dimension as number) < 1) {
    throw mapperError(`Dimension value missing for vector: ${name}`)
  }
  const space = space_type ?? (isObject(method) ? method.space_type : undefined) ?? usual
  const distance = DISTANCES[String(space)]
  if (distance === undefined) {
    throw unsupported(
      `The space type [${String(space)}] of [${name}], which is none of ${Object.keys(DISTANCES).join(', ')},`,
    )
  }
  return { num_dim: dimension, vec_dist: distance }
}

/** The fields that a mapping adds to a schema. @throws ApiError 400 if it would change one */
export function addedFields(schema: CollectionSchema, fields: Json[]): Json[] {
  return fields.filter((added) => {
    const known = schema.fields.find(({ name }) => name === added.name)
    if (known === undefined) return true
    const isSame =
      added.type === 'string*'
        ? known.type.startsWith('string')
        : known.type.replace('[]', '') === String(added.type).replace('[]', '')
    const isVectorSame =
      added.num_dim === undefined ||
      (known.num_dim === added.num_dim && (known.vec_dist ?? 'cosine') === added.vec_dist)
    if (!isSame || !isVectorSame || known.facet !== (added.facet ?? false)) {
      throw illegalArgument(
        `mapper [${shownName(known.name)}] cannot be changed from type [${typeOf(known).type}] to the one given`,
      )
    }
    return false
  })
}

const TYPES: Record<string, string> = {
  int64: 'long',
  int32: 'integer',
  float: 'float',
  bool: 'boolean',
  geopoint: 'geo_point',
  object: 'object',
}

/** The property of a field that no mapping names. */
function typeOf(field: Field, keywords = false): Json & { type: string } {
  if (isVector(field)) {
    return { type: 'knn_vector', dimension: field.num_dim, space_type: SPACES[field.vec_dist ?? 'cosine'] }
  }
  const type = TYPES[field.type.replace('[]', '')]
  if (type !== undefined) return { type }
  if (keywords && field.facet) return { type: 'keyword' }
  return field.facet
    ? { type: 'text', fields: { keyword: { type: 'keyword', ignore_above: 256 } } }
    : { type: 'text' }
}

/** GET /:index/_mapping: the given mapping, and fields that documents brought. */
export function mappingOf(schema: CollectionSchema): Json {
  const kept = keptOf(schema)
  const keywords = areKeywords(kept.templates ?? [])
  const properties: Json = {}
  for (const field of schema.fields) {
    if (isDynamic(field) && !field.type.startsWith('string*')) continue
    if (field.name.includes('.*') || !field.index || field.type.startsWith('object')) continue
    place(properties, shownName(field.name).split('.'), typeOf(field, keywords))
  }
  merge(properties, kept.properties)
  const dynamic = {
    ...(Object.keys(kept.settings).length > 0 && !kept.dynamic && { dynamic: 'false' }),
    ...(kept.templates !== undefined && { dynamic_templates: kept.templates }),
  }
  return Object.keys(properties).length === 0 ? dynamic : { ...dynamic, properties }
}

function place(properties: Json, [name = '', ...rest]: string[], property: Json): void {
  if (name === '__proto__') return
  if (rest.length === 0) {
    properties[name] = { ...(isObject(properties[name]) ? properties[name] : {}), ...property }
    return
  }
  const parent = (isObject(properties[name]) ? properties[name] : {}) as Json
  parent.properties = isObject(parent.properties) ? parent.properties : {}
  properties[name] = parent
  place(parent.properties as Json, rest, property)
}

/** Replaces derived properties with those given. */
function merge(properties: Json, given: Json): void {
  for (const [name, property] of Object.entries(given)) {
    if (name === '__proto__') continue
    const derived = properties[name]
    if (isObject(derived) && isObject(derived.properties) && isObject(property)) {
      const own = isObject(property.properties) ? property.properties : {}
      const children = { ...derived.properties }
      merge(children, own)
      properties[name] = { ...property, properties: children }
    } else properties[name] = isObject(property) ? { ...spaceOf(derived, property), ...property } : property
  }
}

/** How a vector is measured, if not by what a property that does not say it means. */
function spaceOf(derived: unknown, { space_type, method }: Json): Json | undefined {
  const given = space_type ?? (isObject(method) ? method.space_type : undefined) ?? 'l2'
  const real = isObject(derived) ? (derived.space_type ?? given) : given
  return given === real ? undefined : { space_type: real }
}

/** Whether the index has strings that no property names, so that its templates say what they are. */
export const hasOwnStrings = (schema: CollectionSchema): boolean =>
  schema.fields.some(
    (field) =>
      !isDynamic(field) &&
      isString(field) &&
      propertyAt(keptOf(schema).properties, shownName(field.name)) === undefined,
  )

/** Finds the property of a dotted name in a given mapping. */
export function propertyAt(properties: Json, name: string): Json | undefined {
  const [head = '', ...rest] = name.split('.')
  const property = own(properties, head)
  if (!isObject(property)) return undefined
  if (rest.length === 0) return property
  return isObject(property.properties) ? propertyAt(property.properties, rest.join('.')) : undefined
}

// =============================================================================
// `dynamic_templates` of a mapping: what becomes of strings that no property names.

/**
 * Checks a list of templates. One of them can be for strings of all names, and make them `keyword` or `text`.
 * @throws OpenSearchError 400 for any other template
 */
function parseTemplates(given: unknown): Json[] | undefined {
  if (given === undefined) return undefined
  if (!Array.isArray(given))
    throw mapperError('Dynamic template syntax error. An array of named objects is expected.')
  for (const entry of given) {
    const [name, template] = onlyEntry(entry) ?? []
    if (!isObject(template)) throw mapperError('A dynamic template must be defined with a name')
    if (!isOfAllStrings(template)) {
      throw unsupported(
        `The dynamic template [${name}]: only one of all strings (match_mapping_type: string), to type keyword or text, `,
      )
    }
  }
  return given
}

function isOfAllStrings({
  match_mapping_type: kind,
  match = '*',
  path_match = '*',
  mapping,
  ...others
}: Json): boolean {
  if (kind !== 'string' || match !== '*' || path_match !== '*' || Object.keys(others).length > 0) return false
  if (!isObject(mapping)) return false
  const { type, ignore_above: _, ...options } = mapping
  return (type === 'keyword' || type === 'text') && Object.keys(options).length === 0
}

/** Whether strings that no property names are `keyword`. The first template counts. */
export function areKeywords([first]: readonly Json[]): boolean {
  const [template] = Object.values(first ?? {})
  return isObject(template) && isObject(template.mapping) && template.mapping.type === 'keyword'
}

// =============================================================================
// The cluster's settings: flags of the ML plugin, and the URLs that connectors may call.

export const MEMORY = 'plugins.ml_commons.memory_feature_enabled'
export const RAG = 'plugins.ml_commons.rag_pipeline_feature_enabled'

/** Default values. Scripts send the later ones; they have no effect here. */
const DEFAULTS: ClusterSettings = {
  [MEMORY]: 'true',
  [RAG]: 'true',
  [TRUSTED]: [],
  [HISTORY]: 'opensearch_memory',
  'plugins.ml_commons.only_run_on_ml_node': 'false',
  'plugins.ml_commons.allow_custom_deployment_plan': 'false',
  'plugins.ml_commons.allow_registering_model_via_url': 'false',
  'plugins.ml_commons.allow_registering_model_via_local_file': 'false',
  'plugins.ml_commons.model_access_control_enabled': 'false',
  'plugins.ml_commons.connector_access_control_enabled': 'false',
  'plugins.ml_commons.native_memory_threshold': '90',
  'plugins.ml_commons.jvm_heap_memory_threshold': '85',
}

const MOST_PATTERNS = 100
const LONGEST_PATTERN = 500

export async function settings({ env, query }: Call): Promise<Json> {
  const shown = (flat: ClusterSettings): Json => (isOn(query.flat_settings) ? flat : nested(flat))
  return {
    persistent: shown(await readSettings(env)),
    transient: {},
    ...(isOn(query.include_defaults) && { defaults: shown(DEFAULTS) }),
  }
}

export async function putSettings({ env, request }: Call): Promise<Json> {
  const body = await readObject(request)
  const changes: Record<string, string | string[] | null> = {}
  for (const [scope, given] of Object.entries(body)) {
    if (scope !== 'persistent' && scope !== 'transient') throw illegalArgument(`unknown field [${scope}]`)
    if (!isObject(given)) throw illegalArgument(`[${scope}] has to be an object`)
    for (const [name, value] of flatten(given)) {
      if (!Object.hasOwn(DEFAULTS, name)) throw illegalArgument(`${scope} setting [${name}], not recognized`)
      changes[name] = value === null ? null : settingOf(name, value)
    }
  }
  if (Object.keys(changes).length === 0) throw incomplete('no settings to update')
  await changeSettings(env, changes)
  const set = Object.fromEntries(
    Object.entries(changes).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  )
  return { acknowledged: true, persistent: nested(set), transient: {} }
}

function settingOf(name: string, value: unknown): string | string[] {
  if (name === TRUSTED) {
    const list = listed(value)
    if (list.length > MOST_PATTERNS || !list.every(isPattern))
      throw illegalArgument(
        `Failed to parse value for setting [${name}]: it takes a list of regular expressions`,
      )
    return list
  }
  const text = String(value)
  if (name === HISTORY) {
    if (typeof value !== 'string' || value === '')
      throw illegalArgument(`[${name}] takes the name of a collection`)
  } else if (/^\d+$/.test(String(DEFAULTS[name]))) {
    if (!/^\d{1,3}$/.test(text) || Number(text) > 100)
      throw illegalArgument(`Failed to parse value [${text}] for setting [${name}] must be <= 100`)
  } else if (text !== 'true' && text !== 'false') {
    throw illegalArgument(
      `Failed to parse value [${text}] as only [true] or [false] are allowed. for setting [${name}]`,
    )
  }
  return text
}

function isPattern(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > LONGEST_PATTERN) return false
  try {
    new RegExp(value)
    return true
  } catch {
    return false
  }
}

/** Flattens nested settings to dotted names. */
export function flatten(given: Json, path = ''): [string, unknown][] {
  return Object.entries(given).flatMap(([key, value]) =>
    isObject(value) ? flatten(value, `${path}${key}.`) : [[path + key, value] as [string, unknown]],
  )
}

function nested(flat: ClusterSettings): Json {
  const root: Json = {}
  for (const [name, value] of Object.entries(flat)) {
    const path = name.split('.')
    const last = path.pop()!
    let at = root
    for (const key of path) {
      at[key] ??= {}
      at = at[key] as Json
    }
    at[last] = value
  }
  return root
}

/** Whether a feature is on. */
export const isEnabled = async (env: Cloudflare.Env, name: string, find?: FindResource): Promise<boolean> =>
  ((await readSettings(env, find))[name] ?? DEFAULTS[name]) === 'true'
