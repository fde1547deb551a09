/**
 * Counts of facet values over everything that a search found, not over its page alone. Each part of it is counted by
 * SQLite, and the counts are added up here.
 */
import { ApiError } from '../errors'
import type { Candidates } from './candidates'
import type { SearchContext } from './context'
import type { FacetQuery, FacetRange, FacetRequest } from './facet-request'
import { fragment, join, type SqlFragment } from './fragment'
import { highlightFacet } from './highlight'
import {
  columnsTable,
  isArray,
  isBool,
  isNumber,
  isString,
  normColumn,
  type StoredSchema,
  scalarColumn,
  valuesTable,
} from './layout'
import { MAX_DISTINCT } from './limits'
import type { Pace } from './pace'
import type { SearchRequest } from './request'
import { FIRST_WIDTH_GROUPED } from './scan'
import { fieldValue } from './sort'
import { tokenize } from './text'
import type { FacetCounts, Field } from './types'

/** @throws ApiError 422 for a facet with more values than are counted */
export async function countFacets(
  { sql, schema }: SearchContext,
  request: SearchRequest,
  { parts }: Candidates,
  pace: Pace,
): Promise<FacetCounts[]> {
  const counts: FacetCounts[] = []
  for (const facet of request.facets) {
    const query = request.facetQuery?.field === facet.field.name ? request.facetQuery : undefined
    const counting = facet.ranges.length > 0 ? new Ranges(facet) : new Values(schema, facet)
    for await (const { relation } of parts(pace, FIRST_WIDTH_GROUPED)) {
      const values = facetValues(schema, facet.field, relation, query)
      counting.add(pace.query<CountedRow>(sql, counting.query(values)))
    }
    const counted = counting.counted(schema, request, query)
    counts.push({ field_name: facet.field.name, sampled: false, ...counted })
    await pace.rest()
  }
  return counts
}

type Counted = Pick<FacetCounts, 'counts' | 'stats'>

/** The relation v(seq, value): every value of the field among the documents found. */
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
    // Words by their beginnings; a value is padded so that a space stands before each word.
    const beginnings = tokenize(query.text, schema).map((token) => ` ${token.text}`)
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

/** What a statement says of a value or range among one part's documents. */
interface CountedRow extends Record<string, SqlStorageValue> {
  /** of documents */
  count: number
}

interface Counting {
  /** @param values the relation v(seq, value) of a part */
  query(values: SqlFragment): SqlFragment
  add(rows: CountedRow[]): void
  counted(schema: StoredSchema, request: SearchRequest, query: FacetQuery | undefined): Counted
}

type Scalar = string | number

/** A value as it was found so far. */
interface Entry {
  value: Scalar
  count: number
  /** how often it stands in the documents */
  times: number
  /** the value of the field that values are ordered by, of the best document */
  rank: Scalar | null
}

class Values implements Counting {
  readonly #field: Field
  readonly #order: FacetRequest['order']
  readonly #rank: string
  readonly #entries = new Map<Scalar, Entry>()
  /** its values are whole numbers of 64 bits, which come as text: numbers of JavaScript would round them */
  readonly #isInt64: boolean

  constructor(schema: StoredSchema, { field, order }: FacetRequest) {
    this.#field = field
    this.#order = order
    this.#isInt64 = field.type.startsWith('int64')
    // A value stands where its best document would.
    this.#rank =
      order === undefined || order.by === 'value'
        ? 'NULL'
        : `${order.direction === 'ASC' ? 'min' : 'max'}(${fieldValue(schema, order.by)})`
  }

  query(values: SqlFragment): SqlFragment {
    return join(
      [
        fragment(
          `SELECT ${this.#isInt64 ? 'CAST(d.value AS TEXT)' : 'd.value'} AS value, count(DISTINCT d.seq) AS count, count(*) AS times, ${this.#rank} AS rank FROM (`,
        ),
        values,
        fragment(') d GROUP BY d.value'),
      ],
      '',
    )
  }

