/**
 * Counts facet values over all matches of a search, not only over its page. SQLite counts each part, and the counts
 * are added up here.
 */
import { ApiError } from '../../errors'
import { integer } from '../../exact-json'
import { fragment, join, type SqlFragment } from '../fragment'
import { MAX_DISTINCT } from '../limits'
import type { FacetQuery, FacetRange, FacetRequest } from '../request/facet-request'
import type { SearchRequest } from '../request/request'
import { fieldValue } from '../request/sort'
import {
  columnsTable,
  isArray,
  isBool,
  isInt64,
  isNumber,
  isString,
  normColumn,
  type StoredSchema,
  scalarColumn,
  valuesTable,
} from '../schema/layout'
import { rulesOf } from '../text/rules'
import { tokenize } from '../text/words'
import type { FacetCounts, Field } from '../types'
import type { Candidates } from './candidates'
import type { SearchContext } from './context'
import { addParents } from './facet-parents'
import { type Numeric, Totals } from './facet-totals'
import { type Similar, similarity } from './facet-typos'
import { highlightFacet } from './highlight'
import type { Pace } from './pace'
import { FIRST_WIDTH_GROUPED } from './scan'

/**
 * @param best the best hits, for facets that count those alone
 * @throws ApiError 422 for a facet with more values than are counted
 */
export async function countFacets(
  context: SearchContext,
  request: SearchRequest,
  { parts }: Candidates,
  best: () => Promise<Candidates>,
  pace: Pace,
): Promise<FacetCounts[]> {
  const { sql, schema } = context
  const counts: FacetCounts[] = []
  for (const facet of request.facets) {
    const matches = facet.topK ? (await best()).parts : parts
    const count = async (counting: Counting, query: FacetQuery | undefined) => {
      for await (const { relation } of matches(pace, FIRST_WIDTH_GROUPED)) {
        counting.add(pace, sql, facetValues(schema, facet.field, relation, query))
      }
    }
    const query = request.facetQuery?.field === facet.field.name ? request.facetQuery : undefined
    const values = new Values(schema, facet)
    const counting = facet.ranges.length > 0 ? new Ranges(facet) : values
    await count(counting, query)
    if (query !== undefined && query.maxTypos > 0 && counting === values && values.isEmpty) {
      values.takesSome = true
      await count(values, undefined)
      values.keepSimilar(query, schema)
    }
    const counted = counting.counted(schema, request, query)
    if (facet.returnParent && counting === values) {
      await addParents(
        context,
        request,
        facet.field,
        (text) => values.documentWith(text),
        counted.counts,
        pace,
      )
    }
    counts.push({ field_name: facet.field.name, sampled: false, ...counted })
    await pace.rest()
  }
  return counts
}

type Counted = Pick<FacetCounts, 'counts' | 'stats'>

/** The relation v(seq, value): every value of the field in the matching documents. */
function facetValues(
  schema: StoredSchema,
  field: Field,
  relation: SqlFragment,
  query: FacetQuery | undefined,
): SqlFragment {
  const slot = schema.slots[field.name]!
  const [table, value, norm] = isArray(field)
    ? [valuesTable(slot), 'c.value', 'c.norm']
    : [columnsTable(slot), `c.${scalarColumn(slot)}`, `c.${normColumn(slot)}`]
  const parts = [
    fragment(`SELECT c.seq, ${value} AS value FROM (`),
    relation,
    fragment(`) d JOIN ${table} c ON c.seq = d.seq WHERE ${value} IS NOT NULL`),
  ]
  if (query !== undefined) {
    // Matches word prefixes: with a space in front of the value, each word follows a space.
    const beginnings = tokenize(query.text, rulesOf(schema, field)).map((token) => ` ${token.text}`)
    const text = isString(field)
      ? norm
      : isBool(field)
        ? `iif(${value}, 'true', 'false')`
        : `CAST(${value} AS TEXT)`
    parts.push(
      fragment(
        ` AND NOT EXISTS (SELECT 1 FROM json_each(?) w WHERE instr(' ' || ${text}, w.value) = 0)`,
        JSON.stringify(beginnings),
      ),
    )
  }
  return join(parts, '')
}

interface Counting {
  /** Counts the values of a part. @param values the relation v(seq, value) */
  add(pace: Pace, sql: SqlStorage, values: SqlFragment): void
  counted(schema: StoredSchema, request: SearchRequest, query: FacetQuery | undefined): Counted
}

/** A BigInt is a whole number that a double cannot hold. */
type Scalar = string | number | bigint

/**
 * SQL of a field's values, for `readValue`. SqlStorage would round whole numbers beyond 2^53, so those are read as
 * text.
 */
const exactly = (field: Field, value: string): string =>
  isInt64(field) ? `iif(${value} BETWEEN -${SAFE} AND ${SAFE}, ${value}, CAST(${value} AS TEXT))` : value

