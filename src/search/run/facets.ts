/** Counts facet values over all matches of a search, not only over its page. */

import { ApiError } from '../../errors'
import { FirstItems } from '../../lib/first-items'
import { integer } from '../../lib/json'
import { wordDistance } from '../../lib/nearest'
import { isExcluded, project } from '../documents/store'
import { jsonLists } from '../fragment'
import { MAX_DISTINCT, MAX_JOIN_KEYS } from '../limits'
import type { FacetQuery, FacetRange, FacetRequest, JoinedFacets } from '../request/parameters'
import { parseRequest, type SearchRequest } from '../request/request'
import {
  BLOCK,
  type Block,
  numberAt,
  type Offsets,
  placeAt,
  type Scalar,
  valuesAt,
  type Words,
} from '../schema/column'
import { isBool, isInt64, isNumber, isString, type StoredSchema } from '../schema/layout'
import { findField } from '../schema/schema'
import { isObject, leaves, partsOf } from '../schema/values'
import { type Steps, stepwise } from '../steps'
import type { TokenRules } from '../text/analyzer'
import { rulesOf } from '../text/query'
import { typosAllowed } from '../text/similar'
import { beginning, compare, comparedTokens } from '../text/terms'
import type { Document, FacetCounts, FacetQuestion, Field, JoinPlace } from '../types'
import type { Candidates } from './candidates'
import type { Running, SearchContext } from './context'
import { groupsOfBlocks, NO_GROUP } from './grouping'
import { highlightFacet } from './hits'
import { shownOf } from './join-attach'
import { excludesIn, type Joins } from './joins'
import { blocksOf, eachBlock, type MatchSet, seqsOf, sizeOf } from './match-set'

/**
 * @param best the best hits, for facets that count those alone
 * @throws ApiError 422 for a facet with more values than are counted
 */
export async function countFacets(
  context: Running,
  request: SearchRequest,
  candidates: Candidates,
  best: () => Promise<Candidates>,
): Promise<FacetCounts[]> {
  const { schema } = context
  const counts: FacetCounts[] = []
  let bestFound: Promise<Candidates> | undefined
  for (const facet of request.facets) {
    if (facet.topK) bestFound ??= best()
    const set = await ((await (facet.topK && bestFound)) || candidates).set()
    const query = request.facetQuery?.field === facet.field.name ? request.facetQuery : undefined
    const values = new Values(schema, facet, query)
    const ranges = facet.ranges.length > 0 ? new Ranges(facet) : undefined
    const counting = ranges ?? values
    await count(context, request, set, { facet, counting })
    if (query !== undefined && query.maxTypos > 0 && ranges === undefined && values.isEmpty) {
      values.takesSome = true
      await count(context, request, set, { facet, counting })
      await context.pace.through(values.keepSimilar(query))
    }
    const counted = ranges?.counted() ?? (await context.pace.through(values.counted(request)))
    if (facet.returnParent && ranges === undefined) {
      await addParents(context, request, facet.field, (text) => values.documentWith(text), counted.counts)
    }
    counts.push({ field_name: facet.field.name, sampled: false, ...counted })
    await context.pace.rest()
  }
  if (request.joinedFacets.length === 0) return counts
  const set = await candidates.set()
  const joined = await countJoinedFacets(context, request, set)
  return inOrder(counts, joined, request.joinedFacets)
}

async function count(
  context: Running,
  request: SearchRequest,
  set: MatchSet,
  { facet: { field, order }, counting }: { facet: FacetRequest; counting: Counting },
): Promise<void> {
  const by = order === undefined || order.by === 'value' ? undefined : order.by
  const blockOf = blocksOf(context)
  const groups = request.groupBy.length > 0 ? groupsOfBlocks(context, request) : undefined
  await eachBlock(set, context.pace, (number, offsets) => {
    const block = blockOf(field, number, offsets)
    const ranks = by && blockOf(by, number, offsets)
    counting.add({ number, offsets, block, groupOf: groups?.(number, offsets), ranks })
  })
}

/** Documents that are read at once. */
const AT_ONCE = 50

/**
 * Adds to each count the object around its value. A parent shows what hits show: `include_fields` and
 * `exclude_fields` apply to it, and vectors are left out.
 * @param documentWith the sequence number of a document that has a value
 * @throws ApiError what `pace` throws
 */
