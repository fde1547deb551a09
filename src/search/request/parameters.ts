/**
 * Typesense's search parameters that are one plain value or a list of such: how each is read, its default and its bounds. All
 * come as text. Those with a grammar of their own have a file each: filter_by (filter/parse.ts), sort_by (sort.ts), facet_by and
 * facet_query, vector_query, pinned_hits (request.ts). Names that are neither here nor there
 * are ignored, as in Typesense.
 */
import { ApiError, detailed } from '../../errors'
import { exactNumber } from '../../lib/json'
import { readJoin } from '../filter/parse'
import { splitOutside, withoutQuoted } from '../fragment'
import {
  CUTOFF_MS,
  DEFAULT_GROUP_LIMIT,
  MAX_FACET_VALUES,
  MAX_FACETS,
  MAX_NEIGHBOURS,
  MAX_VECTOR_QUERIES,
  requireAtMost,
} from '../limits'
import { insteadOf, passes, type Refused, refused } from '../refused'
import { isDynamic } from '../schema/field'
import {
  hasValues,
  isArray,
  isGeopoint,
  isGeopolygon,
  isNumber,
  isVector,
  type StoredSchema,
} from '../schema/layout'
import { findField } from '../schema/schema'
import type { Field, SearchParameters } from '../types'

/** Reads the value of a parameter. `text`: '' if the request does not have it. @throws ApiError 400 */
type Kind<Value> = (name: string, text: string) => Value

const wrong = (name: string, what: string): ApiError => new ApiError(400, `Parameter \`${name}\` ${what}`)

/** The parts of a list between commas; commas in brackets and backticks do not split. */
export const list = (text: string | undefined): string[] =>
  splitOutside(text ?? '').filter((part) => part !== '')

/** @throws ApiError 400 */
export function unsigned(name: string, text: string): number {
  if (!/^\d{1,10}$/.test(text.trim())) throw wrong(name, 'must be an unsigned integer.')
  return Number(text)
}

/** A whole number from 0 on. Above `most` it counts as `most`. */
const whole =
  <Default>(otherwise: Default, most = Number.POSITIVE_INFINITY): Kind<number | Default> =>
  (name, text) =>
    text === '' ? otherwise : Math.min(most, unsigned(name, text))

/** A whole number from 1 on, refused above `most`. */
const positive =
  <Default>(otherwise: Default, most?: number): Kind<number | Default> =>
  (name, text) => {
    if (text === '') return otherwise
    if (most === undefined) {
      const value = unsigned(name, text)
      if (value === 0) throw wrong(name, 'must be greater than 0.')
      return value
    }
    const value = /^\d{1,10}$/.test(text.trim()) ? Number(text) : 0
    if (value < 1 || value > most) throw wrong(name, `must be an integer between 1 and ${most}.`)
    return value
  }

const wholes =
  (otherwise: string, most = Number.POSITIVE_INFINITY): Kind<number[]> =>
  (name, text) =>
    list(text || otherwise).map((part) => Math.min(most, unsigned(name, part)))

/** As in Typesense, whatever is neither `true` nor `false` is the default. */
const flag =
  (otherwise: boolean): Kind<boolean> =>
  (_name, text) =>
    otherwise ? text !== 'false' : text === 'true'

const flags: Kind<boolean[]> = (_name, text) => list(text || 'true').map((part) => part === 'true')

/** One of some words, by default the first. `also`: other spellings. */
const oneOf =
  <Word extends string>(words: readonly Word[], also: Record<string, Word> = {}): Kind<Word> =>
  (name, text) => {
    const found = text === '' ? words[0] : (words.find((word) => word === text) ?? also[text])
    if (found !== undefined) return found
    const quoted = words.map((word) => `\`${word}\``)
    throw wrong(name, `must be ${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}.`)
  }

const eachOneOf = <Word extends string>(words: readonly Word[]): Kind<Word[]> => {
  const one = oneOf(words)
  return (name, text) => splitOutside(text || words[0]!).map((part) => one(name, part))
}

const names: Kind<string[]> = (_name, text) => list(text)

const fraction =
  (otherwise: number): Kind<number> =>
  (name, text) => {
    const value = text.trim() === '' ? otherwise : Number(text)
    if (value >= 0 && value <= 1) return value
    throw wrong(name, 'must be a number between 0 and 1.')
  }

