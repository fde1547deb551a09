/** Curations and what makes results diverse, as sets hold them, with the checks of their JSON in Typesense's words. */

import { ApiError, unlessRefused } from '../../errors'
import { type FilterNode, parseFilter } from '../filter/parse'
import { KeptSets } from '../kept-sets'
import { refuse } from '../refused'
import { isObject } from '../schema/values'
import { type Synonym, synonymOf } from './synonym'

// =============================================================================
// A curation as a curation set has it, and the checks of its JSON, in Typesense's words.

type Json = Record<string, unknown>

const EFFECTS = [
  'includes',
  'excludes',
  'filter_by',
  'sort_by',
  'remove_matched_tokens',
  'metadata',
  'replace_query',
  'diversity',
]

export type Curation = ReturnType<typeof curationOf>

/** @throws ApiError 400 */
function curationOf(body: unknown) {
  if (!isObject(body)) refuse('Bad JSON.')
  const { rule } = body
  if (!isObject(rule)) refuse('Missing `rule` definition.')
  const hasQuery = rule.query !== undefined && rule.match !== undefined
  if (rule.filter_by === undefined && rule.tags === undefined && !hasQuery) {
    refuse('The `rule` definition must contain either a `tags` or a `query` and `match`.')
  }
  if (EFFECTS.every((name) => body[name] === undefined)) {
    refuse(
      'Must contain one of: `includes`, `excludes`, `metadata`, `filter_by`, `sort_by`, `remove_matched_tokens`, `replace_query`.',
    )
  }
  const parsedRule = ruleOf(rule)
  const includes = includesOf(body.includes)
  const excludes = excludesOf(body.excludes)
  const filterBy = textOf(body, 'filter_by')
  if (body.filter_by === '') refuse('The `filter_by` must be a non-empty string.')
  const removes = flagOf(body, 'remove_matched_tokens')
  const filtersHits = flagOf(body, 'filter_curated_hits') ?? false
  const stops = flagOf(body, 'stop_processing') ?? true
  if (body.id === undefined) refuse('Curation `id` not provided.')
  if (typeof body.id !== 'string' || body.id === '')
    refuse('The `id` of a curation should be a non-empty string.')
  const replacement = textOf(body, 'replace_query')
  if (replacement !== '' && removes === true) {
    refuse('Only one of `replace_query` or `remove_matched_tokens` can be specified.')
  }
  if (body.metadata !== undefined && !isObject(body.metadata)) refuse('The `metadata` must be a JSON object.')
  const from = secondsOf(body, 'effective_from_ts')
  const to = secondsOf(body, 'effective_to_ts')
  const diversity = diversityOf(body.diversity)
  return {
    id: body.id,
    rule: parsedRule,
    includes,
    excludes,
    filter_by: filterBy,
    sort_by: textOf(body, 'sort_by'),
    replace_query: replacement,
    remove_matched_tokens: removes ?? (filterBy !== '' && replacement === ''),
    filter_curated_hits: filtersHits,
    stop_processing: stops,
    /** unix seconds */
    ...(from === undefined ? {} : { effective_from_ts: from }),
    ...(to === undefined ? {} : { effective_to_ts: to }),
    ...(body.metadata === undefined ? {} : { metadata: body.metadata }),
    ...(diversity === undefined ? {} : { diversity }),
  }
}

/**
 * A curation that is about to be stored. One that was stored earlier may have a filter that is refused here.
 * @throws ApiError 400
 */
export function newCurationOf(body: unknown): Curation {
  const curation = curationOf(body)
  const join = joinIn(curation.filter_by)
  if (join !== undefined) {
    refuse(
      `The \`filter_by\` of a curation cannot join: \`$${join}(...)\` is not supported there. Put the join into the search's own \`filter_by\`.`,
    )
  }
  return curation
}

/** The collection of a filter's first join. A filter that does not parse has none, because it never matches. */
function joinIn(filter: string): string | undefined {
  // Placeholders stand for values.
  const plain = filter.replace(/\{\s*[^{}\s:]+\s*\}/g, 'x')
  return joinOf(unlessRefused(() => parseFilter(plain)))
}

function joinOf(node: FilterNode | undefined): string | undefined {
  if (node === undefined || node.kind === 'clause') return undefined
  if (node.kind === 'join') return node.collection
  const children = node.kind === 'object' ? [node.child] : node.children
  return children.map(joinOf).find((name) => name !== undefined)
}

export type CurationRule = Curation['rule']

function ruleOf(rule: Json) {
  const { tags = [], match = '' } = rule
  if (!Array.isArray(tags) || !tags.every((tag) => typeof tag === 'string')) {
    refuse('The `tags` value must be an array of strings.')
  }
  const query = rule.query ?? ''
  if (typeof query !== 'string') refuse('Curation `rule.query` must be a string.')
  if (match !== '' && match !== 'exact' && match !== 'contains') {
    refuse('Curation `rule.match` must be `exact` or `contains`.')
  }
  const filterBy = rule.filter_by ?? ''
  if (typeof filterBy !== 'string') refuse('Curation `rule.filter_by` must be a string.')
  const { stemming_dictionary: dictionary } = rule
  if (dictionary !== undefined && typeof dictionary !== 'string') {
    refuse('Curation `rule.stemming_dictionary` must be a string.')
  }
  const stem = flagOf(rule, 'stem')
  const synonyms = flagOf(rule, 'synonyms')
  return {
    /** words, and placeholders like `{brand}` for values of a field; '' for none */
    query,
    match,
    /** the filter that a search must have for the rule to match; placeholders stand for any text */
    filter_by: filterBy,
    tags,
    /** words count as equal if they have the same stem, or the same root in the dictionary */
    ...(stem === undefined ? {} : { stem }),
    ...(dictionary ? { stemming_dictionary: dictionary } : {}),
    /** synonyms of the query's words count as those words */
    ...(synonyms === undefined ? {} : { synonyms }),
  }
}

