/**
 * Parses Typesense's search parameters, which are all strings, and checks them against the schema. The checks run in
 * Typesense's order, so a request with two faults gets the same error. parameters.ts lists what is supported.
 */
import { ApiError } from '../../errors'
import { withoutUnknown } from '../filter/parse'
import {
  checkLimits,
  MAX_DEPTH,
  MAX_FACETS,
  MAX_GROUP_FIELDS,
  MAX_GROUPED_HITS,
  MAX_QUERY_FIELDS,
  requireAtMost,
} from '../limits'
import { isDynamic } from '../schema/field'
import { hasValues, isArray, isSearchable, isString, isVector, type StoredSchema } from '../schema/layout'
import { findField } from '../schema/schema'
import type { Diversity, SimilarityMethod } from '../sets/curation'
import { stemsOf, WORDS } from '../text/analyzer'
import type { SynonymRules } from '../text/synonyms'
import type { Field, SearchParameters } from '../types'
import {
  list,
  type ParameterName,
  parameter,
  parseFacetQuery,
  parseFacets,
  parseVectorQuery,
  requireOneForEach,
  requireSupported,
  type ValueOf,
} from './parameters'
import { parseSort, splitSort } from './sort'

const MAX_PER_PAGE = 250
/** The thresholds of an exhaustive search, which never stops early. */
const EXHAUSTIVE = 999_999
const MAX_GROUP_LIMIT = 99

export type SearchRequest = ReturnType<typeof parseRequest> & {
  /** the sets of the search, put in by run/search.ts */
  synonyms?: SynonymRules
}

/** @throws ApiError with the contract's status and message */
export function parseRequest(given: SearchParameters, schema: StoredSchema) {
  checkLimits(given)
  requireSupported(given)
  const params = withKnownFields(given, schema)
  const value = valuesOf(params)
  const sortBy = splitSort(params.sort_by ?? '')
  const q = params.q ?? (params.vector_query === undefined ? undefined : '*')
  if (q === undefined) throw new ApiError(400, 'Parameter `q` is required.')
  const queryBy = list(params.query_by)
  if (q !== '*' && queryBy.length === 0 && params.vector_query === undefined) {
    throw new ApiError(400, 'No search fields specified for the query.')
  }
  const weights = value('query_by_weights')
  if (weights.length > 0) requireOneForEach('weights', 'query_by_weights', weights, queryBy)
  const groupLimit = value('group_limit')
  const groupBy = parseGroupBy(value('group_by'), groupLimit)
  const typos = value('num_typos')
  requireOneForEach('values', 'num_typos', typos, queryBy, 1)
  const prefixes = value('prefix')
  requireOneForEach('prefix values', 'prefix', prefixes, queryBy, 1)
  const vectorQuery = params.vector_query ? parseVectorQuery(params.vector_query, schema) : undefined
  const { queryFields, embeddingField } = parseQueryBy(schema, {
    q,
    queryBy,
    weights,
    prefixes,
    typos: new Set(typos).size > 1 ? typos : [],
    vectorField: vectorQuery?.field.name,
  })
  const infix = parseInfix(
    params,
    queryBy,
    queryFields.map(({ field }) => field),
  )
  checkGroupBy(schema, groupBy)
  const { facets, joinedFacets } = parseFacets(
    params.facet_by ?? '',
    params.facet_return_parent ?? '',
    schema,
  )
  requireAtMost('facet_by', facets.length, MAX_FACETS)
  const facetQuery = parseFacetQuery(params.facet_query ?? '', value('facet_query_num_typos'), facets)
  const page = parsePage(params, groupBy.length > 0 ? groupLimit : 1)
  const sort = sortBy.length > 0 ? parseSort(sortBy, schema) : undefined
  if (groupBy.length === 0 && sort?.some(({ kind }) => kind === 'group_found')) {
    throw new ApiError(404, 'group_by parameters should not be empty when using sort_by group_found')
  }
  return {
    q,
    queryFields,
    infix,
    /** how long the search waits for the model that embeds its text */
    embeddingLimits: {
      timeoutMs: value('remote_embedding_timeout_ms'),
      attempts: value('remote_embedding_num_tries'),
    },
    /** the auto-embedding field of query_by */
    embeddingField,
    vectorQuery,
    filterBy: params.filter_by ?? '',
    /** as given; undefined for the defaults of sort.ts */
    sort,
    facets,
    joinedFacets,
    maxFacetValues: value('max_facet_values'),
    facetQuery,
    ...page,
    groupBy,
    groupLimit,
    groupMissingValues: value('group_missing_values'),
    includeFields: params.include_fields ?? '',
    excludeFields: params.exclude_fields ?? '',
    highlight: parseHighlight(params, schema),
    // As documented, an exhaustive search ignores the thresholds.
    dropTokensThreshold: value('exhaustive_search') ? EXHAUSTIVE : value('drop_tokens_threshold'),
    dropTokensMode: value('drop_tokens_mode'),
    typoTokensThreshold: value('exhaustive_search') ? EXHAUSTIVE : value('typo_tokens_threshold'),
    /** when to also search for words joined into one, or split in two */
    splitJoin: value('split_join_tokens'),
    typos: {
      maxTypos: Math.max(0, ...typos),
      minLengthOneTypo: value('min_len_1typo'),
      minLengthTwoTypos: value('min_len_2typo'),
      withDigits: value('enable_typos_for_alpha_numerical_tokens'),
      numbers: value('enable_typos_for_numerical_tokens'),
    },
    /** how text matches are compared */
    ranking: {
      type: value('text_match_type'),
      /** a field that is the query comes first */
      exactMatch: value('prioritize_exact_match'),
      /** words near the beginning of a field come first */
      tokenPosition: value('prioritize_token_position'),
      /** among equal matches, one in more fields comes first */
      matchingFields: value('prioritize_num_matching_fields'),
    },
    rerankHybridMatches: value('rerank_hybrid_matches'),
    /** how words and vectors are joined: by their ranks, as in Typesense, or by their scores */
    fusion: value('fusion'),
    /** the full-text index to read: stems for questions, words as written for all other searches */
    index: value('match_stems') ? stemsOf(queryFields.map(({ field }) => field)) : WORDS,
    /** what was said before `q` and tells what it is about; '' for nothing */
    contextQ: params.context_q ?? '',
    /** words to leave out of the query */
    stopwords: (params.stopwords ?? '').split('\n').filter((word) => word !== ''),
    pinnedHits: parsePinned(params.pinned_hits ?? ''),
    /** filter_by applies to pinned documents too */
    filterPinned: value('filter_curated_hits'),
    hiddenHits: value('hidden_hits'),
    /** how hits are made to differ, where a curation asks for it */
    diversity: { lambda: value('diversity_lambda') } as DiversityRequest,
    /** milliseconds after which the search returns what it has found so far */
    cutoffMs: value('search_cutoff_ms'),
  }
}

