/** Answers the questions of another collection's object about documents here (joins.ts). */
import { ApiError, coded } from '../../errors'
import type { Joining } from '../documents/bulk'
import { keysIn } from '../documents/join-keys'
import { isProjected, project } from '../documents/store'
import { Filter } from '../filter/filter'
import { type FilterNode, fieldsOf, joinsOf, parseFilter, printFilter } from '../filter/parse'
import { fragment, join } from '../fragment'
import {
  CUTOFF_MS,
  MAX_JOIN_BYTES,
  MAX_JOIN_DEPTH,
  MAX_JOIN_DOCUMENTS,
  MAX_JOIN_KEYS,
  MAX_JOIN_SORTED,
} from '../limits'
import { parseRequest } from '../request/request'
import { parseSort, splitSort } from '../request/sort'
import { referenceOf } from '../schema/field'
import { isArray, isVector } from '../schema/layout'
import { findField } from '../schema/schema'
import type {
  Document,
  DocumentQuestion,
  FacetCounts,
  FacetQuestion,
  JoinAnswer,
  JoinQuestion,
  RankQuestion,
  SearchParameters,
  SearchScope,
} from '../types'
import { equalCandidates } from './candidates'
import { type Running, runningAt, type SearchContext } from './context'
import { asJoined, countFacets, joinedRequest } from './facets'
import { attachJoins } from './join-attach'
import { bracketed, hasJoins, Joins, referring } from './joins'
import { allDocuments, filteredIn, partsOf, seqsOf, setOf } from './match-set'
import { checkOrder, firstOf, orderingOf } from './order'
import { type LongSearches, Pace } from './pace'

/**
 * @param others the long searches of this object
 * @throws ApiError 400 if no field here refers to that collection, 408, 422 past a limit
 */
export const answerJoin = (
  context: SearchContext,
  question: JoinQuestion,
  others: LongSearches,
): Promise<JoinAnswer> =>
  others.during(question.ticket, async (caller) => {
    if (question.depth < 0) {
      throw new ApiError(400, `Joins are nested too deeply: at most ${MAX_JOIN_DEPTH} levels are allowed.`)
    }
    const { on, array, keyField } = await relationOf(context, question)
    const answer: JoinAnswer = { on, array }
    const { want } = question
    if (want === 'relation') return answer
    const filterBy = conditionsOf(context, question)
    const until = performance.now() + question.cutoffMs
    const fields = typeof want === 'object' && 'include' in want ? want : { include: '', exclude: '' }
    const params = {
      filter_by: filterBy,
      include_fields: fields.include,
      exclude_fields: fields.exclude,
      ...(typeof want === 'object' && 'sortBy' in want && { sort_by: want.sortBy }),
      ...(typeof want === 'object' && 'facets' in want && { facet_by: want.facets.facetBy }),
    }
    const trusted = question.trusted ? filterBy : question.only
    const limits = { until, depth: question.depth, caller, trusted }
    const joined = await withJoins(context, params, question.scope, limits)
    const pace = new Pace(others, question.cutoffMs, undefined, caller)
    try {
      const documents = joined.joins?.documents
      // A condition that is wrong is an error even without documents.
      const filter = new Filter(context.schema, filterBy, documents)
      const asked = { context: runningAt(joined, pace), keyField, filter }
      if (want === 'keys') return { ...answer, keys: await keysWhere(asked) }
      if ('facets' in want) return { ...answer, facets: await facetsOf(asked, want.facets) }
      if ('related' in want) return { ...answer, seqs: documentsIn(await relatedPairs(asked, want.related)) }
      const pairs = await relatedPairs(asked, want.keys)
      if ('include' in want) return { ...answer, ...(await documentsOf(asked, pairs, want)) }
      return { ...answer, ranks: await ranksOf(asked, pairs, want) }
    } finally {
      pace.end()
    }
  })

