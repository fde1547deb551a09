/** The mapping of an OpenSearch index as the fields of a collection. */
import * as v from 'valibot'
import { once } from '../../lib/once'
import { project } from '../../search/documents/store'
import type { FacetRequest } from '../../search/request/parameters'
import type { SearchRequest } from '../../search/request/request'
import type { StoredSchema } from '../../search/schema/layout'
import type {
  CollectionSchema,
  Document,
  FacetCounts,
  Field,
  FieldType,
  Highlight,
  Hit,
  SearchResult,
} from '../../search/types'
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
  const isDate = type === 'date' || type === 'date_nanos'
  if (isDate || WHOLE.includes(type)) {
    const field = describe(name, 'string', { index, facet: true, sort: true })
    return { field, exact: name, ...(isDate && { date: true }) }
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

/** By the type of a field's values. */
const PROPERTIES = new Map<string, Record<string, unknown>>(
  Object.entries({
    string: { type: 'text', fields: { keyword: { type: 'keyword', ignore_above: 8_191 } } },
    int32: { type: 'integer' },
    int64: { type: 'long' },
    float: { type: 'double' },
    bool: { type: 'boolean' },
    geopoint: { type: 'geo_point' },
  }),
)

const propertyOf = (type: FieldType, dimension: number | undefined): Record<string, unknown> | undefined =>
  type === 'float[]' && dimension !== undefined
    ? {
        type: 'knn_vector',
        dimension,
        method: { name: 'hnsw', engine: 'lucene', space_type: 'cosinesimil' },
      }
    : PROPERTIES.get(type.replace('[]', ''))

// =============================================================================
// OpenSearch's replies in Typesense's shape.

const OpenHit = once(() =>
  v.object({
    _id: v.string(),
    _score: v.optional(v.nullable(v.number())),
    _source: v.optional(v.record(v.string(), v.unknown()), {}),
    highlight: v.optional(v.record(v.string(), v.array(v.string()))),
    sort: v.optional(v.array(v.unknown())),
  }),
)

/** How many shards have answered. One that is lost counts as no success, and mostly as no failure. */
const Shards = once(() =>
  v.optional(
    v.object({
      total: v.number(),
      successful: v.number(),
      failures: v.optional(
        v.array(
          v.object({ reason: v.optional(v.object({ type: v.string(), reason: v.nullish(v.string()) })) }),
        ),
        [],
      ),
    }),
  ),
)

/** The reply of `_count`. */
export const Count = once(() => v.object({ count: v.number(), _shards: Shards() }))

/** The reply of `_search`. */
export const Reply = once(() =>
  v.object({
    _shards: Shards(),
    took: v.number(),
    timed_out: v.optional(v.boolean(), false),
    _scroll_id: v.optional(v.string()),
    hits: v.object({
      total: v.optional(v.union([v.number(), v.object({ value: v.number() })])),
      hits: v.array(OpenHit()),
    }),
    aggregations: v.optional(v.record(v.string(), v.unknown()), {}),
  }),
)

export type OpenReply = v.InferOutput<ReturnType<typeof Reply>>
type OpenHit = OpenReply['hits']['hits'][number]

const Buckets = once(() =>
  v.object({
    buckets: v.array(
      v.object({
        key: v.union([v.string(), v.number(), v.bigint()]),
        key_as_string: v.optional(v.string()),
        doc_count: v.number(),
      }),
    ),
    sum_other_doc_count: v.optional(v.number(), 0),
  }),
)

const Stats = once(() =>
  v.object({
    min: v.nullable(v.number()),
    max: v.nullable(v.number()),
    sum: v.nullable(v.number()),
    avg: v.nullable(v.number()),
  }),
)

/** A match score as Parley's own engine gives it: whole, so that it stays exact as JSON. */
const SCORE_UNIT = 1e12
/** Weight of the vector in hybrid search, as in Typesense. */
const ALPHA = 0.3

/** Whether a reply speaks for all documents, and not only for those of the shards that could be reached. */
export const isWhole = ({ _shards: shards }: Pick<OpenReply, '_shards'>): boolean =>
  shards === undefined || shards.successful >= shards.total

/** What a shard says of a request that its index cannot answer: an index of an alias may lack a field, or have it with another type. */
const OF_REQUEST = ['query_shard_exception', 'illegal_argument_exception', 'parsing_exception']

/** Why a shard refuses the request, if one does: it would refuse it again. */
export const refusalIn = ({ _shards: shards }: Pick<OpenReply, '_shards'>): string | undefined =>
  shards?.failures.find(({ reason }) => OF_REQUEST.includes(reason?.type ?? ''))?.reason?.reason ?? undefined

export const foundBy = ({ hits: { total = 0 } }: OpenReply): number =>
  typeof total === 'number' ? total : total.value

/** @param name of the collection here @param outOf documents of the index, if they were counted */
export function resultOf(
  name: string,
  request: SearchRequest,
  { words, neighbours }: { words?: OpenReply | undefined; neighbours?: OpenReply | undefined },
): SearchResult {
  const first = (words ?? neighbours)!
  const { hits, found } =
    words && neighbours ? fuse(words, neighbours, request) : onePage(words, neighbours, request)
  return {
    facet_counts: request.facets.map((facet, at) => countsOf(facet, at, first)),
    found,
    hits: hits.map((hit) => ({
      ...hit,
      document: project(hit.document, request.includeFields, request.excludeFields),
    })),
    ...request.window,
    request_params: { collection_name: name, first_q: request.q, per_page: request.perPage, q: request.q },
    search_cutoff: first.timed_out || neighbours?.timed_out === true,
    search_time_ms: Math.max(words?.took ?? 0, neighbours?.took ?? 0),
  }
}

function onePage(
  words: OpenReply | undefined,
  neighbours: OpenReply | undefined,
  { highlight }: SearchRequest,
): { hits: Hit[]; found: number } {
  const reply = (words ?? neighbours)!
  const hits = reply.hits.hits.map((hit) => (words ? byWords(hit, highlight) : byVector(hit)))
  return { hits, found: foundBy(reply) }
}

const documentOf = ({ _id: id, _source }: OpenHit): Document => ({ ..._source, id })

function byWords(hit: OpenHit, tags: Tags): Hit {
  const score = Math.round((hit._score ?? 0) * SCORE_UNIT)
  return {
    document: documentOf(hit),
    ...highlightsOf(hit, tags),
    ...(hit._score != null && { text_match: score, text_match_info: { score: String(score) } }),
  }
}

/** Lucene scores cosines as `(1 + cos) / 2`. */
const byVector = (hit: OpenHit): Hit => ({
  document: documentOf(hit),
  highlight: {},
  highlights: [],
  vector_distance: 2 - 2 * (hit._score ?? 0),
})

/** Joins both sides by their ranks: `(1 - alpha) / text rank + alpha / vector rank`, as Typesense does. */
function fuse(
  words: OpenReply,
  neighbours: OpenReply,
  { vectorQuery, offset, perPage, highlight }: SearchRequest,
): { hits: Hit[]; found: number } {
  const alpha = vectorQuery?.alpha ?? ALPHA
  const fused = new Map<string, { hit: Hit; score: number }>()
  for (const [rank, hit] of words.hits.hits.entries()) {
    fused.set(hit._id, { hit: byWords(hit, highlight), score: (1 - alpha) / (rank + 1) })
  }
  let onlyNear = 0
  for (const [rank, near] of neighbours.hits.hits.entries()) {
    const known = fused.get(near._id)
    if (!known) onlyNear += 1
    const share = alpha / (rank + 1)
    const { vector_distance } = byVector(near)
    fused.set(near._id, {
      hit: { ...(known?.hit ?? byVector(near)), ...(vector_distance !== undefined && { vector_distance }) },
      score: (known?.score ?? 0) + share,
    })
  }
  const hits = [...fused.values()]
    .sort((a, b) => b.score - a.score)
    .slice(offset, offset + perPage)
    .map(({ hit, score }) => ({ ...hit, hybrid_search_info: { rank_fusion_score: score } }))
  return { hits, found: foundBy(words) + onlyNear }
}

type Tags = Pick<SearchRequest['highlight'], 'startTag' | 'endTag'>

function highlightsOf({ highlight = {} }: OpenHit, tags: Tags): Pick<Hit, 'highlight' | 'highlights'> {
  const highlights: Highlight[] = []
  const nested: Record<string, unknown> = {}
  for (const [field, [snippet = '']] of Object.entries(highlight)) {
    const matched = marked(snippet, tags)
    highlights.push({ field, snippet, matched_tokens: matched })
    put(nested, field.split('.'), { snippet, matched_tokens: matched })
  }
  return { highlight: nested, highlights }
}

/** The words between the tags. */
const marked = (snippet: string, { startTag, endTag }: Tags): string[] =>
  snippet
    .split(startTag)
    .slice(1)
    .map((piece) => piece.split(endTag, 1)[0]!)

function put(into: Record<string, unknown>, [first = '', ...rest]: string[], value: unknown): void {
  if (rest.length === 0) into[first] = value
  else {
    const below = (into[first] ?? {}) as Record<string, unknown>
    into[first] = below
    put(below, rest, value)
  }
}

/** The aggregation of a facet, also within a nested object. */
function aggregation(reply: OpenReply, name: string): unknown {
  const found = reply.aggregations[name]
  return typeof found === 'object' && found !== null && 'inner' in found ? found.inner : found
}

function countsOf(facet: FacetRequest, at: number, reply: OpenReply): FacetCounts {
  const read = v.safeParse(Buckets(), aggregation(reply, `f${at}`))
  const { buckets, sum_other_doc_count: others } = read.success
    ? read.output
    : { buckets: [], sum_other_doc_count: 0 }
  const counted = buckets.filter(({ doc_count: count }) => count > 0)
  const stats = v.safeParse(Stats(), aggregation(reply, `s${at}`))
  return {
    field_name: facet.field.name,
    sampled: false,
    counts: counted.map(({ key, key_as_string: text, doc_count: count }) => {
      const value = text ?? String(key)
      return { value, highlighted: value, count }
    }),
    stats: {
      total_values: counted.length + (others > 0 ? 1 : 0),
      ...(stats.success &&
        stats.output.min !== null && {
          min: stats.output.min,
          max: stats.output.max!,
          sum: stats.output.sum!,
          avg: stats.output.avg!,
        }),
    },
  }
}
