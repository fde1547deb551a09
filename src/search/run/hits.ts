/** Turns rows into hits. Only the documents of one page are read. */

import { ApiError } from '../../errors'
import { isExcluded, isProjected, project } from '../documents/projection'
import { metersTo } from '../filter/geopoint'
import { MAX_PAGE_CHARACTERS } from '../limits'
import type { RankingRules } from '../request/matching'
import type { SearchRequest } from '../request/request'
import type { SortKey } from '../request/sort'
import { BLOCK } from '../schema/block'
import { findField } from '../schema/find-field'
import { isSearchable, isVector } from '../schema/layout'
import { analyzerOf, type TextIndex } from '../text/analyzer'
import { Matchers } from '../text/matcher'
import type { Term } from '../text/query'
import { rulesOf } from '../text/rules'
import type { Document, Hit } from '../types'
import type { SearchContext } from './context'
import type { OrderedMatch } from './gathered'
import { countMatches, highlightDocument, type MatchCounts } from './highlight'
import { attachJoins } from './join-attach'
import { Columns, setOf } from './match-set'
import type { Pace } from './pace'
import { type TextScore, wireFieldScore, wireScore } from './ranking/score'

export interface HitRow extends OrderedMatch {
  /** placed by pinned_hits */
  curated?: boolean
}

/** Data of the search that hits report. */
export interface HitContext {
  terms: Term[]
  /** the index that was searched, if it is not the request's */
  index?: TextIndex | undefined
  text: boolean
  vector: boolean
  sort: SortKey[]
  /** text scores by sequence number, if they were computed (ranking/score.ts) */
  texts?: ReadonlyMap<number, TextScore> | undefined
}

/**
 * BM25 as an integer that grows with relevance. FTS5's scores are negative, and as small as a millionth for a word
 * that is in most documents. This keeps such scores distinct and the result a safe integer.
 */
export const textMatchScore = (score: number): number =>
  Math.min(Number.MAX_SAFE_INTEGER, Math.max(1, Math.round(-score * 1e12)))

/** Documents that are read and highlighted before others get a turn. */
const AT_ONCE = 50

/** The hits of rows, in order, by sequence number. Deleted documents are left out. */
export async function buildHits(
  context: SearchContext,
  request: SearchRequest,
  rows: HitRow[],
  search: HitContext,
  pace: Pace,
): Promise<Map<number, Hit>> {
  const hits = new Map<number, Hit>()
  const { schema } = context
  const searched = new Map(request.queryFields.map((each) => [each.field.name, each]))
  const matchers = new Matchers(search.text ? search.terms : [], (name) => {
    const analyzer = analyzerOf(search.index ?? request.index, rulesOf(schema, findField(schema, name)))
    const { prefix = true, typos } = searched.get(name) ?? {}
    return { analyzer, prefix, typos }
  })
  let characters = 0
  for (let from = 0; from < rows.length; from += AT_ONCE) {
    // Ignore the result: even a search that was cut off returns its hits.
    if (from > 0) await pace.rest()
    const some = rows.slice(from, from + AT_ONCE)
    addHits(context, request, some, { ...search, matchers }, hits, pace)
    for (const { seq } of some) characters += charactersOf(hits.get(seq), request.highlight.v1)
    if (characters > MAX_PAGE_CHARACTERS) throw tooLarge()
  }
  if (context.joins !== undefined) {
    const shown = new Map([...hits].map(([seq, { document }]) => [seq, document]))
    const fields = { include: request.includeFields, exclude: request.excludeFields }
    await attachJoins(context, shown, fields, pace)
  }
  return hits
}

const tooLarge = (): ApiError =>
  new ApiError(
    422,
    `The hits of this page have more than ${MAX_PAGE_CHARACTERS} characters. Ask for fewer with \`per_page\`, or for less of each with \`include_fields\`.`,
  )

/** Characters of a number or another short value in JSON. */
const SHORT_VALUE = 9

/** About how many characters a hit has. Both forms of the highlights have the same texts. */
const charactersOf = (hit: Hit | undefined, v1: boolean): number =>
  lengthOf(hit?.document) + (v1 ? 2 : 1) * lengthOf(hit?.highlight)

/** About how many characters a value has. */
function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return SHORT_VALUE
  // Vectors are long.
  if (Array.isArray(value) && typeof value[0] === 'number') return value.length * SHORT_VALUE
  let length = 0
  // V8 compiles a loop with `in` anew for each shape of the objects.
  for (const key of Object.keys(value))
    length += key.length + lengthOf((value as Record<string, unknown>)[key])
  return length
}