/** From which end words are dropped while too little is found. */
const dropTokensMode = (name: string, text: string) => {
  const match = /^(right_to_left|left_to_right|both_sides:(\d{1,3}))?$/.exec(text.trim())
  if (!match) {
    throw detailed(
      400,
      'Invalid format for drop tokens mode.',
      `Parameter \`${name}\` must be \`right_to_left\`, \`left_to_right\` or \`both_sides:N\`.`,
    )
  }
  return {
    direction: match[1] === 'left_to_right' ? 'left_to_right' : 'right_to_left',
    /** queries of at most this many words drop words from both ends, however much is found; 0: none do */
    bothSides: Number(match[2] ?? 0),
    /** whether the caller chose it */
    given: text !== '',
  }
}

/** Typesense's bound of `num_typos`. */
const MOST_TYPOS = 2
/** Typesense's default of max_extra_prefix and max_extra_suffix. */
const MOST_EXTRA = 32_767

const PARAMETERS = {
  // Which documents match.
  query_by_weights: wholes(''),
  prefix: flags,
  infix: eachOneOf(['off', 'always', 'fallback']),
  max_extra_prefix: whole(MOST_EXTRA),
  max_extra_suffix: whole(MOST_EXTRA),
  num_typos: wholes('2', MOST_TYPOS),
  min_len_1typo: whole(4),
  min_len_2typo: whole(7),
  enable_typos_for_alpha_numerical_tokens: flag(true),
  enable_typos_for_numerical_tokens: flag(true),
  typo_tokens_threshold: whole(1),
  drop_tokens_threshold: whole(1),
  drop_tokens_mode: dropTokensMode,
  exhaustive_search: flag(false),
  split_join_tokens: oneOf(['fallback', 'always', 'off'], { true: 'fallback', false: 'off' }),
  search_cutoff_ms: whole(CUTOFF_MS, CUTOFF_MS),
  validate_field_names: flag(true),
  // Their order.
  text_match_type: oneOf(['max_score', 'max_weight', 'sum_score']),
  prioritize_exact_match: flag(true),
  prioritize_token_position: flag(false),
  prioritize_num_matching_fields: flag(true),
  rerank_hybrid_matches: flag(false),
  rerank_top: positive(30, 100),
  rerank_timeout_ms: positive(500, 5_000),
  diversity_lambda: fraction(0.5),
  hidden_hits: names,
  filter_curated_hits: flag(false),
  // Vectors.
  remote_embedding_timeout_ms: positive(undefined),
  remote_embedding_num_tries: positive(undefined),
  // Named sets.
  enable_synonyms: flag(true),
  synonym_prefix: flag(false),
  demote_synonym_match: flag(false),
  enable_curations: flag(true),
  enable_overrides: flag(true),
  // The page.
  page: whole(1),
  per_page: whole(undefined),
  limit: whole(undefined),
  offset: whole(0),
  limit_hits: whole(Number.MAX_SAFE_INTEGER),
  group_by: names,
  group_limit: whole(DEFAULT_GROUP_LIMIT),
  group_missing_values: flag(true),
  max_facet_values: ((name, text) => {
    const value = whole(10)(name, text)
    if (value <= MAX_FACET_VALUES) return value
    throw wrong(
      name,
      `must be at most ${MAX_FACET_VALUES}. Ask for fewer values, those of a \`facet_query\`.`,
    )
  }) satisfies Kind<number>,
  facet_query_num_typos: whole(2),
  // Highlights.
  highlight_fields: names,
  highlight_full_fields: names,
  highlight_affix_num_tokens: whole(4),
  snippet_threshold: whole(30),
  enable_highlight_v1: flag(true),
  // Parley's own (docs/search.md).
  match_stems: flag(false),
  fusion: oneOf(['rank', 'score']),
}

/** The names of the parameters in the table. */
export type ParameterName = keyof typeof PARAMETERS
/** The value of a parameter. */
export type ValueOf<Name extends ParameterName> = ReturnType<(typeof PARAMETERS)[Name]>

/** @returns the value of a parameter, its default if the request does not have it @throws ApiError 400 */
export const parameter = <Name extends ParameterName>(params: SearchParameters, name: Name): ValueOf<Name> =>
  PARAMETERS[name](name, params[name] ?? '') as ValueOf<Name>

/**
 * @param alone how many values may stand for all fields
 * @throws ApiError 400 unless there is one value for each field of query_by
 */
export function requireOneForEach(
  what: string,
  name: string,
  values: readonly unknown[],
  queryBy: readonly string[],
  alone?: number,
): void {
  if (queryBy.length === 0 || values.length === alone || values.length === queryBy.length) return
  throw new ApiError(400, `Number of ${what} in \`${name}\` does not match number of \`query_by\` fields.`)
}

