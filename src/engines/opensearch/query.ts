/** A search in Typesense's parameters as OpenSearch's request. What it has no form for is refused by name. */

import { ApiError, badRequest } from '../../errors'
import { namesOf } from '../../lib/nearest'
import { isExcluded } from '../../search/documents/store'
import { readArea } from '../../search/filter/area'
import {
  type FilterClause,
  type FilterNode,
  isNegated,
  isPresence,
  parseFilter,
} from '../../search/filter/parse'
import { boolValues, numberTests } from '../../search/filter/test'
import type { FacetRequest } from '../../search/request/parameters'
import { parseRequest, type SearchRequest } from '../../search/request/request'
import type { SortKey } from '../../search/request/sort'
import { hasJoins } from '../../search/run/joins'
import { isBool, isGeopoint, isNumber, isVector } from '../../search/schema/layout'
import type { Field, SearchParameters, SearchScope } from '../../search/types'
import type { IndexField, IndexSchema } from './mapping'

/** Hits that an index gives by pages (`index.max_result_window`). */
const DEEPEST = 10_000

/**
 * Values of a facet that each shard counts. A value that a shard leaves out is counted too low, so the counts of facets with
 * fewer values are exact.
 */
const VALUES_OF_SHARD = 10_000

/** Parameters that would change the results, and that have no form here. */
const REFUSED = namesOf(`
  group_by infix pinned_hits facet_query facet_return_parent rerank_model override_tags synonym_sets
  curation_sets stopwords nl_query
`)
/** Values with which those parameters change nothing. */
const NOTHING = ['', 'off', 'false']

export type Translated = ReturnType<typeof translate>

/** @throws ApiError 400, 404, 422 with Typesense's messages, and for what has no form here */
export function translate(given: SearchParameters, scope: SearchScope, index: IndexSchema) {
  for (const name of REFUSED) {
    const value = given[name]
    if (value !== undefined && !value.split(',').every((one) => NOTHING.includes(one.trim()))) {
      throw badRequest(`Parameter \`${name}\` is not available for a collection in an OpenSearch cluster.`)
    }
  }
  if (hasJoins(given)) throw badRequest('Joins are not available for a collection in a cluster.')
  const request = parseRequest(given, index.schema)
  if (request.offset + request.perPage > DEEPEST) {
    throw new ApiError(422, `Only upto ${DEEPEST} hits can be fetched from an OpenSearch cluster.`)
  }
  const filters = [scope.filter, request.filterBy]
    .map((filter) => filterQuery(filter ?? '', index))
    .filter((filter) => filter !== undefined)
  const hidden = request.hiddenHits.length > 0 ? [{ ids: { values: request.hiddenHits } }] : []
  const within = (must: Query[]): Query => ({
    bool: { must, filter: filters, ...(hidden.length > 0 && { must_not: hidden }) },
  })
  const asked = request.q.trim() === '*' ? undefined : readWords(request.q)
  const fields = request.queryFields.map(({ field, weight }) => `${field.name}^${weight}`)
  const everyWord = asked && fields.length > 0 ? wordsQuery(asked, fields, request, 'and') : undefined
  const someWord = asked && fields.length > 0 ? wordsQuery(asked, fields, request, 'or') : undefined
  // A question is answered by some of its words (search/request/request.ts).
  const isQuestion = given.match_stems === 'true'
  const words = isQuestion ? someWord : everyWord
  const { vectorQuery } = request
  return {
    request,
    /** for words, or for all documents; absent if the search is by vector alone */
    ...((words || !vectorQuery) && { words: within([words ?? { match_all: {} }]) }),
    /** the same, with any of the words: asked if `words` finds too little */
    ...(!isQuestion && someWord && request.dropTokensThreshold > 0 && { anyWord: within([someWord]) }),
    /** for a vector */
    ...(vectorQuery && { neighbours: neighbours(request, within([]), index) }),
    /** what goes with the query: page, order, facets, highlights */
    body: {
      from: request.offset,
      size: request.perPage,
      track_total_hits: true,
      ...(request.sort && { sort: request.sort.map((key) => sortOf(key, index)) }),
      ...(request.facets.length > 0 && { aggs: facetsOf(request, index) }),
      ...(asked && { highlight: highlightOf(request) }),
    },
  }
}