const SAFE = Number.MAX_SAFE_INTEGER

const readValue = <Value extends Scalar | null>(field: Field, value: Value): Value | bigint | number =>
  typeof value === 'string' && isInt64(field) ? integer(value) : value

/** Values that are compared with a facet query that none begins with. A comparison takes microseconds. */
const MAX_COMPARED = 50_000

/** A value and its counts so far. */
interface Entry {
  value: Scalar
  count: number
  /** occurrences in the documents */
  times: number
  /** of the field that values are ordered by: its value in the best document */
  rank: Scalar | null
  /** the sequence number of a document with it, where parents are wanted */
  seq: number | null
}

class Values implements Counting {
  readonly #field: Field
  readonly #order: FacetRequest['order']
  readonly #rank: string
  readonly #rankField: Field | undefined
  readonly #entries = new Map<Scalar, Entry>()
  readonly #seq: string
  /** by the text of a value on the page: a document that has it */
  readonly #documents = new Map<string, number>()
  readonly #beginnings = new Map<Scalar, string[]>()
  /** the first MAX_COMPARED values are enough */
  takesSome = false

  constructor(schema: StoredSchema, { field, order, returnParent }: FacetRequest) {
    this.#field = field
    this.#seq = returnParent ? 'max(d.seq)' : 'NULL'
    this.#order = order
    // A value ranks where its best document does.
    this.#rankField = order === undefined || order.by === 'value' ? undefined : order.by
    this.#rank =
      this.#rankField === undefined
        ? 'NULL'
        : exactly(
            this.#rankField,
            `${order?.direction === 'ASC' ? 'min' : 'max'}(${fieldValue(schema, this.#rankField)})`,
          )
  }