function includesOf(given: unknown = []): { id: string; position: number }[] {
  if (!Array.isArray(given)) refuse('The `includes` value must be an array.')
  return given.map((include: unknown) => {
    if (!isObject(include)) refuse('The `includes` value must be an array of objects.')
    const { id, position } = include
    if (id === undefined || position === undefined) {
      refuse('Inclusion definition must define both `id` and `position` keys.')
    }
    if (typeof id !== 'string') refuse('Inclusion `id` must be a string.')
    if (!Number.isSafeInteger(position)) refuse('Inclusion `position` must be an integer.')
    return { id, position: Number(position) }
  })
}

function excludesOf(given: unknown = []): { id: string }[] {
  if (!Array.isArray(given)) refuse('The `excludes` value must be an array.')
  return given.map((exclude: unknown) => {
    if (!isObject(exclude)) refuse('The `excludes` value must be an array of objects.')
    if (exclude.id === undefined) refuse('Exclusion definition must define an `id`.')
    if (typeof exclude.id !== 'string') refuse('Exclusion `id` must be a string.')
    return { id: exclude.id }
  })
}

function textOf(body: Json, name: string): string {
  const value = body[name] ?? ''
  if (typeof value !== 'string') refuse(`The \`${name}\` must be a string.`)
  return value
}

function flagOf(body: Json, name: string): boolean | undefined {
  const value = body[name]
  if (value !== undefined && typeof value !== 'boolean') refuse(`The \`${name}\` must be a boolean.`)
  return value
}

/** Typesense keeps -1 for "no bound". */
function secondsOf(body: Json, name: string): number | undefined {
  const value = body[name]
  if (value === undefined || value === null || value === -1) return undefined
  if (!Number.isSafeInteger(value)) refuse(`The \`${name}\` must be a whole number of seconds.`)
  return Number(value)
}

/** A curation as it is stored and as the API shows it. Texts that were not given are left out. */
export function shownCuration({ id, rule, filter_by, sort_by, replace_query, ...rest }: Curation): Json & {
  id: string
} {
  return { id, ...rest, rule: present(rule), ...present({ filter_by, sort_by, replace_query }) }
}

const present = (given: object): Json =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== '' && value.length !== 0))

// =============================================================================
// `diversity` of a curation: the fields that decide how alike two documents are.

export type Diversity = NonNullable<ReturnType<typeof diversityOf>>
const METHODS = ['equality', 'jaccard', 'vector_distance'] as const
export type SimilarityMethod = (typeof METHODS)[number]

/** The most metrics. Each costs a query, and a comparison of every pair of hits. */
const MOST_METRICS = 10

const refused = (message: string, given: unknown): ApiError =>
  new ApiError(400, `${message}: ${JSON.stringify(given)}`)
const missing = (name: string, given: unknown): ApiError => refused(`\`${name}\` not found`, given)
const invalid = (name: string, given: unknown): ApiError => refused(`Invalid \`${name}\` format`, given)

/**
 * Reads the property `diversity` of a curation, with Typesense's messages. A search checks whether its collection has
 * the fields.
 * @returns undefined for none; an empty object asks for none
 * @throws ApiError 400
 */
export function diversityOf(given: unknown) {
  if (given === undefined) return undefined
  if (!isObject(given)) throw invalid('diversity', given)
  if (Object.keys(given).length === 0) return undefined
  const { similarity_metric: metrics } = given
  if (metrics === undefined) throw missing('similarity_metric', given)
  if (!Array.isArray(metrics) || metrics.length === 0) throw invalid('similarity_metric', metrics)
  if (metrics.length > MOST_METRICS) {
    throw new ApiError(400, `\`similarity_metric\` takes at most ${MOST_METRICS} metrics.`)
  }
  return { similarity_metric: metrics.map(metricOf) }
}

/** One field's part in the similarity of two documents. */
function metricOf(given: unknown) {
  if (!isObject(given) || Object.keys(given).length === 0) {
    throw refused('Invalid `similarity_metric` format, expected an object', given)
  }
  const { weight = 1 } = given
  const field = nameOf(given, 'field')
  const name = nameOf(given, 'method').toLowerCase()
  const method = METHODS.find((known) => known === name)
  if (method === undefined) throw missing('method', given)
  if (typeof weight !== 'number' || !Number.isFinite(weight)) throw invalid('weight', weight)
  return { field, method, weight }
}

function nameOf(metric: Record<string, unknown>, property: string): string {
  const name = metric[property]
  if (name === undefined) throw missing(property, metric)
  if (typeof name !== 'string' || name === '') throw invalid(property, name)
  return name
}

// =============================================================================
// Synonym sets and curation sets, as searches read them from D1.

export const SYNONYM_SET = 'synonym_set'
export const CURATION_SET = 'curation_set'

export const synonymSets = new KeptSets<readonly Synonym[]>('a synonym set', SYNONYM_SET, (entries) =>
  [...entries.values()].map((entry) => synonymOf(JSON.parse(entry))),
)

/** In the order of their ids, as Typesense tries them. */
export const curationSets = new KeptSets<readonly Curation[]>('a curation set', CURATION_SET, (entries) =>
  [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => curationOf(JSON.parse(entry))),
)