async function addParents(
  context: Running,
  { includeFields, excludeFields }: SearchRequest,
  { name }: Field,
  documentWith: (text: string) => number,
  counts: FacetCounts['counts'],
): Promise<void> {
  for (let from = 0; from < counts.length; from += AT_ONCE) {
    const slice = counts.slice(from, from + AT_ONCE)
    const documents = context.read([...new Set(slice.map(({ value }) => documentWith(value)))], true)
    context.pace.countDocuments(documents.size)
    for (const count of slice) {
      const document = documents.get(documentWith(count.value))
      if (document === undefined) continue
      const parent = parentOf(project(document, includeFields, excludeFields), name, count.value)
      if (parent !== undefined) count.parent = parent
    }
    await context.pace.rest()
  }
}

/**
 * The object that holds a value of a field.
 * @param text the value as a facet shows it
 * @returns undefined for a field of the top level, and when the document lost the value
 */
function parentOf(document: Document, name: string, text: string): unknown {
  const path = partsOf(name)
  if (path === undefined || Object.hasOwn(document, name)) return undefined
  const leaf = leaves(document, name, path).find(({ value }) =>
    [value].flat().some((element) => String(element) === text),
  )
  return isObject(leaf?.parent) ? leaf.parent : undefined
}

// =============================================================================
// Counts the values of a facet.

type Counted = Pick<FacetCounts, 'counts' | 'stats'>

/** The matches of a block, with the values of a facet. */
interface FacetBlock {
  number: number
  offsets: Offsets
  block: Block
  /** in grouped searches: a document's group */
  groupOf: ((at: number) => number) | undefined
  /** the values of the field that orders a facet's values */
  ranks: Block | undefined
}

interface Counting {
  add(part: FacetBlock): void
}

/**
 * The most values that are compared for typos, if none begins with the facet query. A comparison takes microseconds.
 */
const MAX_COMPARED = 50_000
/** To compare the words of a value, or to find its place in the order, takes so many times as long as to look at a number (steps.ts). */
const [COST_OF_COMPARING, COST_OF_ORDERING] = [32, 8]

/** A value and its counts so far. */
interface Entry {
  value: Scalar
  /** its index among the values */
  place: number
  /** documents that have it; in grouped searches, groups */
  count: number
  /** occurrences in the documents */
  times: number
  /** the last document that was counted */
  last: number
  /** the sort field's value in the best document that has this value */
  rank: Scalar | undefined
  /** the newest document with it, where parents are wanted */
  seq: number
}

class Values implements Counting {
  readonly #field: Field
  readonly #order: FacetRequest['order']
  readonly #entries = new Map<Scalar, Entry>()
  readonly #returnsParent: boolean
  readonly #seen = new SeenInGroups()
  /** by the text of a value on the page: a document that has it */
  readonly #documents = new Map<string, number>()
  readonly #beginnings = new Map<Scalar, string[]>()
  readonly #rules: TokenRules
  /** the words of a facet query */
  readonly #wanted: string[]
  readonly #passes: (text: () => string) => boolean
  /** of numbers: those that the facet query leaves out */
  readonly #others = new Map<Scalar, number>()
  /** all values count, and the first MAX_COMPARED are enough */
  takesSome = false

  constructor(schema: StoredSchema, { field, order, returnParent }: FacetRequest, query?: FacetQuery) {
    this.#field = field
    this.#rules = rulesOf(schema, field)
    this.#wanted = query === undefined ? [] : comparedTokens(query.text, this.#rules).map(({ text }) => text)
    this.#passes = query === undefined ? () => true : this.#test(query)
    this.#returnsParent = returnParent
    this.#order = order
  }