  #query(values: SqlFragment): SqlFragment {
    return join(
      [
        fragment(
          `SELECT ${exactly(this.#field, 'd.value')} AS value, count(DISTINCT d.seq) AS count, count(*) AS times, ${this.#rank} AS rank, ${this.#seq} AS seq FROM (`,
        ),
        values,
        fragment(') d GROUP BY d.value'),
      ],
      '',
    )
  }

  add(pace: Pace, sql: SqlStorage, values: SqlFragment): void {
    const isAscending = this.#order?.direction === 'ASC'
    // The rows become the entries. There may be half a million, and copies would double the memory.
    for (const row of pace.query<Entry>(sql, this.#query(values))) {
      row.value = readValue(this.#field, row.value)
      if (this.#rankField) row.rank = readValue(this.#rankField, row.rank)
      const known = this.#entries.get(row.value)
      if (known === undefined) {
        if (this.takesSome && this.#entries.size >= MAX_COMPARED) continue
        this.#entries.set(row.value, row)
        continue
      }
      known.count += row.count
      known.times += row.times
      if (row.rank === null) continue
      const isBetter = known.rank === null || compare(row.rank, known.rank) < 0 === isAscending
      if (isBetter) known.rank = row.rank
    }
    if (this.#entries.size > MAX_DISTINCT) {
      throw new ApiError(
        422,
        `\`facet_by\` counts at most ${MAX_DISTINCT} values of a field, and \`${this.#field.name}\` has more. Find fewer documents with \`filter_by\`, or narrow the values with \`facet_query\`.`,
      )
    }
  }

  counted(schema: StoredSchema, request: SearchRequest, query: FacetQuery | undefined): Counted {
    const first = firstOf(this.#entries.values(), request.maxFacetValues, this.#compare)
    const rules = rulesOf(schema, this.#field)
    const tokens = query === undefined ? [] : tokenize(query.text, rules).map((token) => token.text)
    const counts: Counted['counts'] = first.map(({ value, count, seq }) => {
      const text = this.#text(value)
      if (seq !== null) this.#documents.set(text, seq)
      const marked = this.#beginnings.get(value) ?? tokens
      return { count, highlighted: highlightFacet(text, marked, rules, request.highlight), value: text }
    })
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
  keepSimilar({ text, maxTypos }: FacetQuery, schema: StoredSchema): void {
    const rules = rulesOf(schema, this.#field)
    const wanted = tokenize(text, rules).map((token) => token.text)
    const similar = new Map<Scalar, Similar>()
    for (const value of this.#entries.keys()) {
      const found = similarity(this.#text(value), wanted, maxTypos, rules)
      if (found !== undefined) similar.set(value, found)
    }
    const least = Math.min(...[...similar.values()].map(({ typos }) => typos))
    for (const value of this.#entries.keys()) {
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
    else if (a.rank === null || b.rank === null) by = Number(a.rank === null) - Number(b.rank === null)
    else by = sign * compare(a.rank, b.rank)
    return by || compareTies(a.value, b.value)
  }

  #stats(): FacetCounts['stats'] {
    const total = this.#entries.size
    if (total === 0 || !isNumber(this.#field)) return { total_values: total }
    const totals = new Totals(this.#field)
    for (const { value, times } of this.#entries.values()) totals.add(value as Numeric, times)
    return { ...totals.stats, total_values: total }
  }
}

/** A range with documents, and the totals of the part. Large whole numbers come as text. */
interface RangeRow {
  range: number
  count: number
  times: number
  min: number | string
  max: number | string
  sum: number | string
  high: number | string
}

const readNumber = (value: number | string): Numeric => (typeof value === 'string' ? integer(value) : value)

/** Counts ranges. Empty ones are left out, like values without documents. */
class Ranges implements Counting {
  readonly #field: Field
  readonly #ranges: FacetRange[]
  readonly #counts: number[]
  readonly #totals: Totals

  constructor({ field, ranges }: FacetRequest) {
    this.#field = field
    this.#totals = new Totals(field)
    this.#ranges = ranges
    this.#counts = ranges.map(() => 0)
  }

  #query(values: SqlFragment): SqlFragment {
    const bounds = this.#ranges.map(({ from, to }) => [from ?? null, to ?? null])
    return join(
      [
        fragment('WITH v AS MATERIALIZED ('),
        values,
        fragment(
          `), t AS (SELECT ${exactly(this.#field, 'min(value)')} AS min, ${exactly(this.#field, 'max(value)')} AS max,
                           ${this.#sums()}, count(*) AS times FROM v)
           SELECT r.key AS range, count(DISTINCT v.seq) AS count, t.* FROM t JOIN json_each(?) r LEFT JOIN v
               ON (r.value ->> 0 IS NULL OR v.value >= r.value ->> 0)
              AND (r.value ->> 1 IS NULL OR v.value < r.value ->> 1)
             WHERE t.times > 0 GROUP BY r.key`,
          JSON.stringify(bounds),
        ),
      ],
      '',
    )
  }

  add(pace: Pace, sql: SqlStorage, values: SqlFragment): void {
    const rows = pace.query<RangeRow>(sql, this.#query(values))
    for (const { range, count } of rows) this.#counts[range]! += count
    const [first] = rows
    if (first === undefined) return
    this.#totals.bounds(readNumber(first.min), readNumber(first.max))
    this.#totals.times(first.times)
    this.#totals.sum(readNumber(first.sum))
    this.#totals.sum(readNumber(first.high), 2 ** 32)
  }

  /**
   * 64-bit values are summed as two halves, `high` * 2^32 + `sum`: the sum of a few whole ones would exceed 64 bits.
   */
  #sums(): string {
    if (!isInt64(this.#field)) return 'total(value) AS sum, 0 AS high'
    const low = exactly(this.#field, 'sum(value & 4294967295)')
    return `${low} AS sum, ${exactly(this.#field, 'sum(value >> 32)')} AS high`
  }

  counted(): Counted {
    const counts = this.#ranges
      .map(({ label }, index) => ({ count: this.#counts[index]!, highlighted: label, value: label }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count)
    // As with values, a field without any has no stats.
    if (counts.length === 0) return { counts, stats: { total_values: 0 } }
    return { counts, stats: { ...this.#totals.stats, total_values: counts.length } }
  }
}

/** The first `limit` items in order, without sorting all of them. */
function firstOf<Item>(items: Iterable<Item>, limit: number, order: (a: Item, b: Item) => number): Item[] {
  const kept: Item[] = []
  for (const item of items) {
    kept.push(item)
    if (kept.length > 2 * limit + 1_000) kept.sort(order).splice(limit)
  }
  return kept.sort(order).slice(0, limit)
}

/** Of texts that are equal otherwise, Typesense shows the shorter first, and then the last by the alphabet. */
const compareTies = (a: Scalar, b: Scalar): number =>
  typeof a === 'string' && typeof b === 'string' ? a.length - b.length || compare(b, a) : compare(a, b)

/** Compares as SQLite does: numbers by value, texts by code points. */
function compare(a: Scalar, b: Scalar): number {
  if (a === b) return 0
  if (typeof a !== 'string' && typeof b !== 'string') return a < b ? -1 : a > b ? 1 : 0
  const [left, right] = [String(a), String(b)]
  for (let at = 0; at < left.length && at < right.length; at++) {
    if (left.charCodeAt(at) === right.charCodeAt(at)) continue
    return rankOf(left.charCodeAt(at)) - rankOf(right.charCodeAt(at))
  }
  return left.length - right.length
}

/** In UTF-16 order, surrogates precede the units from U+E000 on. In code point order they come last. */
const rankOf = (unit: number): number =>
  unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit

const withoutCase = (value: Scalar): Scalar =>
  typeof value === 'string' ? value.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : value
