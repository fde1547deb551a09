/** Counts of facet values over everything that a search found, not over its page alone. */
import { exactNumber } from '../exact-json'
import type { FacetQuery, FacetRequest } from './facet-request'
import { fragment, join, type SqlFragment } from './fragment'
import { highlightFacet } from './highlight'
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
} from './layout'
import type { SearchRequest } from './request'
import { fieldValue } from './sort'
import { tokenize } from './text'
import type { FacetCounts, Field } from './types'

/** @param relation what was found (candidates.ts) */
export function countFacets(
  sql: SqlStorage,
  schema: StoredSchema,
  request: SearchRequest,
  relation: SqlFragment,
): FacetCounts[] {
  return request.facets.map((facet) => {
    const query = request.facetQuery?.field === facet.field.name ? request.facetQuery : undefined
    const values = facetValues(schema, facet.field, relation, query)
    const counted =
      facet.ranges.length > 0
        ? countRanges(sql, facet, values)
        : countValues(sql, schema, facet, values, request, query)
    return { field_name: facet.field.name, sampled: false, ...counted }
  })
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

function countValues(
  sql: SqlStorage,
  schema: StoredSchema,
  { field, order }: FacetRequest,
  values: SqlFragment,
  request: SearchRequest,
  query: FacetQuery | undefined,
): Counted {
  let [by, rank] = ['count DESC', 'NULL']
  if (order?.by === 'value') by = `g.value COLLATE NOCASE ${order.direction}`
  else if (order !== undefined) {
    // A value stands where its best document would.
    rank = `${order.direction === 'ASC' ? 'min' : 'max'}(${fieldValue(schema, order.by)})`
    by = `rank ${order.direction} NULLS LAST`
  }
  const read = columnReader(field)
  // Values are counted and summed up in one pass over what was found.
  const rows = sql
    .exec<Totals & { value: string | number; count: number }>(
      `WITH g AS (
         SELECT d.value AS value, count(DISTINCT d.seq) AS count, count(*) AS times, ${rank} AS rank
           FROM (${values.sql}) d GROUP BY d.value
       )
       SELECT ${read('g.value')} AS value, count, count(*) OVER () AS total, ${read('min(value) OVER ()')} AS min,
              ${read('max(value) OVER ()')} AS max, ${sumsOf(field, ' * times', ' OVER ()')},
              sum(times) OVER () AS times
         FROM g ORDER BY ${by}, g.value LIMIT ?`,
      ...values.bindings,
      // One row at least, for its totals.
      Math.max(1, request.maxFacetValues),
    )
    .toArray()
  const tokens = query === undefined ? [] : tokenize(query.text, schema).map((token) => token.text)
  const counts = rows.slice(0, request.maxFacetValues).map(({ value, count }) => {
    const text = isBool(field) ? (value === 1 ? 'true' : 'false') : String(value)
    return { count, highlighted: highlightFacet(text, tokens, schema, request.highlight), value: text }
  })
  return { counts, stats: statsOf(field, rows[0]) }
}

/** Over all values, those past the limit too. Numbers of an int64 field come as text: as doubles they would be rounded. */
interface Totals extends Record<string, SqlStorageValue> {
  total: number
  min: number | string
  max: number | string
  /** what it adds up to is `high` * 2^32 + `sum` */
  sum: number | string
  high: string | null
  times: number
}

/** How a field's value is read from SQLite without losing any of it. */
const columnReader =
  (field: Field) =>
  (value: string): string =>
    isInt64(field) ? `CAST(${value} AS TEXT)` : value

/**
 * The columns `sum` and `high`. Values of 64 bits are added up in two halves: together they could pass 64 bits.
 * @param times says how often a value counts @param over says over which rows
 */
function sumsOf(field: Field, times: string, over: string): string {
  if (!isInt64(field)) return `total(value${times})${over} AS sum, NULL AS high`
  const half = (bits: string): string => `CAST(sum((value ${bits})${times})${over} AS TEXT)`
  return `${half('& 4294967295')} AS sum, ${half('>> 32')} AS high`
}

type Stats = Required<Pick<FacetCounts['stats'], 'min' | 'max' | 'sum' | 'avg'>>

function statistics({ min, max, sum, high, times }: Totals): Stats {
  const read = high === null ? Number : (text: string | number) => exactNumber(String(text))
  const whole = high === null ? sum : BigInt(high) * 2n ** 32n + BigInt(sum)
  return { avg: Number(whole) / times, max: read(max), min: read(min), sum: read(String(whole)) }
}

function statsOf(field: Field, totals: Totals | undefined): FacetCounts['stats'] {
  if (totals === undefined) return { total_values: 0 }
  const { total } = totals
  return isNumber(field) ? { ...statistics(totals), total_values: total } : { total_values: total }
}

/** Ranges that hold nothing are left out, as values without documents are. */
function countRanges(sql: SqlStorage, { field, ranges }: FacetRequest, values: SqlFragment): Counted {
  const read = columnReader(field)
  const bounds = ranges.map(({ from, to }) => [from ?? null, to ?? null])
  const rows = sql
    .exec<Totals & { range: number; count: number }>(
      `WITH v AS MATERIALIZED (${values.sql}),
            t AS (SELECT ${read('min(value)')} AS min, ${read('max(value)')} AS max, ${sumsOf(field, '', '')},
                         count(*) AS times FROM v)
       SELECT r.key AS range, count(DISTINCT v.seq) AS count, t.* FROM json_each(?) r JOIN v
           ON (r.value ->> 0 IS NULL OR v.value >= r.value ->> 0)
          AND (r.value ->> 1 IS NULL OR v.value < r.value ->> 1)
         JOIN t GROUP BY r.key ORDER BY count DESC, r.key`,
      ...values.bindings,
      JSON.stringify(bounds),
    )
    .toArray()
  const counts = rows.map(({ range, count }) => {
    const { label } = ranges[range]!
    return { count, highlighted: label, value: label }
  })
  const [first] = rows
  if (first === undefined) return { counts, stats: { total_values: 0 } }
  return { counts, stats: { ...statistics(first), total_values: rows.length } }
}