const PERSONAL = refused('Parley does not personalize searches.')

/**
 * Parameters that would change the results and that Parley does not have. The tests list what becomes of all others
 * (test/search/typesense-parameters.ts).
 */
export const REFUSED_PARAMETERS: Readonly<Record<string, Refused>> = {
  pre_segmented_query: refused('Parley segments queries as it segments documents.', 'false'),
  voice_query: refused('Parley does not transcribe speech.'),
  nl_query: refused('Unions, conversations and assistants take no queries in plain language.', 'false'),
  personalization_user_id: PERSONAL,
  personalization_model_id: PERSONAL,
  personalization_type: PERSONAL,
  personalization_user_field: PERSONAL,
  personalization_item_field: PERSONAL,
  personalization_event_name: PERSONAL,
  personalization_n_events: PERSONAL,
}

const REFUSED = Object.entries(REFUSED_PARAMETERS)

/**
 * Refuses parameters by name. A value that asks for what Parley does anyway passes, and so does a list of such values.
 * @throws ApiError 400
 */
export function requireSupported(params: SearchParameters): void {
  for (const [name, refusal] of REFUSED) {
    const given = params[name]
    if (!given || given.split(',').every((value) => passes(refusal, value.trim()))) continue
    throw new ApiError(400, `Parameter \`${name}\` is not supported. ${insteadOf(refusal)}`)
  }
}

// =============================================================================
// The grammar of vector_query: `field:([0.1, 0.2], k: 10, ...)`.

const malformed = (what = ''): ApiError => new ApiError(400, `Malformed vector query string${what}`)

export type VectorQuery = ReturnType<typeof parseVectorQuery>