  /** @returns whether a value passes a facet query, by its normal form */
  #test(query: FacetQuery): (text: () => string) => boolean {
    const passes = beginning(query.text, this.#rules)
    if (!isNumber(this.#field)) return (text) => passes(text())
    return (given) => {
      const text = given()
      // There may be a million, and to tokenize one takes microseconds.
      const words = /^\d+$/.test(text) ? [text] : comparedTokens(text, this.#rules).map((token) => token.text)
      return (
        this.#wanted.length > 0 &&
        this.#wanted.every((wanted) => words.some((word) => word.startsWith(wanted)))
      )
    }
  }

  add({ number, offsets, block, groupOf, ranks }: FacetBlock): void {
    const { values, starts, words } = block
    const isPlain = groupOf === undefined && ranks === undefined && !this.#returnsParent
    if (words !== undefined && starts === undefined && isPlain) {
      this.#addWords(values, words, offsets)
      return
    }
    /** by id: null for strings that do not count */
    const known: (Entry | null | undefined)[] = []
    const entryAt = (place: number): Entry | null => {
      if (words === undefined) {
        const value = numberAt(values, place)
        return Number.isNaN(value) ? null : this.#entryOf(value, () => this.#text(value))
      }
      const id = Number(values[place])
      if (id === 0) return null
      const before = known[id]
      if (before !== undefined) return before
      const entry = this.#entryOf(words.text(id), () => words.norm(id))
      known[id] = entry
      return entry
    }
    for (const at of offsets) {
      const seq = number * BLOCK + at
      const group = groupOf?.(at) ?? NO_GROUP
      const end = starts === undefined ? at + 1 : starts[at + 1]!
      for (let place = starts === undefined ? at : starts[at]!; place < end; place++) {
        const entry = entryAt(place)
        if (entry === null) continue
        entry.times++
        if (entry.last === seq) continue
        entry.last = seq
        if (this.#returnsParent) entry.seq = Math.max(entry.seq, seq)
        if (ranks !== undefined) this.#rank(entry, ranks, at)
        if (group === NO_GROUP || this.#seen.add(entry.place, group)) entry.count++
      }
    }
    this.#requireFew()
  }

  /** Counts documents that have one string at most, without a call for each of them. */
  #addWords(ids: Block['values'], words: Words, offsets: Offsets): void {
    const counts = new Uint32Array(words.size)
    for (let index = 0; index < offsets.length; index++) counts[ids[offsets[index]!] as number]!++
    for (let id = 1; id < counts.length; id++) {
      const count = counts[id]!
      const entry = count === 0 ? null : this.#entryOf(words.text(id), () => words.norm(id))
      if (entry === null) continue
      entry.count += count
      entry.times += count
    }
    this.#requireFew()
  }

  /** A value ranks as high as its best document. */
  #rank(entry: Entry, ranks: Block, at: number): void {
    const place = placeAt(ranks, at)
    if (place === -1) return
    const { values, words } = ranks
    const rank = words === undefined ? numberAt(values, place) : words.norm(Number(values[place]))
    const isBetter =
      entry.rank === undefined || compare(rank, entry.rank) < 0 === (this.#order?.direction === 'ASC')
    if (isBetter) entry.rank = rank
  }

  /** @param form by which the value is compared with the facet query @returns null for a value that does not count */
  #entryOf(value: Scalar, form: () => string): Entry | null {
    const known = this.#entries.get(value)
    if (known !== undefined) return known
    if (this.takesSome ? this.#entries.size >= MAX_COMPARED : !this.#isWanted(value, form)) return null
    const place = this.#entries.size
    const entry = { value, place, count: 0, times: 0, last: -1, rank: undefined, seq: -1 }
    this.#entries.set(value, entry)
    return entry
  }

  /** Numbers that are not wanted are counted for the totals, which are of everything found. */
  #isWanted(value: Scalar, form: () => string): boolean {
    const others = this.#others.get(value)
    if (others === undefined && this.#passes(form)) return true
    if (isNumber(this.#field)) this.#others.set(value, (others ?? 0) + 1)
    return false
  }

  /** @throws ApiError 422 */
  #requireFew(): void {
    if (this.#entries.size > MAX_DISTINCT) {
      throw new ApiError(
        422,
        `\`facet_by\` counts at most ${MAX_DISTINCT} values of a field, and \`${this.#field.name}\` has more. Find fewer documents with \`filter_by\`, or narrow the values with \`facet_query\`.`,
      )
    }
  }

  *counted({ maxFacetValues, highlight }: SearchRequest): Steps<Counted> {
    const entries = [...this.#entries.values()]
    const first = new FirstItems(maxFacetValues, this.#compare)
    yield* stepwise(entries.length, (at) => first.offer(entries[at]!), COST_OF_ORDERING)
    const { items } = first
    const counts: Counted['counts'] = []
    const show = ({ value, count, seq }: Entry) => {
      const text = this.#text(value)
      if (this.#returnsParent) this.#documents.set(text, seq)
      const marked = this.#beginnings.get(value) ?? this.#wanted
      counts.push({ count, highlighted: highlightFacet(text, marked, this.#rules, highlight), value: text })
    }
    yield* stepwise(items.length, (at) => show(items[at]!), COST_OF_COMPARING)
    return { counts, stats: this.#stats() }
  }

  #text(value: Scalar): string {
    return isBool(this.#field) ? (value === 1 ? 'true' : 'false') : String(value)
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0
  }

  documentWith(text: string): number {
    return this.#documents.get(text) ?? -1
  }

  /** Leaves the values with the fewest typos. */
  *keepSimilar({ maxTypos }: FacetQuery): Steps {
    const similar = new Map<Scalar, Similar>()
    const values = [...this.#entries.keys()]
    const look = (at: number) => {
      const found = similarity(this.#text(values[at]!), this.#wanted, maxTypos, this.#rules)
      if (found !== undefined) similar.set(values[at]!, found)
    }
    yield* stepwise(values.length, look, COST_OF_COMPARING)
    const least = Math.min(...[...similar.values()].map(({ typos }) => typos))
    for (const value of values) {
      const found = similar.get(value)
      if (found?.typos === least) this.#beginnings.set(value, found.beginnings)
      else this.#entries.delete(value)
    }
  }

  #compare = (a: Entry, b: Entry): number => {
    const order = this.#order
    const sign = order?.direction === 'DESC' ? -1 : 1
    let by: number
    if (order === undefined) by = b.count - a.count
    else if (order.by === 'value') by = sign * compare(withoutCase(a.value), withoutCase(b.value))
    else if (a.rank === undefined || b.rank === undefined) {
      by = Number(a.rank === undefined) - Number(b.rank === undefined)
    } else by = sign * (compare(a.rank, b.rank) || a.count - b.count)
    return by || compareTies(a.value, b.value)
  }

  #stats(): FacetCounts['stats'] {
    const total = this.#entries.size
    if (!isNumber(this.#field)) return { total_values: total }
    const totals = new Totals(this.#field)
    for (const { value, times } of this.#entries.values()) {
      if (!this.#others.has(value)) totals.add(value as Numeric, times)
    }
    for (const [value, times] of this.#others) totals.add(value as Numeric, times)
    return { ...totals.stats, total_values: total }
  }
}

/** As in Typesense, among otherwise equal texts the shorter come first, then the alphabetically later. */
const compareTies = (a: Scalar, b: Scalar): number =>
  typeof a === 'string' && typeof b === 'string' ? a.length - b.length || compare(b, a) : compare(a, b)

const withoutCase = (value: Scalar): Scalar =>
  typeof value === 'string' ? value.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : value

/** A value whose words are near those of a query. */
interface Similar {
  /** typos in all words together */
  typos: number
  /** beginnings of the value's words to highlight, as long as the words of the query */
  beginnings: string[]
}

/**
 * How near a value is to a query: each word of the query is near the beginning of one of the value's.
 * @param maxTypos in a word; short words may have fewer
 * @returns undefined if it is not near
 */
function similarity(
  value: string,
  wanted: readonly string[],
  maxTypos: number,
  rules: TokenRules,
): Similar | undefined {
  if (wanted.length === 0) return undefined
  const words = comparedTokens(value, rules).map(({ text }) => text)
  const found: Similar = { typos: 0, beginnings: [] }
  for (const word of wanted) {
    const most = typosAllowed(word, {
      maxTypos,
      minLengthOneTypo: 4,
      minLengthTwoTypos: 7,
      withDigits: true,
      numbers: true,
    })
    let best: { typos: number; beginning: string } | undefined
    for (const other of words) {
      const { beginning: typos } = wordDistance(word, other, most)
      if (typos <= most && typos < (best?.typos ?? Number.POSITIVE_INFINITY)) {
        best = { typos, beginning: other.slice(0, word.length) }
      }
    }
    if (best === undefined) return undefined
    found.typos += best.typos
    found.beginnings.push(best.beginning)
  }
  return found
}

// =============================================================================
// What facets count besides values: sums of a field's numbers, and, in grouped searches, pairs of a value and a group.

type Numeric = number | bigint

/** Adds up a field's numbers, exactly for int64. */
class Totals {
  readonly #isExact: boolean
  #min: Numeric = Number.POSITIVE_INFINITY
  #max: Numeric = Number.NEGATIVE_INFINITY
  #sum = 0
  /** the part of the sum that `#sum` cannot hold without rounding */
  #large = 0n
  #times = 0

  constructor(field: Field) {
    this.#isExact = isInt64(field)
  }

  /** Adds a value with its number of occurrences. */
  add(value: Numeric, times: number): void {
    if (value < this.#min) this.#min = value
    if (value > this.#max) this.#max = value
    this.#times += times
    const product = Number(value) * times
    if (!this.#isExact || (typeof value === 'number' && Math.abs(product) <= HALF_OF_SAFE)) {
      this.#sum += product
      if (!this.#isExact || Math.abs(this.#sum) <= HALF_OF_SAFE) return
      this.#large += BigInt(this.#sum)
      this.#sum = 0
    } else {
      this.#large += BigInt(value) * BigInt(times)
    }
  }

  /** @returns undefined where nothing was added */
  get stats(): { avg: number; max: Numeric; min: Numeric; sum: Numeric } | undefined {
    if (this.#times === 0) return undefined
    const sum = this.#isExact ? integer(String(this.#large + BigInt(this.#sum))) : this.#sum
    return { avg: Number(sum) / this.#times, max: this.#max, min: this.#min, sum }
  }
}

/** The sum of two such numbers is still a safe integer. */
const HALF_OF_SAFE = 2 ** 52 - 1

/** Upper bound of groups, so that a value and a group together fit into one safe integer. */
const RADIX = 2 ** 26

/** The pairs of a value and a group that a facet has counted. All of them are in memory. */
class SeenInGroups {
  readonly #pairs = new Set<number>()

  /**
   * Remembers a pair.
   * @param value a number of the value, below 2^26 @param group that of its group
   * @returns whether the pair is new
   * @throws ApiError 422 for more pairs than are counted
   */
  add(value: number, group: number): boolean {
    const before = this.#pairs.size
    if (this.#pairs.add(value * RADIX + group).size === before) return false
    if (before < MAX_DISTINCT) return true
    throw new ApiError(
      422,
      `\`facet_by\` with \`group_by\` counts at most ${MAX_DISTINCT} pairs of a value and a group. Find fewer documents with \`filter_by\`.`,
    )
  }
}

// =============================================================================
// Counts the ranges of a facet.

/** Counts ranges. Empty ones are left out, like values without documents. */
class Ranges implements Counting {
  readonly #ranges: FacetRange[]
  readonly #counts: number[]
  readonly #totals: Totals
  readonly #seen = new SeenInGroups()

  constructor({ field, ranges }: FacetRequest) {
    this.#totals = new Totals(field)
    this.#ranges = ranges
    this.#counts = ranges.map(() => 0)
  }

  add({ offsets, block, groupOf }: FacetBlock): void {
    for (const at of offsets) {
      const values = valuesAt(block, at) as Numeric[]
      const group = groupOf?.(at) ?? NO_GROUP
      for (const value of values) this.#totals.add(value, 1)
      for (const [range, { from, to }] of this.#ranges.entries()) {
        const isIn = values.some(
          (value) => (from === undefined || value >= from) && (to === undefined || value < to),
        )
        if (!isIn) continue
        // A group counts once in each range that it has a value in.
        if (group === NO_GROUP || this.#seen.add(range, group)) this.#counts[range]!++
      }
    }
  }

  counted(): Counted {
    const counts = this.#ranges
      .map(({ label }, index) => ({ count: this.#counts[index]!, highlighted: label, value: label }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count)
    return { counts, stats: { ...this.#totals.stats, total_values: counts.length } }
  }
}

// =============================================================================
// Facets of joined collections: `facet_by=$collection(field)` counts the related documents of the matches.

const PROBLEM = 'Error parsing reference facet: '

/**
 * Asks other collections for facets. A related document counts once, however many matches it belongs to.
 * @param set the matches
 * @returns the facets of each part of `facet_by` that names another collection
 * @throws ApiError 400 for a collection that the key may not read, 422 for too many matches
 */
async function countJoinedFacets(
  context: Running,
  request: SearchRequest,
  set: MatchSet,
): Promise<FacetCounts[][]> {
  if (request.joinedFacets.length === 0) return []
  const joins = context.joins!
  if (sizeOf(set) > MAX_JOIN_KEYS) {
    throw new ApiError(
      422,
      `Facets of joined collections take at most ${MAX_JOIN_KEYS} matches. Find fewer documents with \`filter_by\`.`,
    )
  }
  const seqs = seqsOf(set)
  const counts: FacetCounts[][] = []
  const related = new Map<string, number[]>()
  for (const { collection, facetBy } of request.joinedFacets) {
    if (!Object.hasOwn(joins.scope.joins ?? {}, collection)) {
      throw new ApiError(400, `${PROBLEM}Referenced collection \`${collection}\` not found.`)
    }
    const place = joins.place(collection, 'facet_by')
    const known = related.get(place.objectId) ?? (await relatedTo(context, joins, place, seqs))
    related.set(place.objectId, known)
    const facets: FacetQuestion = {
      facetBy,
      calls: collection,
      exclude: excludesIn(joins.scope.excludes ?? '', (name) => joins.isCalled(name, place)),
      hidden: joins.scope.includes === true,
      maxFacetValues: request.maxFacetValues,
      seqs: known,
    }
    const answer = await context.pace.away(joins.ask(place, { filter: '', want: { facets } }))
    counts.push(answer.facets ?? [])
  }
  return counts
}

/** The related documents of matches, by their sequence numbers there. */
async function relatedTo(
  context: Running,
  joins: Joins,
  place: JoinPlace,
  seqs: readonly number[],
): Promise<number[]> {
  const { on } = await context.pace.away(joins.relation(place))
  const found = new Set<number>()
  for (const [filter, group] of shownOf(context, joins, place, seqs)) {
    const keys = new Set(joins.keysOf(group, on).map(({ key }) => key))
    if (keys.size === 0) continue
    const want = { related: jsonLists(keys) }
    const answer = await context.pace.away(joins.ask(place, { filter, want }))
    for (const seq of answer.seqs ?? []) found.add(seq)
  }
  return [...found].sort((a, b) => a - b)
}

/**
 * Parses another collection's request for facets here.
 * @throws ApiError 400 or 404 in Typesense's words
 */
export function joinedRequest({ schema }: SearchContext, question: FacetQuestion): SearchRequest {
  const { facetBy, maxFacetValues } = question
  const params = { q: '*', facet_by: facetBy, max_facet_values: String(maxFacetValues) }
  let request: SearchRequest
  try {
    request = parseRequest(params, schema)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new ApiError(error.status, `${PROBLEM}${error.message}`)
  }
  if (request.joinedFacets.length > 0) throw new ApiError(400, `${PROBLEM}\`${facetBy}\`.`)
  for (const { field, order, returnParent } of request.facets) {
    // A field that the key hides is treated as unknown, also as a sort field of values.
    const fields = order === undefined || order.by === 'value' ? [field] : [field, order.by]
    for (const { name } of fields) {
      if (question.hidden || isExcluded(name, question.exclude)) {
        throw new ApiError(404, `${PROBLEM}Could not find a facet field named \`${name}\` in the schema.`)
      }
    }
    if (returnParent) throw new ApiError(400, `${PROBLEM}Invalid facet param \`return_parent\`.`)
  }
  return request
}

/** Facets as the other collection shows them, each value with the filter that finds it there. */
export function asJoined(
  { schema }: SearchContext,
  { facets }: SearchRequest,
  counted: readonly FacetCounts[],
  { calls }: FacetQuestion,
): FacetCounts[] {
  return counted.map((each, index) => {
    const { ranges } = facets[index]!
    const quote = isString(findField(schema, each.field_name)!) ? '`' : ''
    const filterOf = (value: string): string => {
      const range = ranges.find(({ label }) => label === value)
      if (range === undefined) return `${quote}${value}${quote}`
      if (range.from === undefined) return `<=${range.to}`
      return range.to === undefined ? `>=${range.from}` : `[${range.from}..${range.to}]`
    }
    return {
      ...each,
      field_name: `${calls}(${each.field_name})`,
      counts: each.counts.map((count) => ({
        ...count,
        facet_filter: `$${calls}(${each.field_name}: ${filterOf(count.value)})`,
      })),
    }
  })
}

/** Own facets and joined ones in the order of `facet_by`. */
function inOrder(
  own: readonly FacetCounts[],
  joined: readonly FacetCounts[][],
  places: readonly JoinedFacets[],
): FacetCounts[] {
  const all: FacetCounts[] = []
  let next = 0
  for (const [index, { at }] of places.entries()) {
    all.push(...own.slice(next, at), ...joined[index]!)
    next = at
  }
  return [...all, ...own.slice(next)]
}