interface KeySearch {
  context: Running
  /** the field here that has the keys */
  keyField: string
  filter: Filter
}

/** A context with the joins of these parameters, evaluated; the same one if they have none. */
async function withJoins(
  context: SearchContext,
  params: ConstructorParameters<typeof Joins>[1],
  ...rest: [scope: ConstructorParameters<typeof Joins>[2], limits: ConstructorParameters<typeof Joins>[3]]
): Promise<SearchContext> {
  const joins = new Joins(context, params, ...rest)
  await joins.resolve()
  return Object.create(context, { joins: { value: joins } }) as SearchContext
}

async function relationOf(
  { schema, port }: SearchContext,
  { asker, target }: JoinQuestion,
): Promise<{ on: string; array: boolean; keyField: string }> {
  if (target !== undefined) {
    await port!.ensureKeyed(target)
    return { on: '', array: false, keyField: target }
  }
  const field = await referring(schema, asker, port!.lookUp)
  if (field === undefined)
    throw coded('not_joined', 400, `Failed to join on \`${schema.name}\`: No reference field found.`)
  return { on: referenceOf(field).field, array: isArray(field), keyField: field.name }
}

/**
 * All conditions on the documents here. In the searched collection, all conditions of a scoped key apply. In a joined
 * collection, only those apply whose fields it has, except `id`: ids there name other documents.
 */
function conditionsOf(
  { schema, port }: SearchContext,
  { filter, trusted, only = '', scope }: JoinQuestion,
): string {
  if (trusted) return filter
  if (scope.home === port!.objectId) return bracketed([filter, only, scope.filter ?? ''], ' && ')
  const own = conjuncts(parseFilter(scope.filter ?? '')).filter(
    (node) =>
      joinsOf(node).length === 0 &&
      fieldsOf(node).every((name) => name !== 'id' && findField(schema, name)?.index === true),
  )
  return bracketed([filter, only, ...own.map(printFilter)], ' && ')
}

function conjuncts(node: FilterNode | undefined): FilterNode[] {
  if (node === undefined) return []
  return node.kind === 'and' ? node.children.flatMap(conjuncts) : [node]
}

const timedOut = (): ApiError => new ApiError(408, 'Request Timeout')

/** The keys of the documents that pass the filter. @throws ApiError 408, since part of them would be a wrong answer */
async function keysWhere({ context, keyField, filter }: KeySearch): Promise<string[]> {
  const { pace } = context
  const keys = new Set<string>()
  const keyed = keysIn(keyField, 'seq')
  const set = await filteredIn(context, filter, await allDocuments(context))
  for await (const relation of partsOf(set, context.pace)) {
    const query = join([
      fragment('SELECT DISTINCT json_quote(k.key) AS key FROM ('),
      relation,
      fragment(') d JOIN '),
      keyed,
      fragment(' k ON k.seq = d.seq'),
    ])
    for (const { key } of pace.query<{ key: string }>(context.sql, query)) keys.add(key)
    if (keys.size > MAX_JOIN_KEYS) {
      throw new ApiError(
        422,
        `A join matches at most ${MAX_JOIN_KEYS} documents. Narrow its condition on \`${context.schema.name}\`.`,
      )
    }
  }
  if (pace.cutoff) throw timedOut()
  return [...keys]
}

interface Pair {
  seq: number
  key: string
}

/** Facets of these documents. The conditions on documents here hold for them. */
async function facetsOf(asked: KeySearch, question: FacetQuestion): Promise<FacetCounts[]> {
  const { context } = asked
  const request = joinedRequest(context, question)
  const among = equalCandidates(setOf(await passing(asked, question.seqs)))
  const counted = await countFacets(context, request, among, async () => among)
  if (context.pace.cutoff) throw timedOut()
  return asJoined(context, request, counted, question)
}

