/** OpenSearch's replies in Typesense's shape. */
import * as v from 'valibot'
import { once } from '../../lib/once'
import { project } from '../../search/documents/projection'
import type { FacetRequest } from '../../search/request/facet-request'
import type { SearchRequest } from '../../search/request/request'
import type { Document, FacetCounts, Highlight, Hit, SearchResult } from '../../search/types'

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
