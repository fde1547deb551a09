/** Turns rows into hits. Only the documents of one page are read. */
import { ApiError } from '../../errors'
import { isExcluded, isProjected, project } from '../documents/store'
import { metersTo } from '../filter/area'
import { MAX_PAGE_CHARACTERS } from '../limits'
import type { HighlightOptions, RankingRules, SearchRequest } from '../request/request'
import type { SortKey } from '../request/sort'
import { BLOCK } from '../schema/column'
import { isSearchable, isString, isVector, type StoredSchema } from '../schema/layout'
import { findField } from '../schema/schema'
import { partsOf, stringsAt, walk } from '../schema/values'
import { analyzerOf, type TextIndex, type Token, type TokenRules } from '../text/analyzer'
import { type Mark, Matchers, type WordMatcher } from '../text/matcher'
import { rulesOf, type Term } from '../text/query'
import { comparedTokens } from '../text/terms'
import type { Document, Highlight, Hit } from '../types'
import type { OrderedMatch } from './candidates'
import type { Running, SearchContext } from './context'
import { attachJoins } from './join-attach'
import { blocksOf, setOf } from './match-set'
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
const textMatchScore = (score: number): number =>
  Math.min(Number.MAX_SAFE_INTEGER, Math.max(1, Math.round(-score * 1e12)))

/** Documents that are read and highlighted before others get a turn. */
const AT_ONCE = 50

/** The hits of rows, in order, by sequence number. Deleted documents are left out. */
export async function buildHits(
  context: Running,
  request: SearchRequest,
  rows: HitRow[],
  search: HitContext,
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
    if (from > 0) await context.pace.rest()
    const some = rows.slice(from, from + AT_ONCE)
    addHits(context, request, some, { ...search, matchers }, hits)
    // Both forms of the highlights have the same texts.
    const forms = request.highlight.v1 ? 2 : 1
    for (const hit of some.map(({ seq }) => hits.get(seq))) {
      characters += lengthOf(hit?.document) + forms * lengthOf(hit?.highlight)
    }
    if (characters > MAX_PAGE_CHARACTERS) {
      throw new ApiError(
        422,
        `The hits of this page have more than ${MAX_PAGE_CHARACTERS} characters. Ask for fewer with \`per_page\`, or for less of each with \`include_fields\`.`,
      )
    }
  }
  if (context.joins !== undefined) {
    const shown = new Map([...hits].map(([seq, { document }]) => [seq, document]))
    const fields = { include: request.includeFields, exclude: request.excludeFields }
    await attachJoins(context, shown, fields)
  }
  return hits
}