  add(rows: CountedRow[]): void {
    const isAscending = this.#order?.direction === 'ASC'
    for (const row of rows as unknown as Entry[]) {
      const known = this.#entries.get(row.value)
      if (known === undefined) {
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
    const tokens = query === undefined ? [] : tokenize(query.text, schema).map((token) => token.text)
    const counts = first.map(({ value, count }) => {
      const text = isBool(this.#field) ? (value === 1 ? 'true' : 'false') : String(value)
      return { count, highlighted: highlightFacet(text, tokens, schema, request.highlight), value: text }
    })
    return { counts, stats: this.#stats() }
  }

  #compare = (a: Entry, b: Entry): number => {
    const order = this.#order
    const sign = order?.direction === 'DESC' ? -1 : 1
    let by: number
    if (order === undefined) by = b.count - a.count
    else if (order.by === 'value') by = sign * this.#compareValues(withoutCase(a.value), withoutCase(b.value))
    else if (a.rank === null || b.rank === null) by = Number(a.rank === null) - Number(b.rank === null)
    else by = sign * compare(a.rank, b.rank)
    return by || this.#compareValues(a.value, b.value)
  }

  #compareValues(a: Scalar, b: Scalar): number {
    return this.#isInt64 ? Number(BigInt(a) - BigInt(b)) : compare(a, b)
  }

  #stats(): FacetCounts['stats'] {
    const total = this.#entries.size
    if (total === 0 || !isNumber(this.#field)) return { total_values: total }
    const sums = { min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY, sum: 0, times: 0 }
    for (const { value, times } of this.#entries.values()) {
      const number = Number(value)
      sums.min = Math.min(sums.min, number)
      sums.max = Math.max(sums.max, number)
      sums.sum += number * times
      sums.times += times
    }
    const { min, max, sum, times } = sums
    return { avg: sum / times, max, min, sum, total_values: total }
  }
}

/** Ranges that hold nothing are left out, as values without documents are. */
class Ranges implements Counting {
  readonly #ranges: FacetRange[]
  readonly #counts: number[]
  #min = Number.POSITIVE_INFINITY
  #max = Number.NEGATIVE_INFINITY
  #sum = 0
  #times = 0

  constructor({ ranges }: FacetRequest) {
    this.#ranges = ranges
    this.#counts = ranges.map(() => 0)
  }

  query(values: SqlFragment): SqlFragment {
    const bounds = this.#ranges.map(({ from, to }) => [from ?? null, to ?? null])
    return join(
      [
        fragment('WITH v AS MATERIALIZED ('),
        values,
        fragment(
          `), t AS (SELECT min(value) AS min, max(value) AS max, total(value) AS sum, count(*) AS times FROM v)
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

  add(rows: CountedRow[]): void {
    for (const { range, count } of rows) this.#counts[range as number]! += count
    const [first] = rows as unknown as { min: number; max: number; sum: number; times: number }[]
    if (first === undefined) return
    this.#min = Math.min(this.#min, first.min)
    this.#max = Math.max(this.#max, first.max)
    this.#sum += first.sum
    this.#times += first.times
  }

  counted(): Counted {
    const counts = this.#ranges
      .map(({ label }, index) => ({ count: this.#counts[index]!, highlighted: label, value: label }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count)
    // As for values, there is nothing to say of a field without any.
    if (counts.length === 0) return { counts, stats: { total_values: 0 } }
    const stats = { avg: this.#sum / this.#times, max: this.#max, min: this.#min, sum: this.#sum }
    return { counts, stats: { ...stats, total_values: counts.length } }
  }
}

/** The first `limit` in order, without sorting them all. */
function firstOf<Item>(items: Iterable<Item>, limit: number, order: (a: Item, b: Item) => number): Item[] {
  const kept: Item[] = []
  for (const item of items) {
    kept.push(item)
    if (kept.length > 2 * limit + 1_000) kept.sort(order).splice(limit)
  }
  return kept.sort(order).slice(0, limit)
}

/** As SQLite compares: numbers by value, texts by code points. */
function compare(a: Scalar, b: Scalar): number {
  if (a === b) return 0
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const [left, right] = [String(a), String(b)]
  for (let at = 0; at < left.length && at < right.length; at++) {
    if (left.charCodeAt(at) === right.charCodeAt(at)) continue
    return rankOf(left.charCodeAt(at)) - rankOf(right.charCodeAt(at))
  }
  return left.length - right.length
}

/** UTF-16 has its pairs of surrogates before the last of the single units; code points have them after. */
const rankOf = (unit: number): number =>
  unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit

const withoutCase = (value: Scalar): Scalar =>
  typeof value === 'string' ? value.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : value