/** @throws ApiError 422 for a page that is too long, lies too deep, or has too many hits in its groups */
function parsePage(params: SearchParameters, groupLimit: number) {
  const value = valuesOf(params)
  const [page, limitHits] = [value('page'), value('limit_hits')]
  const given = params.per_page === undefined ? value('limit') : value('per_page')
  // As in Typesense, a facet query that asks for no page gets only the counts.
  const perPage = given ?? (params.facet_query ? 0 : 10)
  if (perPage > MAX_PER_PAGE) {
    throw new ApiError(422, `Only upto ${MAX_PER_PAGE} hits can be fetched per page.`)
  }
  const isByOffset = params.page === undefined && value('offset') > 0
  const number = Math.max(page, 1)
  const offset = isByOffset ? value('offset') : perPage * (number - 1)
  if (offset + perPage > limitHits) {
    throw new ApiError(
      422,
      `Only upto ${limitHits} hits can be fetched. Ensure that \`page\` and \`per_page\` parameters are within this range.`,
    )
  }
  if (offset + perPage > MAX_DEPTH) {
    throw new ApiError(
      422,
      `Only upto ${MAX_DEPTH} hits can be fetched. Ensure that \`page\` and \`per_page\` parameters are within this range. For all documents use the export.`,
    )
  }
  if (perPage * groupLimit > MAX_GROUPED_HITS) {
    throw new ApiError(
      422,
      `Only upto ${MAX_GROUPED_HITS} hits can be fetched in groups. Lower \`per_page\` or \`group_limit\`, which are multiplied.`,
    )
  }
  /** what the reply mentions: a page, or an offset if only that was given */
  const window = isByOffset ? { offset } : { page: number }
  return { perPage, offset, window }
}

/** The values of parameters, by name. */
const valuesOf =
  (params: SearchParameters) =>
  <Name extends ParameterName>(name: Name): ValueOf<Name> =>
    parameter(params, name)