type Words = ReturnType<typeof readWords>

/** @returns `excluded`: words after a minus */
function readWords(q: string) {
  const phrases: string[] = []
  const excluded: string[] = []
  const text = q
    .replace(/"([^"]+)"/g, (_, phrase: string) => {
      phrases.push(phrase)
      return ' '
    })
    .replace(/(^|\s)-(\S+)/g, (_, before: string, word: string) => {
      excluded.push(word)
      return before
    })
  return { text: text.trim(), phrases, excluded }
}

/** @param operator whether a document needs all words, in one field or across fields, or any */
function wordsQuery(
  { text, phrases, excluded }: Words,
  fields: string[],
  { typos, queryFields }: SearchRequest,
  operator: 'and' | 'or',
): Query {
  const match = (query: string, more: Record<string, unknown>): Query => ({
    multi_match: { query, fields, ...more },
  })
  const fuzziness =
    Math.max(...queryFields.map((field) => field.typos ?? typos.maxTypos)) > 0 ? 'AUTO:4,7' : '0'
  const ways = [
    match(text, { type: 'best_fields', operator, tie_breaker: 0.3, boost: 2 }),
    ...(operator === 'and' ? [match(text, { type: 'cross_fields', operator })] : []),
    ...(operator === 'and' && fuzziness !== '0' ? [match(text, { operator, fuzziness, boost: 0.1 })] : []),
    ...(queryFields.some(({ prefix }) => prefix) ? [match(text, { type: 'bool_prefix', operator })] : []),
  ]
  return {
    bool: {
      must: [
        ...(text === '' ? [] : [{ dis_max: { queries: ways } }]),
        ...phrases.map((phrase) => match(phrase, { type: 'phrase' })),
      ],
      must_not: excluded.map((word) => match(word, {})),
    },
  }
}

/** @throws ApiError 400 */
function neighbours(
  { vectorQuery, perPage, offset, q }: SearchRequest,
  filter: Query,
  { fields }: IndexSchema,
): Query {
  const { field, vector, k, id, queries, distanceThreshold } = vectorQuery!
  if (vector.length === 0 || id !== undefined || queries.length > 0 || distanceThreshold !== undefined) {
    throw badRequest(
      'In an OpenSearch cluster, `vector_query` takes a vector, `k` and `alpha`: `id`, `queries` and `distance_threshold` are not available.',
    )
  }
  const wanted = k ?? Math.max(q === '*' ? 0 : 100, offset + perPage)
  const nearest = Math.max(1, wanted)
  return {
    knn: fields.get(field.name)!.dense
      ? {
          field: field.name,
          query_vector: vector,
          k: nearest,
          // From k = 67 on, as Elasticsearch has it by itself: as many as neighbours would lose some.
          num_candidates: Math.min(10_000, Math.max(100, Math.ceil(1.5 * nearest))),
          filter,
        }
      : { [field.name]: { vector, k: nearest, filter } },
  }
}

/** @throws ApiError 400 */
function sortOf(key: SortKey, index: IndexSchema): Query {
  const order = key.direction.toLowerCase()
  if ((key.kind === 'text_match' || key.kind === 'vector_distance') && !key.buckets) {
    return { _score: { order: key.kind === 'text_match' ? order : order === 'asc' ? 'desc' : 'asc' } }
  }
  if (key.kind === 'field' && !key.decay) {
    const { nested, exact } = index.fields.get(key.field.name)!
    const missing = key.missing === 'first' ? '_first' : '_last'
    const name = exact ?? key.field.name
    return { [name]: { order, missing, ...(nested !== undefined && { nested: { path: nested } }) } }
  }
  if (key.kind === 'geopoint' && key.exclude === 0 && key.precision === 0) {
    const { field, latitude: lat, longitude: lon } = key
    return { _geo_distance: { [field.name]: { lat, lon }, order, unit: 'm' } }
  }
  throw badRequest(
    'A collection in an OpenSearch cluster is sorted by fields, places and `_text_match` only.',
  )
}

