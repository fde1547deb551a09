/** Counts of facet values over everything that a search found, not over its page alone. */
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
    const counts =
      facet.ranges.length > 0
        ? countRanges(sql, facet.ranges, values)
        : countValues(sql, schema, facet, values, request, query)
    return { field_name: facet.field.name, sampled: false, counts, stats: stats(sql, facet, values) }
  })
}

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
): FacetCounts['counts'] {
  let by = 'count DESC, value'
  if (order?.by === 'value') by = `value COLLATE NOCASE ${order.direction}, value`
  else if (order !== undefined) {
    const extreme = order.direction === 'ASC' ? 'min' : 'max'
    by = `${extreme}(${fieldValue(schema, order.by)}) ${order.direction} NULLS LAST, value`
  }
  const rows = sql.exec<{ value: string | number; count: number }>(
    `SELECT d.value AS value, count(DISTINCT d.seq) AS count FROM (${values.sql}) d
      GROUP BY d.value ORDER BY ${by} LIMIT ?`,
    ...values.bindings,
    request.maxFacetValues,
  )
  const tokens = query === undefined ? [] : tokenize(query.text, schema).map((token) => token.text)
  return rows.toArray().map(({ value, count }) => {
    const text = isBool(field) ? (value === 1 ? 'true' : 'false') : String(value)
    return { count, highlighted: highlightFacet(text, tokens, schema, request.highlight), value: text }
  })
}

/** Ranges that hold nothing are left out, as values without documents are. */
function countRanges(sql: SqlStorage, ranges: FacetRange[], values: SqlFragment): FacetCounts['counts'] {
  const bounds = ranges.map(({ from, to }) => [from ?? null, to ?? null])
  const rows = sql.exec<{ range: number; count: number }>(
    `SELECT r.key AS range, count(DISTINCT v.seq) AS count
       FROM json_each(?) r JOIN (${values.sql}) v
         ON (r.value ->> 0 IS NULL OR v.value >= r.value ->> 0)
        AND (r.value ->> 1 IS NULL OR v.value < r.value ->> 1)
      GROUP BY r.key ORDER BY count DESC, r.key`,
    JSON.stringify(bounds),
    ...values.bindings,
  )
  return rows.toArray().map(({ range, count }) => {
    const { label } = ranges[range]!
    return { count, highlighted: label, value: label }
  })
}

function stats(sql: SqlStorage, { field, ranges }: FacetRequest, values: SqlFragment): FacetCounts['stats'] {
  if (!isNumber(field)) {
    const { total } = sql
      .exec<{ total: number }>(
        `SELECT count(DISTINCT value) AS total FROM (${values.sql})`,
        ...values.bindings,
      )
      .one()
    return { total_values: total }
  }
  const { total, ...numbers } = sql
    .exec<{ total: number; min: number; max: number; sum: number; avg: number }>(
      `SELECT count(DISTINCT value) AS total, min(value) AS min, max(value) AS max, total(value) AS sum,
              avg(value) AS avg FROM (${values.sql})`,
      ...values.bindings,
    )
    .one()
  const totalValues = ranges.length > 0 ? ranges.length : total
  return total === 0 ? { total_values: 0 } : { ...numbers, total_values: totalValues }
}