/** The documents with one of the keys that pass the filter, oldest first. */
async function relatedPairs(asked: KeySearch, keys: string[]): Promise<Pair[]> {
  const { context, keyField } = asked
  const { sql, pace } = context
  const relation = keysIn(keyField)
  const all: Pair[] = []
  for (const list of keys) {
    const pairs = pace.query<Pair>(sql, {
      sql: `SELECT k.seq, json_quote(k.key) AS key FROM ${relation.sql} k WHERE k.key IN (SELECT value FROM json_each(?))
        LIMIT ?`,
      bindings: [...relation.bindings, list, MAX_JOIN_KEYS + 1],
    })
    for (const pair of pairs) all.push(pair)
    if (all.length > MAX_JOIN_KEYS) throw tooMany(context, MAX_JOIN_KEYS)
    if (!(await pace.rest())) throw timedOut()
  }
  all.sort((a, b) => a.seq - b.seq)
  const kept = new Set(
    await passing(
      asked,
      all.map(({ seq }) => seq),
    ),
  )
  return all.filter(({ seq }) => kept.has(seq))
}

/** Which of these documents pass the filter. */
async function passing({ context, filter }: KeySearch, seqs: readonly number[]): Promise<number[]> {
  const passed = await filteredIn(context, filter, setOf([...new Set(seqs)]))
  if (context.pace.cutoff) throw timedOut()
  return seqsOf(passed)
}

const tooMany = ({ schema }: SearchContext, most: number): ApiError =>
  new ApiError(
    422,
    `At most ${most} related documents of \`${schema.name}\` can be joined to a page or sorted by. Narrow the filter, or ask for fewer hits.`,
  )

/** Places of documents in an order, from 0. Equal documents share a place. */
async function placesIn(
  { context }: KeySearch,
  seqs: readonly number[],
  sortBy: string,
): Promise<Map<number, number>> {
  if (seqs.length > MAX_JOIN_SORTED) throw tooMany(context, MAX_JOIN_SORTED)
  const { sql, schema, pace } = context
  const split = splitSort(sortBy)
  const [first] = split
  if (split.length === 1 && first!.name === 'id') {
    const ids = pace.query<{ seq: number }>(
      sql,
      fragment(
        `SELECT seq FROM documents WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY id ${/^desc$/i.test(first!.direction) ? 'DESC' : 'ASC'}`,
        JSON.stringify(seqs),
      ),
    )
    return new Map(ids.map(({ seq }, place) => [seq, place]))
  }
  const set = setOf(seqs)
  const sort = parseSort(split, schema)
  checkOrder(context, sort)
  const { order } = await orderingOf(context, sort, { text: false, vector: false, set })
  const placed = await firstOf(set, order, seqs.length, pace)
  const places = new Map<number, number>()
  for (const [at, { seq, keys }] of placed.entries()) {
    const isEqual = at > 0 && placed[at - 1]!.keys.every((value, key) => value === keys[key])
    const last = at === 0 ? -1 : places.get(placed[at - 1]!.seq)!
    places.set(seq, isEqual ? last : last + 1)
  }
  return places
}

const documentsIn = (pairs: readonly Pair[]): number[] => [...new Set(pairs.map(({ seq }) => seq))]

async function ranksOf(
  asked: KeySearch,
  pairs: Pair[],
  { sortBy }: RankQuestion,
): Promise<[string, number][]> {
  const places = await placesIn(asked, documentsIn(pairs), sortBy)
  const ranks = new Map<string, number>()
  for (const { seq, key } of pairs) {
    const place = places.get(seq)!
    if (place < (ranks.get(key) ?? Number.POSITIVE_INFINITY)) ranks.set(key, place)
  }
  return [...ranks]
}