function parseGroupBy(groupBy: string[], groupLimit: number): string[] {
  if (groupBy.length > 0 && (groupLimit < 1 || groupLimit > MAX_GROUP_LIMIT)) {
    throw new ApiError(400, `Value of \`group_limit\` must be between 1 and ${MAX_GROUP_LIMIT}.`)
  }
  requireAtMost('group_by', groupBy.length, MAX_GROUP_FIELDS)
  return groupBy
}

function parseQueryBy(
  schema: StoredSchema,
  given: {
    q: string
    queryBy: string[]
    weights: number[]
    prefixes: boolean[]
    /** empty: the same for all */
    typos: number[]
    vectorField: string | undefined
  },
): { queryFields: QueryField[]; embeddingField: Field | undefined } {
  const queryFields: QueryField[] = []
  let embeddingField: Field | undefined
  for (const [index, name] of given.queryBy.entries()) {
    for (const field of resolveQueryField(schema, name)) {
      if (isVector(field)) {
        if (embeddingField !== undefined || (given.vectorField ?? field.name) !== field.name) {
          throw new ApiError(400, 'Only one embedding field is allowed in the query.')
        }
        checkIndexed(field)
        if (given.q !== '*' && field.embed === undefined) {
          throw new ApiError(
            400,
            `Vector field \`${field.name}\` is not an auto-embedding field, do not use \`query_by\` with it, use \`vector_query\` instead.`,
          )
        }
        embeddingField = field
        continue
      }
      const prefix = given.prefixes[index] ?? given.prefixes[0]!
      const typos = given.typos[index]
      queryFields.push({ field, weight: given.weights[index] ?? -1, rank: 0, prefix, typos })
    }
  }
  requireAtMost('query_by', queryFields.length, MAX_QUERY_FIELDS)
  for (const { field } of queryFields) {
    checkIndexed(field)
    if (!isString(field))
      throw new ApiError(400, `Field \`${field.name}\` should be a string or a string array.`)
  }
  return { queryFields: weighted(queryFields), embeddingField }
}

function resolveQueryField(schema: StoredSchema, name: string): Field[] {
  if (name === 'id') throw new ApiError(400, 'Cannot use `id` as a query by field.')
  if (name.startsWith('$')) throw new ApiError(400, 'Query by reference is not yet supported.')
  const exact = findField(schema, name)
  if (exact !== undefined && exact.type !== 'object' && exact.type !== 'object[]') return [exact]
  // A star, or the name of an object, means every string field below it.
  const beginning = name.endsWith('*') ? name.slice(0, -1) : exact === undefined ? undefined : `${name}.`
  const expanded =
    beginning === undefined
      ? []
      : schema.fields.filter(
          (field) => field.name.startsWith(beginning) && isSearchable(field) && !isDynamic(field),
        )
  if (expanded.length === 0) {
    throw new ApiError(
      404,
      name.endsWith('*')
        ? `No string or string array field found matching the pattern \`${name}\` in the schema.`
        : `Could not find a field named \`${name}\` in the schema.`,
    )
  }
  return expanded
}

function checkIndexed(field: Field): void {
  if (!field.index) {
    throw new ApiError(400, `Field \`${field.name}\` is marked as a non-indexed field in the schema.`)
  }
}

function checkGroupBy(schema: StoredSchema, groupBy: string[]): void {
  for (const name of groupBy) {
    if (name === 'id') throw new ApiError(400, 'Cannot use `id` as a group by field.')
    const field = findField(schema, name)
    if (name.endsWith('*')) throw new ApiError(400, `Pattern \`${name}\` is not allowed.`)
    if (field === undefined)
      throw new ApiError(404, `Could not find a field named \`${name}\` in the schema.`)
    if (!field.facet) throw new ApiError(400, `Group by field \`${name}\` should be a facet field.`)
    if (!hasValues(field) || isDynamic(field)) {
      throw new ApiError(
        400,
        `Cannot group by \`${name}\`: it is of type \`${field.type}\`, which has no values of its own. Group by one of the fields inside of it.`,
      )
    }
  }
}

// =============================================================================
// The fields that words are searched in, with their weights, and how their matches are compared.

/** A string field of query_by. */
interface QueryField {
  field: Field
  /** factor of its matches in BM25 */
  weight: number
  /** Typesense's weight, 0 to 15 */
  rank: number
  /** whether the last word of the query may be unfinished */
  prefix: boolean
  /** typos that its words may have; undefined: as many as the search allows */
  typos: number | undefined
}

