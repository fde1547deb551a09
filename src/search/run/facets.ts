/**
 * Counts of facet values over everything that a search found, not over its page alone. Each part of it is counted by
 * SQLite, and the counts are added up here.
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
import { tokenize } from '../text/words'
import type { FacetCounts, Field } from '../types'
import type { Candidates } from './candidates'
import type { SearchContext } from './context'
import { highlightFacet } from './highlight'
import type { Pace } from './pace'
import { FIRST_WIDTH_GROUPED } from './scan'

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
      counting.add(pace, sql, values)
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

interface Counting {
  /** Counts the values of a part. @param values the relation v(seq, value) */
  add(pace: Pace, sql: SqlStorage, values: SqlFragment): void
  counted(schema: StoredSchema, request: SearchRequest, query: FacetQuery | undefined): Counted
}

/** A BigInt is a whole number that a double cannot hold. */
type Scalar = string | number | bigint

/**
 * A field's values as a statement gives them, for `readValue`. SqlStorage would round whole numbers beyond 2^53, so they
 * come as text.
 */
const exactly = (field: Field, value: string): string =>
  isInt64(field) ? `iif(${value} BETWEEN -${SAFE} AND ${SAFE}, ${value}, CAST(${value} AS TEXT))` : value

const SAFE = Number.MAX_SAFE_INTEGER

const readValue = <Value extends Scalar | null>(field: Field, value: Value): Value | bigint | number =>
  typeof value === 'string' && isInt64(field) ? integer(value) : value

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
  readonly #rankField: Field | undefined
  readonly #entries = new Map<Scalar, Entry>()

  constructor(schema: StoredSchema, { field, order }: FacetRequest) {
    this.#field = field
    this.#order = order
    // A value stands where its best document would.
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
          `SELECT ${exactly(this.#field, 'd.value')} AS value, count(DISTINCT d.seq) AS count, count(*) AS times, ${this.#rank} AS rank FROM (`,
        ),
        values,
        fragment(') d GROUP BY d.value'),
      ],
      '',
    )
  }

  add(pace: Pace, sql: SqlStorage, values: SqlFragment): void {
    const isAscending = this.#order?.direction === 'ASC'
    // The rows become the entries: there may be half a million, and copies would double them.
    for (const row of pace.query<Entry>(sql, this.#query(values))) {
      row.value = readValue(this.#field, row.value)
      if (this.#rankField) row.rank = readValue(this.#rankField, row.rank)
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
    else if (order.by === 'value') by = sign * compare(withoutCase(a.value), withoutCase(b.value))
    else if (a.rank === null || b.rank === null) by = Number(a.rank === null) - Number(b.rank === null)
    else by = sign * compare(a.rank, b.rank)
    return by || compare(a.value, b.value)
  }

  #stats(): FacetCounts['stats'] {
    const total = this.#entries.size
    if (total === 0 || !isNumber(this.#field)) return { total_values: total }
    const totals = new Totals(this.#field)
    for (const { value, times } of this.#entries.values()) totals.add(value as Numeric, times)
    return { ...totals.stats, total_values: total }
  }
}

type Numeric = number | bigint

/** What a field's numbers come to. Those of an int64 field are added up exactly. */
class Totals {
  readonly #isExact: boolean
  #min: Numeric = Number.POSITIVE_INFINITY
  #max: Numeric = Number.NEGATIVE_INFINITY
  #sum = 0
  /** what does not go into `#sum` without being rounded */
  #large = 0n
  #times = 0

  constructor(field: Field) {
    this.#isExact = isInt64(field)
  }

  /** Adds a value that stands in the documents so often. */
  add(value: Numeric, times: number): void {
    this.bounds(value, value)
    this.times(times)
    this.sum(value, times)
  }

  bounds(min: Numeric, max: Numeric): void {
    if (min < this.#min) this.#min = min
    if (max > this.#max) this.#max = max
  }

  times(times: number): void {
    this.#times += times
  }

  sum(value: Numeric, factor = 1): void {
    const product = Number(value) * factor
    if (!this.#isExact || (typeof value === 'number' && Math.abs(product) <= HALF_OF_SAFE)) {
      this.#sum += product
      if (!this.#isExact || Math.abs(this.#sum) <= HALF_OF_SAFE) return
      this.#large += BigInt(this.#sum)
      this.#sum = 0
    } else {
      this.#large += BigInt(value) * BigInt(factor)
    }
  }

  get stats(): { avg: number; max: Numeric; min: Numeric; sum: Numeric } {
    const sum = this.#isExact ? integer(String(this.#large + BigInt(this.#sum))) : this.#sum
    return { avg: Number(sum) / this.#times, max: this.#max, min: this.#min, sum }
  }
}

/** Two numbers up to this one add up to a safe integer. */
const HALF_OF_SAFE = 2 ** 52 - 1

/** A range with documents, and what all values of the part come to. Large whole numbers come as text. */
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

/** Ranges that hold nothing are left out, as values without documents are. */
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

  /** Values of 64 bits are added up in two halves, `high` * 2^32 + `sum`: whole, a few of them pass 64 bits. */
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
    // As for values, there is nothing to say of a field without any.
    if (counts.length === 0) return { counts, stats: { total_values: 0 } }
    return { counts, stats: { ...this.#totals.stats, total_values: counts.length } }
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
  if (typeof a !== 'string' && typeof b !== 'string') return a < b ? -1 : a > b ? 1 : 0
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