async function documentsOf(
  asked: KeySearch,
  pairs: Pair[],
  { include, exclude, sortBy, limit }: DocumentQuestion,
): Promise<Pick<JoinAnswer, 'related' | 'documents'>> {
  const { context } = asked
  if (sortBy !== '') {
    const places = await placesIn(asked, documentsIn(pairs), sortBy)
    pairs.sort((a, b) => places.get(a.seq)! - places.get(b.seq)! || a.seq - b.seq)
  }
  const byKey = new Map<string, { seqs: number[]; count: number }>()
  for (const { seq, key } of pairs) {
    const entry = byKey.get(key) ?? { seqs: [], count: 0 }
    entry.count++
    if (limit === 0 || entry.seqs.length < limit) entry.seqs.push(seq)
    byKey.set(key, entry)
  }
  const seqs = [...new Set([...byKey.values()].flatMap((entry) => entry.seqs))]
  if (seqs.length > MAX_JOIN_DOCUMENTS || bytesOf(context.sql, seqs) > MAX_JOIN_BYTES) {
    throw new ApiError(
      422,
      `A join adds at most ${MAX_JOIN_DOCUMENTS} documents and ${MAX_JOIN_BYTES} bytes to a page. Set \`limit\` for \`${context.schema.name}\` in \`include_fields\`, or ask for fewer hits.`,
    )
  }
  const withoutVectors = !context.schema.fields.some(
    (field) => isVector(field) && isProjected(field.name, include, exclude),
  )
  const shown = new Map(
    [...context.read(seqs, withoutVectors)].map(([seq, document]) => [
      seq,
      project(document, include, exclude),
    ]),
  )
  await attachJoins(context, shown, { include, exclude })
  const places = new Map([...shown.keys()].map((seq, place) => [seq, place]))
  return {
    documents: [...shown.values()],
    related: [...byKey].map(([key, entry]) => [
      key,
      entry.seqs.flatMap((seq) => places.get(seq) ?? []),
      entry.count,
    ]),
  }
}

function bytesOf(sql: SqlStorage, seqs: number[]): number {
  const { bytes } = sql
    .exec<{ bytes: number | null }>(
      'SELECT sum(length(body)) AS bytes FROM documents WHERE seq IN (SELECT value FROM json_each(?))',
      JSON.stringify(seqs),
    )
    .one()
  return bytes ?? 0
}

// =============================================================================
// The joins of searches, and of other requests: single documents, exports, and changes by filter.

export interface JoiningFields {
  filterBy?: string
  include?: string
  exclude?: string
}

/** @returns the joins in these parameters, evaluated; nothing if they have none @throws ApiError */
export async function joining(
  context: SearchContext,
  { filterBy = '', include = '', exclude = '' }: JoiningFields,
  scope: SearchScope = {},
  others: LongSearches,
): Promise<Joining> {
  const params = { filter_by: filterBy, include_fields: include, exclude_fields: exclude }
  if (!hasJoins(params)) return {}
  const limits = { until: performance.now() + CUTOFF_MS, depth: MAX_JOIN_DEPTH }
  const joined = await withJoins(context, params, atHome(context, scope), limits)
  const attach = (shown: Map<number, Document>): Promise<void> =>
    attachJoins(runningAt(joined, new Pace(others)), shown, { include, exclude })
  return { joins: joined.joins?.documents, attach }
}

/**
 * Evaluates the joins of a search's filter, before anything else that it waits for.
 * @param started by performance.now() @param caller aborts when it has left
 */
export async function searchJoins(
  context: SearchContext,
  params: SearchParameters,
  scope: SearchScope,
  { started, caller }: { started: number; caller: AbortSignal },
): Promise<SearchContext> {
  if (!hasJoins(params)) return context
  const { cutoffMs, filterBy } = parseRequest(params, context.schema)
  const limits = { until: started + cutoffMs, depth: MAX_JOIN_DEPTH, caller }
  return withJoins(context, { ...params, filter_by: filterBy }, atHome(context, scope), limits)
}

const atHome = ({ port }: SearchContext, scope: SearchScope): SearchScope => ({
  ...scope,
  home: port?.objectId,
})