export type RankingRules = SearchRequest['ranking']

const HEAVIEST = 15

/**
 * Fills in the weights of fields. `weight` is a caller's weight, negative for none.
 *
 * BM25's default weights fall from 2 for the first field to 1 for the last. Chosen by nDCG@10 on SciFact with
 * query_by=title,text: 0.687 with equal weights, 0.693 with 2 to 1, 0.696 with 3 to 1, where recall begins to fall.
 */
function weighted(fields: QueryField[]): QueryField[] {
  const last = Math.max(1, fields.length - 1)
  const ranks = ranksOf(fields.map(({ weight }) => weight))
  return fields.map((entry, index) => ({
    ...entry,
    weight: entry.weight >= 0 ? Math.max(entry.weight, 0.001) : 2 - index / last,
    rank: ranks[index]!,
  }))
}

/**
 * Typesense's weights: the first field has 15, and each field after it one less. A caller's weights stay as they are if
 * they fall and none is above 15. Otherwise the largest becomes 15, and each smaller one has one less.
 */
function ranksOf(weights: readonly number[]): number[] {
  if (weights.every((weight) => weight < 0)) return weights.map((_, index) => Math.max(0, HEAVIEST - index))
  const fall = weights.every((weight, index) => index === 0 || weight <= weights[index - 1]!)
  if (fall && weights.every((weight) => weight <= HEAVIEST)) return [...weights]
  const sorted = [...new Set(weights)].sort((a, b) => b - a)
  return weights.map((weight) => Math.max(0, HEAVIEST - sorted.indexOf(weight)))
}

// =============================================================================
// `validate_field_names=false`: a search ignores fields that the schema lacks, instead of refusing them.

/** Parameters that have one value for each field of query_by. */
const BY_FIELD = ['query_by_weights', 'prefix', 'num_typos', 'infix']

/** The filter that no document passes. */
const NOTHING = 'id:[]'

/**
 * The parameters without the names of unknown fields. As in Typesense, a filter on an unknown field matches nothing. A
 * search that has no field left to search or to group by finds nothing. sort_by is always checked.
 */
