/**
 * Parses Typesense's search parameters, which are all strings, and checks them against the schema. The checks run in
 * Typesense's order, so a request with two faults gets the same error. parameters.ts lists what is supported.
 */
import { ApiError } from '../../errors'
import type { EmbeddingLimits } from '../../models/embedding-model'
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
import { findField } from '../schema/find-field'
import { hasValues, isSearchable, isString, isVector, type StoredSchema } from '../schema/layout'
import { stemsOf, type TextIndex, WORDS } from '../text/analyzer'
import type { SynonymRules } from '../text/synonyms'
import type { TypoRules } from '../text/typo'
import type { Field, SearchParameters } from '../types'
import type { DiversityRequest } from './diversity'
import {
  type FacetQuery,
  type FacetRequest,
  type JoinedFacets,
  parseFacetQuery,
  parseFacets,
} from './facet-request'
import { type HighlightOptions, parseHighlight } from './highlight'
import { type InfixRequest, parseInfix } from './infix'
import { withKnownFields } from './known-fields'
import { type QueryField, type RankingRules, weighted } from './matching'
import {
  type DropTokensMode,
  list,
  type ParameterName,
  parameter,
  requireOneForEach,
  requireSupported,
  type ValueOf,
} from './parameters'
import { type PinnedHit, parsePinned } from './pinned'
import { parseSort, type SortKey, splitSort } from './sort'
import { parseVectorQuery, type VectorQuery } from './vector-query'

export type { HighlightOptions }

export interface SearchRequest {
  q: string
  queryFields: QueryField[]
  infix: InfixRequest
  /** how long the search waits for the model that embeds its text */
  embeddingLimits: EmbeddingLimits
  /** the auto-embedding field of query_by */
  embeddingField: Field | undefined
  vectorQuery: VectorQuery | undefined
  filterBy: string
  /** as given; undefined for the defaults of sort.ts */
  sort: SortKey[] | undefined
  facets: FacetRequest[]
  joinedFacets: JoinedFacets[]
  maxFacetValues: number
  facetQuery: FacetQuery | undefined
  perPage: number
  offset: number
  /** what the reply mentions: a page, or an offset if only that was given */
  window: { page: number } | { offset: number }
  groupBy: string[]
  groupLimit: number
  groupMissingValues: boolean
  includeFields: string
  excludeFields: string
  highlight: HighlightOptions
  dropTokensThreshold: number
  dropTokensMode: DropTokensMode
  typoTokensThreshold: number
  /** when to also search for words joined into one, or split in two */
  splitJoin: ValueOf<'split_join_tokens'>
  typos: TypoRules
  /** how text matches are compared */
  ranking: RankingRules
  rerankHybridMatches: boolean
  /** how words and vectors are joined: by their ranks, as in Typesense, or by their scores */
  fusion: 'rank' | 'score'
  /** the full-text index to read: stems for questions, words as written for all other searches */
  index: TextIndex
  /** what was said before `q` and tells what it is about; '' for nothing */
  contextQ: string
  /** words to leave out of the query */
  stopwords: string[]
  /** the sets of the search, put in by run/named-sets.ts */
  synonyms?: SynonymRules
  pinnedHits: PinnedHit[]
  /** filter_by applies to pinned documents too */
  filterPinned: boolean
  hiddenHits: string[]
  /** how hits are made to differ, where a curation asks for it */
  diversity: DiversityRequest
  /** milliseconds after which the search returns what it has found so far */
  cutoffMs: number
}

const MAX_PER_PAGE = 250
/** The thresholds of an exhaustive search, which never stops early. */
const EXHAUSTIVE = 999_999
const MAX_GROUP_LIMIT = 99

/** @throws ApiError with the contract's status and message */
export function parseRequest(given: SearchParameters, schema: StoredSchema): SearchRequest {
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
    embeddingLimits: {
      timeoutMs: value('remote_embedding_timeout_ms'),
      attempts: value('remote_embedding_num_tries'),
    },
    embeddingField,
    vectorQuery,
    filterBy: params.filter_by ?? '',
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
    splitJoin: value('split_join_tokens'),
    typos: {
      maxTypos: Math.max(0, ...typos),
      minLengthOneTypo: value('min_len_1typo'),
      minLengthTwoTypos: value('min_len_2typo'),
      withDigits: value('enable_typos_for_alpha_numerical_tokens'),
      numbers: value('enable_typos_for_numerical_tokens'),
    },
    ranking: {
      type: value('text_match_type'),
      exactMatch: value('prioritize_exact_match'),
      tokenPosition: value('prioritize_token_position'),
      matchingFields: value('prioritize_num_matching_fields'),
    },
    rerankHybridMatches: value('rerank_hybrid_matches'),
    fusion: value('fusion'),
    index: value('match_stems') ? stemsOf(queryFields.map(({ field }) => field)) : WORDS,
    contextQ: params.context_q ?? '',
    stopwords: (params.stopwords ?? '').split('\n').filter((word) => word !== ''),
    pinnedHits: parsePinned(params.pinned_hits ?? ''),
    filterPinned: value('filter_curated_hits'),
    hiddenHits: value('hidden_hits'),
    diversity: { lambda: value('diversity_lambda') },
    cutoffMs: value('search_cutoff_ms'),
  }
}

/** @throws ApiError 422 for a page that is too long, lies too deep, or has too many hits in its groups */
function parsePage(
  params: SearchParameters,
  groupLimit: number,
): Pick<SearchRequest, 'perPage' | 'offset' | 'window'> {
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
  return { perPage, offset, window: isByOffset ? { offset } : { page: number } }
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