/** @throws ApiError 400 with Typesense's messages */
export function parseVectorQuery(text: string, schema: StoredSchema) {
  const colon = text.search(/[:([]/)
  if (colon === -1) throw malformed(': `:` is missing.')
  if (text[colon] !== ':') throw malformed(': `:` is missing after the vector field name.')
  const name = text.slice(0, colon).trim()
  const body = /^\s*\(\s*\[([^\]]*)\]\s*(?:,([\s\S]*))?\)\s*$/.exec(text.slice(colon + 1))
  if (!body) throw malformed('.')
  const field = findField(schema, name)
  if (field === undefined || !isVector(field) || !field.index) {
    throw new ApiError(400, `Field \`${name}\` does not have a vector query index.`)
  }
  const query = {
    field,
    /** empty: the vector comes from `id`, `queries` or q */
    vector: parseVector(body[1]!),
    /** how many neighbours; undefined for the default of the kind of search */
    k: undefined as number | undefined,
    /** farther candidates are dropped */
    distanceThreshold: undefined as number | undefined,
    /** weight of the vector in hybrid search, undefined for the default of its fusion */
    alpha: undefined as number | undefined,
    /** a document whose own vector is the query; it is not among the results */
    id: undefined as string | undefined,
    /** texts to embed and average, in place of q */
    queries: [] as string[],
    queryWeights: [] as number[],
  }
  const options = body[2] === undefined ? [] : splitOutside(body[2]).filter((option) => option !== '')
  for (const option of options) applyOption(query, option)
  if (query.vector.length === 0 && options.length === 0) {
    throw new ApiError(400, 'When a vector query value is empty, an `id` parameter must be present.')
  }
  if (query.vector.length > 0 && field.num_dim !== undefined && query.vector.length !== field.num_dim) {
    throw new ApiError(400, `Query field \`${name}\` must have ${field.num_dim} dimensions.`)
  }
  if (query.queryWeights.length > 0 && query.queryWeights.length !== query.queries.length) {
    throw malformed(': `queries` and `query_weights` must be of the same length.')
  }
  return query
}

function parseVector(text: string): number[] {
  if (text.trim() === '') return []
  return text.split(',').map((part) => {
    const value = Number(part)
    if (part.trim() === '' || !Number.isFinite(value)) {
      throw malformed(': one of the vector values is not a float.')
    }
    return value
  })
}

function applyOption(query: VectorQuery, option: string): void {
  const colon = option.indexOf(':')
  if (colon === -1) throw malformed('.')
  const value = option.slice(colon + 1).trim()
  switch (option.slice(0, colon).trim()) {
    case 'k':
      if (!/^\d{1,9}$/.test(value)) throw malformed(': `k` parameter must be an integer.')
      if (Number(value) > MAX_NEIGHBOURS) {
        throw malformed(`: \`k\` parameter takes at most ${MAX_NEIGHBOURS} neighbours.`)
      }
      // Zero means the default, as in Typesense.
      query.k = Number(value) || undefined
      break
    case 'distance_threshold':
      query.distanceThreshold = between(value, 2, 'distance_threshold')
      break
    case 'alpha':
      query.alpha = between(value, 1, 'alpha')
      break
    case 'id':
      query.id = value.replace(/^`(.*)`$/s, '$1')
      break
    case 'queries':
      query.queries = items(value)
      if (query.queries.length > MAX_VECTOR_QUERIES) {
        throw malformed(`: \`queries\` takes at most ${MAX_VECTOR_QUERIES} texts.`)
      }
      break
    case 'query_weights':
      query.queryWeights = items(value).map((item) => {
        const weight = Number(item)
        if (!Number.isFinite(weight)) throw malformed('.')
        return weight
      })
      break
    // ef and flat_search_cutoff tune an approximate index. Search here is exact, so they are ignored.
  }
}

function between(text: string, most: number, name: string): number {
  const value = Number(text)
  if (text === '' || !(value >= 0 && value <= most)) {
    throw malformed(`: \`${name}\` parameter must be a float between 0.0-${most}.0.`)
  }
  return value
}

function items(text: string): string[] {
  const inner = /^\[([\s\S]*)\]$/.exec(text)
  if (!inner) throw malformed('.')
  return splitOutside(inner[1]!)
    .map((item) => item.replace(/^`(.*)`$/s, '$1'))
    .filter((item) => item !== '')
}

// =============================================================================
// The grammar of facet_by, `field, field(label:[from, to], sort_by: _alpha:asc)`, and of facet_query.

/** Facets need values in columns. Places have no order to count by. */
const isFacet = (field: Field): boolean =>
  field.facet && hasValues(field) && !isGeopoint(field) && !isGeopolygon(field) && !isDynamic(field)

export interface FacetRange {
  label: string
  /** undefined: unbounded */
  from: number | bigint | undefined
  /** exclusive */
  to: number | bigint | undefined
}

/** `$collection(facets)`: facets of related documents. */
export interface JoinedFacets {
  collection: string
  facetBy: string
  /** how many facets of this collection come before */
  at: number
}

export interface FacetQuery {
  field: string
  text: string
  /** typos allowed in a word if no value begins with it as typed */
  maxTypos: number
}

const unknownFacet = (name: string): ApiError =>
  new ApiError(404, `Could not find a facet field named \`${name}\` in the schema.`)

/**
 * @param returnParent names of fields, with stars: their facets also return the object around each value
 * @throws ApiError 404 for a field that is not a facet, 400 for a bad range or order
 */
export function parseFacets(
  facetBy: string,
  returnParent: string,
  schema: StoredSchema,
): { facets: FacetRequest[]; joinedFacets: JoinedFacets[] } {
  const parts = splitOutside(facetBy).filter((part) => part !== '')
  const names = splitOutside(returnParent)
  const hasParent = (name: string): boolean =>
    names.some((wanted) => wanted === name || (wanted.endsWith('*') && name.startsWith(wanted.slice(0, -1))))
  const facets: FacetRequest[] = []
  const joinedFacets: JoinedFacets[] = []
  for (const part of parts) {
    if (part.startsWith('$')) {
      const join = readJoin(part)
      if (join === undefined || join.end < part.length) {
        throw new ApiError(400, `Error parsing reference facet: \`${part}\`.`)
      }
      joinedFacets.push({ collection: join.collection, facetBy: join.inside, at: facets.length })
      continue
    }
    const match = /^([^(]*[^(\s])\s*(?:\((.*)\))?$/s.exec(part)
    if (!match) throw unknownFacet(part)
    const name = match[1]!
    if (name.endsWith('*') && match[2] === undefined) {
      facets.push(...wildcard(name, schema))
      continue
    }
    const field = findField(schema, name)
    if (field === undefined || !isFacet(field)) throw unknownFacet(name)
    facets.push(parseOptions(field, match[2] ?? '', schema))
  }
  for (const facet of facets) facet.returnParent ||= hasParent(facet.field.name)
  return { facets, joinedFacets }
}

function wildcard(name: string, schema: StoredSchema): FacetRequest[] {
  const fields = schema.fields.filter((field) => isFacet(field) && field.name.startsWith(name.slice(0, -1)))
  if (fields.length === 0) {
    throw new ApiError(404, `Could not find a facet field for \`${name}\` in the schema.`)
  }
  return fields.map((field) => plainFacet(field))
}

const plainFacet = (field: Field) => ({
  field,
  /** empty: the values themselves are counted */
  ranges: [] as FacetRange[],
  /** count only the best hits */
  topK: false,
  /** also return the object around each value */
  returnParent: false,
  /** undefined: by count, highest first */
  order: undefined as { by: 'value' | Field; direction: 'ASC' | 'DESC' } | undefined,
})
export type FacetRequest = ReturnType<typeof plainFacet>

function parseOptions(field: Field, text: string, schema: StoredSchema): FacetRequest {
  const request = plainFacet(field)
  for (const option of splitOutside(text).filter((part) => part !== '')) {
    const sort = /^sort_by\s*:\s*([^:]*[^:\s])\s*:\s*(\w+)$/.exec(option)
    if (sort) {
      request.order = parseOrder(sort[1]!, sort[2]!, schema)
    } else if (!option.includes('[')) {
      const [, name = '', value = ''] = /^([\w-]+)\s*:\s*(.*)$/s.exec(option) ?? []
      if (name === '') throw new ApiError(400, 'Invalid facet format.')
      if (name === 'sort_by') throw new ApiError(400, 'Invalid sort format.')
      if (name !== 'top_k' && name !== 'return_parent') {
        throw new ApiError(400, `Invalid facet param \`${name}\`.`)
      }
      if (value !== 'true' && value !== 'false') {
        throw new ApiError(400, `${name} string format is invalid.`)
      }
      request[name === 'top_k' ? 'topK' : 'returnParent'] = value === 'true'
    } else {
      request.ranges.push(parseRange(field, option))
      requireAtMost('facet_by', request.ranges.length, MAX_FACETS)
    }
  }
  return request
}

function parseOrder(by: string, direction: string, schema: StoredSchema): FacetRequest['order'] {
  const upper = direction.toUpperCase()
  if (upper !== 'ASC' && upper !== 'DESC') {
    throw detailed(400, 'Invalid sort param.', 'The order of a facet must be `asc` or `desc`.')
  }
  if (by === '_alpha') return { by: 'value', direction: upper }
  const field = findField(schema, by)
  if (field === undefined || !field.sort || !hasValues(field) || isArray(field)) {
    throw new ApiError(404, `Could not find a field named \`${by}\` in the schema for sorting.`)
  }
  return { by: field, direction: upper }
}

function parseRange(field: Field, option: string): FacetRange {
  if (!isNumber(field)) {
    throw new ApiError(400, 'Range facet is restricted to only integer and float fields.')
  }
  // A comma is missing. Labels in backticks may have brackets.
  if (/\]\s*\S/.test(withoutQuoted(option))) throw new ApiError(400, 'Invalid facet format.')
  if (/:\s*\[([^,\]]*,[^,\]]*,|[^\]]*$)/.test(option)) {
    throw new ApiError(400, 'Error splitting the facet range values.')
  }
  const match = /^(.+?)(?<!\s)\s*:\s*\[([^,[\]]*),([^,[\]]*)\]$/s.exec(option)
  const label = match?.[1]?.trim().replace(/^`(.*)`$/s, '$1') ?? ''
  const [from, to] = [bound(match?.[2]), bound(match?.[3])]
  if (label === '' || [from, to].some((end) => Number.isNaN(end))) {
    throw new ApiError(400, 'Facet range value is not valid.')
  }
  return { label, from, to }
}

const bound = (text: string | undefined): number | bigint | undefined => {
  if (text === undefined) return Number.NaN
  return text.trim() === '' ? undefined : exactNumber(text.trim())
}

/** @throws ApiError 400 for a query without a colon, or on a field that is not among the facets */
export function parseFacetQuery(
  text: string,
  maxTypos: number,
  facets: FacetRequest[],
): FacetQuery | undefined {
  if (text.trim() === '') return undefined
  const colon = text.indexOf(':')
  if (colon === -1) {
    throw new ApiError(400, 'Facet query must be in the `facet_field: value` format.')
  }
  if (facets.length === 0) {
    throw new ApiError(400, 'The `facet_query` parameter is supplied without a `facet_by` parameter.')
  }
  const field = text.slice(0, colon).trim()
  const value = text.slice(colon + 1).trim()
  if (value === '') return undefined
  if (!facets.some((facet) => facet.field.name === field)) {
    throw new ApiError(
      400,
      `Facet query refers to a facet field \`${field}\` that is not part of \`facet_by\` parameter.`,
    )
  }
  return { field, text: value, maxTypos }
}