function addHits(
  context: SearchContext,
  request: SearchRequest,
  rows: HitRow[],
  search: HitContext & { matchers: Matchers },
  hits: Map<number, Hit>,
  pace: Pace,
): void {
  const { includeFields, excludeFields } = request
  const { matchers } = search
  const withoutVectors = !context.schema.fields.some(
    (field) => isVector(field) && isProjected(field.name, includeFields, excludeFields),
  )
  const documents = context.read(
    rows.map(({ seq }) => seq),
    withoutVectors,
  )
  const distances = geoDistances(context, rows, search.sort, pace)
  for (const row of rows) {
    const document = documents.get(row.seq)
    if (document === undefined) continue
    hits.set(row.seq, {
      document: project(document, includeFields, excludeFields),
      ...highlights(context, request, document, matchers),
      ...textMatch(request, row, search, document, matchers),
      ...(row.distance === null ? {} : { vector_distance: row.distance }),
      ...(row.fused === null
        ? {}
        : { hybrid_search_info: { rank_fusion_score: Number(row.fused.toFixed(9)) } }),
      ...(distances.has(row.seq) ? { geo_distance_meters: distances.get(row.seq)! } : {}),
      ...(row.curated ? { curated: true } : {}),
    })
  }
}

function highlights(
  { schema }: SearchContext,
  { highlight, queryFields, excludeFields }: SearchRequest,
  document: Document,
  matchers: Matchers,
): Pick<Hit, 'highlight' | 'highlights'> {
  if (matchers.words === 0) return { highlight: {}, highlights: [] }
  // As in Typesense: fields in exclude_fields are highlighted only if highlight_fields names them.
  const shown = queryFields.map(({ field }) => field.name).filter((name) => !isExcluded(name, excludeFields))
  const names = highlight.fields ?? shown
  const fields = [...new Set([...names, ...(names.length > 0 ? highlight.fullFields : [])])]
  return highlightDocument(document, fields, matchers, schema, highlight)
}

function textMatch(
  request: SearchRequest,
  row: HitRow,
  search: HitContext,
  document: Document,
  matchers: Matchers,
): Pick<Hit, 'text_match' | 'text_match_info'> {
  if (!search.text) return {}
  const text = search.texts?.get(row.seq)
  if (text !== undefined) return matchInfo(text, request.ranking.type, matchers.words)
  const { queryFields } = request
  const fields = queryFields.map(({ field }) => field).filter(isSearchable)
  const names = fields.map(({ name }) => name)
  const counts: MatchCounts =
    row.score === null ? { fields: 0, words: 0, bestField: -1 } : countMatches(document, names, matchers)
  const score = row.score === null ? 0 : textMatchScore(row.score)
  return {
    text_match: score,
    text_match_info: {
      best_field_score: String(score),
      best_field_weight: counts.bestField === -1 ? 0 : queryFields[counts.bestField]!.weight,
      fields_matched: counts.fields,
      num_tokens_dropped: Math.max(0, matchers.words - counts.words),
      score: String(score),
      tokens_matched: counts.words,
      typo_prefix_score: 0,
    },
  }
}

/** The text match of a hit, in Typesense's shape. */
function matchInfo(
  text: TextScore,
  type: RankingRules['type'],
  words: number,
): Pick<Hit, 'text_match' | 'text_match_info'> {
  const { best, fields, tokens, weight } = text
  const score = wireScore(text, type)
  return {
    text_match: Number(score),
    text_match_info: {
      best_field_score: String(best === undefined ? 0 : wireFieldScore(best)),
      best_field_weight: weight,
      fields_matched: fields,
      num_tokens_dropped: Math.max(0, words - tokens),
      score: String(score),
      tokens_matched: tokens,
      typo_prefix_score: best?.cost ?? 0,
    },
  }
}

/** Whole metres from each geopoint that the hits are sorted by, by sequence number. */
function geoDistances(
  context: SearchContext,
  rows: HitRow[],
  sort: SortKey[],
  pace: Pace,
): Map<number, Record<string, number>> {
  const distances = new Map<number, Record<string, number>>()
  const set = setOf(rows.map(({ seq }) => seq))
  for (const key of sort) {
    if (key.kind !== 'geopoint') continue
    const columns = new Columns(context, [key.field])
    for (const [number, offsets] of set) {
      const block = columns.block(key.field, number, pace, offsets)
      for (const at of offsets) {
        const seq = number * BLOCK + at
        const meters = metersTo(key, block, at)
        if (meters === undefined) continue
        distances.set(seq, { ...distances.get(seq), [key.field.name]: Math.floor(meters) })
      }
    }
  }
  return distances
}