/** The aggregations of all facets: `f0` for the first one's values, `s0` for its statistics. */
function facetsOf({ facets, joinedFacets, maxFacetValues }: SearchRequest, index: IndexSchema): Query {
  if (joinedFacets.length > 0) throw badRequest('Joins are not available for a collection in a cluster.')
  const all: Query = {}
  for (const [at, facet] of facets.entries()) {
    const known = index.fields.get(facet.field.name)!
    const wrap = (aggregation: Query): Query =>
      known.nested === undefined
        ? aggregation
        : { nested: { path: known.nested }, aggs: { inner: aggregation } }
    all[`f${at}`] = wrap(facetOf(facet, known, maxFacetValues))
    if (isNumber(facet.field)) all[`s${at}`] = wrap({ stats: { field: facet.field.name } })
  }
  return all
}

/** @throws ApiError 400 */
function facetOf({ field, ranges, topK, order }: FacetRequest, { exact }: IndexField, size: number): Query {
  if (topK || (order !== undefined && order.by !== 'value')) {
    throw badRequest(`The options of the facet \`${field.name}\` are not available in an OpenSearch cluster.`)
  }
  if (ranges.length > 0) {
    const spans = ranges.map(({ label, from, to }) => ({
      key: label,
      ...(from !== undefined && { from }),
      ...(to !== undefined && { to }),
    }))
    return { range: { field: field.name, ranges: spans } }
  }
  const by = order && { order: { _key: order.direction.toLowerCase() } }
  const terms = { field: exact ?? field.name, size: Math.max(1, size), ...by }
  return { terms: { ...terms, shard_size: Math.max(terms.size, VALUES_OF_SHARD) } }
}

/** As in Typesense: fields in exclude_fields are highlighted only if highlight_fields names them. */
function highlightOf({ highlight, queryFields, excludeFields }: SearchRequest): Query {
  const shown = queryFields.map(({ field }) => field.name).filter((name) => !isExcluded(name, excludeFields))
  const names = highlight.fields ?? shown
  const full = (name: string): boolean => highlight.fullFields.includes(name)
  const options = (name: string) =>
    full(name) ? { number_of_fragments: 0 } : { number_of_fragments: 1, fragment_size: 150, no_match_size: 0 }
  return {
    pre_tags: [highlight.startTag],
    post_tags: [highlight.endTag],
    fields: Object.fromEntries(names.map((name) => [name, options(name)])),
  }
}

// =============================================================================
// filter_by as OpenSearch's query DSL. What it has no form for is refused by name.

export type Query = Record<string, unknown>

const anyOf = (queries: Query[]): Query =>
  queries.length === 1 ? queries[0]! : { bool: { should: queries, minimum_should_match: 1 } }

const noneOf = (query: Query): Query => ({ bool: { must_not: [query] } })

/** @returns undefined for a blank filter @throws ApiError 400, 404 */
export function filterQuery(filterBy: string, index: IndexSchema): Query | undefined {
  const tree = parseFilter(filterBy)
  return tree && nodeQuery(tree, index, '')
}

/** @param around the nested object that names in the node are relative to, with a dot; '' for none */
function nodeQuery(node: FilterNode, index: IndexSchema, around: string): Query {
  if (node.kind === 'join') throw badRequest('Joins are not available for a collection in a cluster.')
  if (node.kind === 'object') {
    const path = around + node.field
    if (!index.nested.has(path)) {
      throw badRequest(`\`${path}\` is no nested field of the index, so \`${path}.{...}\` has no meaning.`)
    }
    return { nested: { path, query: nodeQuery(node.child, index, `${path}.`) } }
  }
  if (node.kind === 'clause') return clauseQuery(node, index, around)
  const children = node.children.map((child) => nodeQuery(child, index, around))
  return node.kind === 'and' ? { bool: { filter: children } } : anyOf(children)
}