/** Characters of a number or another short value in JSON. */
const SHORT_VALUE = 9

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
  context: Running,
  request: SearchRequest,
  rows: HitRow[],
  search: HitContext & { matchers: Matchers },
  hits: Map<number, Hit>,
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
  const distances = geoDistances(context, rows, search.sort)
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
  const counts =
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
  context: Running,
  rows: HitRow[],
  sort: SortKey[],
): Map<number, Record<string, number>> {
  const distances = new Map<number, Record<string, number>>()
  const set = setOf(rows.map(({ seq }) => seq))
  for (const key of sort) {
    if (key.kind !== 'geopoint') continue
    const blockOf = blocksOf(context)
    for (const [number, offsets] of set) {
      const block = blockOf(key.field, number, offsets)
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

// =============================================================================
// Highlights the words of the query in a document's fields, in Typesense's two forms. A word is marked if it
// matches a query word as it did in the index; if the query's last word is unfinished, matching prefixes are marked too. Nothing is escaped,
// as in Typesense.

/** How many words apart the first and the last match may be to be shown together; Typesense's. */
const WINDOW = 10

interface Passage {
  snippet: string
  matchedTokens: string[]
  /** the whole value, if asked for */
  value?: string
  /** how well the query fits: more of its words side by side. 0 for none */
  fit: number
}

/** Makes the snippet of a value: the best window of matches with some tokens around it, or all of a short text. */
function highlightText(
  text: string,
  matcher: WordMatcher,
  options: HighlightOptions,
  full: boolean,
): Passage {
  const { starts, ends, marks } = matcher.read(text)
  let [from, to] = [0, text.length]
  const { first, last, fit } = bestWindow(marks)
  if (starts.length > options.snippetThreshold) {
    const start = marks.length === 0 ? 0 : Math.max(0, first - options.affixTokens)
    const end = marks.length === 0 ? options.snippetThreshold - 1 : last + options.affixTokens
    if (start > 0) from = starts[start]!
    if (end < ends.length - 1) to = ends[Math.max(0, end)]!
  }
  const all = rangesOf(marks)
  const within = all.filter((mark) => mark.start >= from && mark.end <= to)
  const matchedTokens = [...new Set(within.map((mark) => text.slice(mark.start, mark.end)))]
  const passage = { snippet: mark(text, from, to, within, options), matchedTokens, fit }
  return full ? { ...passage, value: mark(text, 0, text.length, all, options) } : passage
}

/**
 * The window with the most different query words; of equal ones the shortest, and then the first.
 * @returns `fit`: its different words count before how close they are. 0 for none
 */
function bestWindow(marks: Mark[]) {
  let best = { first: 0, last: 0, fit: 0 }
  for (const [index, { token: first }] of marks.entries()) {
    const words = new Set<number>()
    for (let at = index; at < marks.length && marks[at]!.token <= first + WINDOW; at++) {
      const { token: last, word } = marks[at]!
      if (words.has(word)) continue
      words.add(word)
      const fit = words.size * (WINDOW + 1) - (last - first)
      if (fit > best.fit) best = { first, last, fit }
    }
  }
  return best
}

type Range = Pick<Mark, 'start' | 'end'>

/** The places of marks. Pairs of characters overlap, so adjacent matches form one place. */
function rangesOf(marks: Mark[]): Range[] {
  const ranges: Range[] = []
  for (const { start, end } of marks) {
    const last = ranges.at(-1)
    if (last !== undefined && start < last.end) last.end = Math.max(last.end, end)
    else ranges.push({ start, end })
  }
  return ranges
}

function mark(text: string, from: number, to: number, marks: Range[], options: HighlightOptions): string {
  let out = ''
  let at = from
  for (const { start, end } of marks) {
    out += text.slice(at, start) + options.startTag + text.slice(start, end) + options.endTag
    at = end
  }
  return out + text.slice(at, to)
}

/** @param fields names of the fields to look at */
export function highlightDocument(
  document: Document,
  fields: string[],
  matchers: Matchers,
  schema: StoredSchema,
  options: HighlightOptions,
): Pick<Hit, 'highlight' | 'highlights'> {
  const result: Pick<Hit, 'highlight' | 'highlights'> = { highlight: {}, highlights: [] }
  const old: { fit: number; highlight: Highlight }[] = []
  for (const name of fields) {
    const field = findField(schema, name)
    if (field === undefined || !isString(field)) continue
    const full = options.fullFields.includes(name)
    const matcher = matchers.of(name)
    const passages = stringsAt(document, name).map((text) => highlightText(text, matcher, options, full))
    const isMatched = passages.some(({ matchedTokens }) => matchedTokens.length > 0)
    // As in Typesense: a field of `highlight_fields` is in the new form, even if nothing of it matches.
    if (!isMatched && !options.fields?.includes(name)) continue
    // The new form has the document's shape, and visits the values in the same order.
    const queue = [...passages]
    mirror(result.highlight, document, name, () => {
      const { snippet, matchedTokens, value } = queue.shift()!
      return { matched_tokens: matchedTokens, snippet, ...(value === undefined ? {} : { value }) }
    })
    if (!isMatched || !options.v1) continue
    const fit = Math.max(...passages.map((passage) => passage.fit))
    old.push({ fit, highlight: oldForm(name, field.type.endsWith('[]'), passages) })
  }
  // As in Typesense, the field that fits best comes first. The sort is stable.
  result.highlights = old.sort((a, b) => b.fit - a.fit).map(({ highlight }) => highlight)
  return result
}

function oldForm(field: string, array: boolean, passages: Passage[]): Highlight {
  if (!array) {
    const { snippet, matchedTokens, value } = passages[0]!
    return { field, matched_tokens: matchedTokens, snippet, ...(value === undefined ? {} : { value }) }
  }
  const matched = passages
    .map((passage, index) => ({ ...passage, index }))
    .filter(({ matchedTokens }) => matchedTokens.length > 0)
    .sort((a, b) => b.fit - a.fit)
  const values = matched.map(({ value }) => value).filter((value) => value !== undefined)
  return {
    field,
    indices: matched.map(({ index }) => index),
    matched_tokens: matched.map(({ matchedTokens }) => matchedTokens),
    snippets: matched.map(({ snippet }) => snippet),
    ...(values.length > 0 ? { values } : {}),
  }
}

type Json = Record<string, unknown>

/** Puts `leaf()` into `target` for every string that a name reaches in `source`, in the shape of `source`. */
function mirror(target: Json, source: Document, name: string, leaf: () => Json): void {
  walk(source, name, partsOf(name), target, beside, ({ key, value }, parent) => {
    if (typeof value === 'string') parent[key] = leaf()
    else if (Array.isArray(value)) {
      parent[key] = value.filter((each) => typeof each === 'string').map(() => leaf())
    }
  })
}

/** The node of the copy that corresponds to a node of the document. Fields in the same object share it. */
function beside(parent: Json, key: string | number, node: unknown): Json {
  const known = Object.hasOwn(parent, key) ? parent[key] : Array.isArray(node) ? [] : {}
  parent[key] = known
  return known as Json
}

/** How much of the query a document contains, for text_match_info. */
export function countMatches(document: Document, fields: string[], matchers: Matchers) {
  const all = new Set<number>()
  let matched = 0
  let best = { field: -1, words: 0 }
  for (const [index, name] of fields.entries()) {
    const words = new Set<number>()
    for (const text of stringsAt(document, name)) {
      for (const { word } of matchers.of(name).read(text).marks) words.add(word)
    }
    if (words.size > 0) matched++
    if (words.size > best.words) best = { field: index, words: words.size }
    for (const word of words) all.add(word)
  }
  return {
    /** fields with at least one of the words */
    fields: matched,
    /** different query words found in any of them */
    words: all.size,
    /** index of the field with the most different words, -1 for none */
    bestField: best.field,
  }
}

/** Marks the prefixes in a facet value that match the facet query. */
export function highlightFacet(
  value: string,
  queryTokens: string[],
  rules: TokenRules,
  options: { startTag: string; endTag: string },
): string {
  let out = ''
  let at = 0
  for (const { text, start, end } of comparedTokens(value, rules)) {
    const beginning = queryTokens.find((token) => text.startsWith(token))
    if (beginning === undefined) continue
    const marked = endOfBeginning(value, { text, start, end }, beginning.length, rules)
    out += value.slice(at, start) + options.startTag + value.slice(start, marked) + options.endTag
    at = marked
  }
  return out + value.slice(at)
}

/** Where the first letters of a word end, which may have signs between them. Where folding changed its length, all of it. */
function endOfBeginning(value: string, word: Token, letters: number, rules: TokenRules): number {
  let [end, left] = [word.start, letters]
  for (let at = word.start; at < word.end; at++) {
    if (comparedTokens(value[at]!, rules).length === 0) continue
    if (left-- > 0) end = at + 1
  }
  return letters - left === word.text.length ? end : word.end
}