function withKnownFields(params: SearchParameters, schema: StoredSchema): SearchParameters {
  if (parameter(params, 'validate_field_names')) return params
  const isKnown = (name: string): boolean =>
    name === 'id' ||
    name.startsWith('$') ||
    findField(schema, name) !== undefined ||
    (name.endsWith('*') && schema.fields.some((field) => field.name.startsWith(name.slice(0, -1))))
  const known: SearchParameters = { ...params, filter_by: withoutUnknown(params.filter_by ?? '', isKnown) }
  const queryBy = list(params.query_by)
  for (const name of BY_FIELD) {
    const values = list(params[name])
    if (values.length !== queryBy.length || values.length === 1) continue
    known[name] = values.filter((_, index) => isKnown(queryBy[index]!)).join(',')
  }
  for (const name of ['query_by', 'group_by']) {
    const given = list(params[name])
    const kept = given.filter(isKnown)
    if (given.length > 0) known[name] = kept.join(',')
    if (given.length > 0 && kept.length === 0) known.filter_by = NOTHING
  }
  if (params.query_by && !known.query_by) known.q = '*'
  const facets = list(params.facet_by)
  known.facet_by = facets.filter((facet) => isKnown(/^[^(]*/.exec(facet)![0].trim())).join(',')
  return known
}

// =============================================================================
// The grammar of pinned_hits: `id:position, id:position`.

interface PinnedHit {
  id: string
  /** 1 is the first */
  position: number
}

/** @throws ApiError 400 */
function parsePinned(text: string): PinnedHit[] {
  return list(text).map((pin) => {
    const match = /^(.+):(\d+)$/.exec(pin)
    if (!match || Number(match[2]) < 1) {
      throw new ApiError(400, 'Pinned hits are not in expected format.')
    }
    return { id: match[1]!.trim(), position: Number(match[2]) }
  })
}

// =============================================================================
// The grammar of `infix`: whether a part of a word finds it, for each field of query_by.

/**
 * @param queryBy the names as given
 * @param fields the string fields that they stand for
 * @throws ApiError 400
 */
function parseInfix(params: SearchParameters, queryBy: string[], fields: Field[]) {
  const modes = parameter(params, 'infix')
  requireOneForEach('infix values', 'infix', modes, queryBy, 1)
  const modeOf = ({ name }: Field): ValueOf<'infix'>[number] => {
    if (modes.length === 1) return modes[0]!
    // A star, or the name of an object, stands for the fields below it.
    const at = queryBy.findIndex(
      (given) => given === name || name.startsWith(given.endsWith('*') ? given.slice(0, -1) : `${given}.`),
    )
    return modes[at] ?? 'off'
  }
  return {
    /** fields searched by parts of words in any case */
    always: fields.filter((field) => modeOf(field) === 'always'),
    /** the same, but only if nothing is found otherwise */
    fallback: fields.filter((field) => modeOf(field) === 'fallback'),
    /** characters of a word that may come before and after the part */
    extra: { before: parameter(params, 'max_extra_prefix'), after: parameter(params, 'max_extra_suffix') },
  }
}

// =============================================================================
// Which fields of the hits are highlighted, and how.

export type HighlightOptions = ReturnType<typeof parseHighlight>

/** @throws ApiError 400 */
function parseHighlight(params: SearchParameters, schema: StoredSchema) {
  const named = withStars(parameter(params, 'highlight_fields'), schema)
  const full = withStars(parameter(params, 'highlight_full_fields'), schema)
  return {
    /** undefined: the string fields of query_by */
    fields: !params.highlight_fields ? undefined : named[0] === 'none' ? [] : named,
    /** fields whose whole value is highlighted too */
    fullFields: full[0] === 'none' ? [] : full,
    startTag: params.highlight_start_tag ?? '<mark>',
    endTag: params.highlight_end_tag ?? '</mark>',
    affixTokens: parameter(params, 'highlight_affix_num_tokens'),
    snippetThreshold: parameter(params, 'snippet_threshold'),
    /** also return `highlights`, the old form */
    v1: parameter(params, 'enable_highlight_v1'),
  }
}

/** Names of fields, where `user*` stands for all string fields that begin so. */
const withStars = (names: string[], schema: StoredSchema): string[] =>
  names.flatMap((name) =>
    name.endsWith('*')
      ? schema.fields
          .filter((field) => field.name.startsWith(name.slice(0, -1)) && isString(field) && !isDynamic(field))
          .map((field) => field.name)
      : [name],
  )

// =============================================================================
// What a search knows of the diversity of its hits: `diversity_lambda`, and the fields that a curation compares.

/** How many of the best hits are diversified, as in Typesense. All others follow in the order of the search. */
export const DIVERSIFIED = 250

interface DiversityRequest {
  /** 0: only the differences between hits count; 1: only their relevance */
  lambda: number
  /** where a curation asks for it */
  by?: Diversification
}

/** A curation's `diversity`, with the fields that it names. */
export interface Diversification {
  metrics: Metric[]
  /** the page that is asked for; the search finds all hits that are diversified */
  page: { offset: number; limit: number }
}

export interface Metric {
  field: Field
  method: SimilarityMethod
  weight: number
}

/**
 * The request, widened to find all hits that are diversified.
 * @throws ApiError 400 if the fields of the curation cannot be compared, or the search groups its hits
 */
export function diversifying(
  request: SearchRequest,
  { similarity_metric: metrics }: Diversity,
  schema: StoredSchema,
): SearchRequest {
  if (request.groupBy.length > 0) throw new ApiError(400, 'Diversity is not supported along with group_by.')
  const compared = metrics.map(({ field: name, method, weight }) => {
    const field = findField(schema, name)
    if (field === undefined) throw new ApiError(400, `\`${name}\` field not found in the schema.`)
    requireComparable(field, method)
    return { field, method, weight }
  })
  const { offset, perPage, diversity } = request
  if (offset >= DIVERSIFIED || perPage === 0) return request
  return {
    ...request,
    offset: 0,
    perPage: Math.max(DIVERSIFIED, offset + perPage),
    diversity: { ...diversity, by: { metrics: compared, page: { offset, limit: perPage } } },
  }
}

function requireComparable(field: Field, method: SimilarityMethod): void {
  const { name } = field
  if (method === 'vector_distance') {
    if (isVector(field)) return
    throw new ApiError(400, `Field \`${name}\` must be a vector to use \`vector_distance\` in diversity.`)
  }
  if ((isArray(field) || isVector(field)) && !field.facet) {
    throw new ApiError(400, `Enable faceting on \`${name}\` array field to use in diversity.`)
  }
  if ((!field.sort && !field.facet) || !hasValues(field)) {
    throw new ApiError(400, `Enable sorting/faceting on \`${name}\` field to use in diversity.`)
  }
}