function clauseQuery(clause: FilterClause, index: IndexSchema, around: string): Query {
  const name = around + clause.field
  if (name === 'id') return idQuery(clause)
  const found = index.fields.get(name)
  if (!found?.field.index || isVector(found.field)) {
    throw new ApiError(404, `Could not find a filter field named \`${name}\` in the schema.`)
  }
  const { nested } = found
  const positive = isPresence(clause) ? { exists: { field: name } } : valueQuery(found, clause)
  const outside = nested !== undefined && around !== `${nested}.`
  const whole = outside ? { nested: { path: nested, query: positive } } : positive
  return isNegated(clause) ? noneOf(whole) : whole
}

function idQuery(clause: FilterClause): Query {
  const ids = { ids: { values: clause.values.map(({ text }) => text) } }
  const query = isPresence(clause) ? { match_all: {} } : ids
  return isNegated(clause) ? noneOf(query) : query
}

function valueQuery(found: IndexField, clause: FilterClause): Query {
  const { field } = found
  if (isNumber(field)) return numberQuery(field, clause)
  if (isBool(field)) return { terms: { [field.name]: boolValues(field, clause).map(Boolean) } }
  if (isGeopoint(field)) return anyOf(clause.values.map(({ text }) => areaQuery(field, text)))
  return anyOf(clause.values.map((value) => stringQuery(found, clause, value)))
}

const SIGNS: Readonly<Record<string, string>> = { '>': 'gt', '>=': 'gte', '<': 'lt', '<=': 'lte' }

function numberQuery(field: Field, clause: FilterClause): Query {
  const { name } = field
  const { equal, unequal, ranges, compared } = numberTests(field, clause)
  return anyOf([
    ...(equal.length > 0 ? [{ terms: { [name]: equal } }] : []),
    ...unequal.map((value) => noneOf({ term: { [name]: value } })),
    ...ranges.map(([gte, lte]) => ({ range: { [name]: { gte, lte } } })),
    ...compared.map(({ sign, bound }) => ({ range: { [name]: { [SIGNS[sign]!]: bound } } })),
  ])
}

function areaQuery(field: Field, text: string): Query {
  const area = readArea(field, text)
  if ('meters' in area) {
    const { latitude: lat, longitude: lon, meters } = area
    return { geo_distance: { distance: `${meters}m`, [field.name]: { lat, lon } } }
  }
  const { corners } = area
  const points = corners.flatMap((lat, at) => (at % 2 === 0 ? [{ lat, lon: corners[at + 1]! }] : []))
  return { geo_polygon: { [field.name]: { points } } }
}

const COMPARISON = /^(>=|<=|>|<)\s*(.*)$/s
const RANGE = /^(.+?)(?<!\s)\s*\.\.\s*(.+)$/s

function stringQuery(
  { field: { name }, exact, analysed, date }: IndexField,
  { operator }: FilterClause,
  { text, quoted, phrase }: FilterClause['values'][number],
): Query {
  if (date && !quoted) {
    const [, sign, bound] = COMPARISON.exec(text) ?? []
    if (sign) return { range: { [name]: { [SIGNS[sign]!]: bound } } }
    const [, gte, lte] = RANGE.exec(text) ?? []
    if (gte) return { range: { [name]: { gte, lte } } }
    return { term: { [name]: text } }
  }
  const isPrefix = !quoted && !phrase && text.endsWith('*')
  const words = phrase ? text.slice(1, -1) : isPrefix ? text.slice(0, -1) : text
  const whole = operator === ':=' || operator === ':!='
  if (exact !== undefined && (whole || !analysed) && !phrase) {
    const value = { value: words, case_insensitive: true }
    return isPrefix ? { prefix: { [exact]: value } } : { term: { [exact]: value } }
  }
  if (phrase) return { match_phrase: { [name]: words } }
  // A phrase would also find longer values, which the filter of a key may be there to hide.
  if (whole) {
    throw badRequest(
      `\`${name}\` has no \`keyword\` field in the index, so its whole values cannot be compared: use \`:\` for words.`,
    )
  }
  return isPrefix
    ? { match_bool_prefix: { [name]: { query: words, operator: 'and' } } }
    : { match: { [name]: { query: words, operator: 'and' } } }
}
