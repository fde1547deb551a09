/** The mapping of an OpenSearch index as the fields of a collection. */
import * as v from 'valibot'
import { once } from '../../lib/once'
import type { StoredSchema } from '../../search/schema/layout'
import type { CollectionSchema, Field, FieldType } from '../../search/types'
import { plainField } from '../cluster'

/** A field, and what OpenSearch knows of it. */
export interface IndexField {
  field: Field
  /** the field that holds whole values: for exact filters, facets and sorting */
  exact?: string
  /** the nested object around it */
  nested?: string
  /** its values are dates */
  date?: true
  /** it is a vector of Elasticsearch, which names the parts of a search for neighbours in another way */
  dense?: true
  /** its text is divided into words */
  analysed?: true
}

/** The fields of an index by name, and the paths of its nested objects. */
export interface IndexSchema {
  fields: Map<string, IndexField>
  nested: Set<string>
  /** as the parsers of search parameters take it */
  schema: StoredSchema
}

interface Property {
  type?: string | undefined
  index?: boolean | undefined
  dimension?: number | undefined
  dims?: number | undefined
  fields?: Record<string, Property> | undefined
  properties?: Record<string, Property> | undefined
}

const Properties: () => v.GenericSchema<unknown, Record<string, Property>> = once(() =>
  v.record(
    v.string(),
    v.object({
      type: v.optional(v.string()),
      index: v.optional(v.boolean()),
      dimension: v.optional(v.number()),
      dims: v.optional(v.number()),
      fields: v.optional(v.lazy(Properties)),
      properties: v.optional(v.lazy(Properties)),
    }),
  ),
)

/** `GET /INDEX/_mapping`: an entry for each index that the name stands for. */
export const Mappings = once(() =>
  v.record(v.string(), v.object({ mappings: v.object({ properties: v.optional(Properties(), {}) }) })),
)

const WORDS = ['text', 'match_only_text', 'search_as_you_type']
const WHOLE = ['keyword', 'constant_keyword', 'wildcard']

const TYPES: Readonly<Record<string, FieldType>> = {
  byte: 'int32',
  short: 'int32',
  integer: 'int32',
  long: 'int64',
  unsigned_long: 'int64',
  half_float: 'float',
  float: 'float',
  double: 'float',
  scaled_float: 'float',
  boolean: 'bool',
  geo_point: 'geopoint',
}

/**
 * Fields of types that neither search nor filter here (binary, percolator and the like) are left out.
 * @param name of the collection
 */
export function readMapping(name: string, mappings: v.InferOutput<ReturnType<typeof Mappings>>): IndexSchema {
  const fields = new Map<string, IndexField>()
  const nested = new Set<string>()
  for (const { mappings: mapping } of Object.values(mappings)) {
    collect(mapping.properties ?? {}, '', undefined, fields, nested)
  }
  const schema: CollectionSchema = {
    name,
    fields: [...fields.values()].map(({ field }) => field),
    default_sorting_field: '',
    enable_nested_fields: [...fields.keys()].some((key) => key.includes('.')),
    token_separators: [],
    symbols_to_index: [],
  }
  return { fields, nested, schema: { ...schema, slots: {}, nextSlot: 0, nextText: 0, textColumns: 0 } }
}

function collect(
  properties: Record<string, Property>,
  prefix: string,
  around: string | undefined,
  fields: Map<string, IndexField>,
  nested: Set<string>,
): void {
  for (const [own, property] of Object.entries(properties)) {
    const name = prefix + own
    if (property.properties) {
      const within = property.type === 'nested' ? name : around
      if (property.type === 'nested') nested.add(name)
      collect(property.properties, `${name}.`, within, fields, nested)
      continue
    }
    const read = readProperty(name, property)
    if (read) fields.set(name, { ...read, ...(around !== undefined && { nested: around }) })
  }
}

function readProperty(name: string, property: Property): IndexField | undefined {
  const { type = 'object', index = true, fields = {} } = property
  if (WORDS.includes(type)) {
    const whole = Object.entries(fields).find(([, { type: kind }]) => WHOLE.includes(kind ?? ''))
    const exact = whole && `${name}.${whole[0]}`
    const can = exact !== undefined
    return {
      field: describe(name, 'string', { index, facet: can, sort: can }),
      analysed: true,
      ...(exact && { exact }),
    }
  }
  if (WHOLE.includes(type)) {
    return { field: describe(name, 'string', { index, facet: true, sort: true }), exact: name }
  }
  if (type === 'date' || type === 'date_nanos') {
    return { field: describe(name, 'string', { index, facet: true, sort: true }), exact: name, date: true }
  }
  const dimensions = property.dimension ?? property.dims
  if ((type === 'knn_vector' || type === 'dense_vector') && dimensions !== undefined) {
    const field = describe(name, 'float[]', { index: true, num_dim: dimensions })
    return { field, ...(type === 'dense_vector' && { dense: true }) }
  }
  const own = TYPES[type]
  if (own === undefined) return undefined
  return { field: describe(name, own, { index, facet: own !== 'geopoint', sort: true }), exact: name }
}

const describe = (name: string, type: FieldType, more: Partial<Field>): Field =>
  plainField({ name, type, optional: true, ...more })

/**
 * The mapping of a new index for a collection's fields. Texts get a `keyword` of their own, for filters, facets and sorting.
 * Patterns and automatic fields are left to the cluster.
 */
export function mappingOf(fields: readonly Pick<Field, 'name' | 'type' | 'num_dim'>[]): {
  settings: Record<string, unknown>
  mappings: Record<string, unknown>
} {
  const known = fields.flatMap(({ name, type, num_dim: dimension }) => {
    const property = propertyOf(type, dimension)
    return property && !name.includes('*') ? [[name, property] as const] : []
  })
  const hasVectors = known.some(([, { type }]) => type === 'knn_vector')
  return {
    settings: hasVectors ? { index: { knn: true } } : {},
    mappings: { properties: Object.fromEntries(known) },
  }
}

const TEXT = { type: 'text', fields: { keyword: { type: 'keyword', ignore_above: 8_191 } } }

function propertyOf(type: FieldType, dimension: number | undefined): Record<string, unknown> | undefined {
  const one = type.replace('[]', '')
  if (type === 'float[]' && dimension !== undefined) {
    return {
      type: 'knn_vector',
      dimension,
      method: { name: 'hnsw', engine: 'lucene', space_type: 'cosinesimil' },
    }
  }
  if (one === 'string') return TEXT
  if (one === 'int32') return { type: 'integer' }
  if (one === 'int64') return { type: 'long' }
  if (one === 'float') return { type: 'double' }
  if (one === 'bool') return { type: 'boolean' }
  if (one === 'geopoint') return { type: 'geo_point' }
  return undefined
}
