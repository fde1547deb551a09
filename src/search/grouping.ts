/** group_by: the best hits of every group, groups in the order of their best hits. */
import { parseExact } from '../exact-json'
import { fragment, join, type SqlFragment } from './fragment'
import { columnsTable, isArray, isBool, type StoredSchema, scalarColumn, valuesTable } from './layout'
import { findField } from './path'
import type { SearchRequest } from './request'

export interface GroupRow extends Record<string, SqlStorageValue> {
  seq: number
  score: number | null
  distance: number | null
  fused: number | null
  /** same for the members of one group */
  group_key: string
  /** how many hits the group has */
  group_found: number
}

export interface Groups {
  /** the hits of the groups on the page, group by group */
  rows: GroupRow[]
  /** how many groups there are */
  found: number
}

/** @param order the ORDER BY of the hits, over `d` (sort.ts) */
export function groupHits(
  sql: SqlStorage,
  schema: StoredSchema,
  request: SearchRequest,
  relation: SqlFragment,
  order: SqlFragment,
): Groups {
  const key = groupKey(schema, request)
  // With group_missing_values documents without the value are one group; otherwise each is a group of its own.
  const keyed = join(
    [
      fragment(`SELECT d.seq, d.score, d.distance, d.fused, ${key} AS group_key FROM (`),
      relation,
      fragment(') d'),
    ],
    '',
  )
  const found = sql
    .exec<{ found: number }>(
      `SELECT count(DISTINCT group_key) AS found FROM (${keyed.sql})`,
      ...keyed.bindings,
    )
    .one().found
  const rows = sql.exec<GroupRow>(
    `WITH keyed AS MATERIALIZED (${keyed.sql}),
      counted AS (SELECT *, count(*) OVER (PARTITION BY group_key) AS group_found FROM keyed),
      ordered AS (SELECT d.*, row_number() OVER (ORDER BY ${order.sql}) AS place FROM counted d),
      placed AS (
        SELECT *, row_number() OVER (PARTITION BY group_key ORDER BY place) AS place_in_group,
               min(place) OVER (PARTITION BY group_key) AS best
          FROM ordered
      ),
      ranked AS (SELECT *, dense_rank() OVER (ORDER BY best) AS group_rank FROM placed)
     SELECT seq, score, distance, fused, group_key, group_found FROM ranked
      WHERE place_in_group <= ? AND group_rank > ? AND group_rank <= ?
      ORDER BY group_rank, place_in_group`,
    ...keyed.bindings,
    ...order.bindings,
    request.groupLimit,
    request.offset,
    request.offset + request.perPage,
  )
  return { rows: rows.toArray(), found }
}

function groupKey(schema: StoredSchema, { groupBy, groupMissingValues }: SearchRequest): string {
  const values = groupBy.map((name) => groupValue(schema, name))
  const key = `json_array(${values.join(', ')})`
  if (groupMissingValues) return key
  return `CASE WHEN ${values.map((value) => `${value} IS NULL`).join(' OR ')} THEN d.seq ELSE ${key} END`
}

function groupValue(schema: StoredSchema, name: string): string {
  const field = findField(schema, name)!
  const slot = schema.slots[name]!
  if (!isArray(field)) {
    return `(SELECT c.${scalarColumn(slot)} FROM ${columnsTable(slot)} c WHERE c.seq = d.seq)`
  }
  const values = `SELECT value FROM ${valuesTable(slot)} c WHERE c.seq = d.seq ORDER BY pos`
  return `json((SELECT nullif(json_group_array(value), '[]') FROM (${values})))`
}

/** A group's values for the reply, of the fields that it has values of. */
export function groupValues(schema: StoredSchema, { groupBy }: SearchRequest, key: string): unknown[] {
  const values: unknown = parseExact(key)
  // A group of one document without a value has the document's number for a key.
  if (!Array.isArray(values)) return []
  return groupBy.flatMap((name, index) => {
    const value: unknown = values[index]
    if (value === null) return []
    const field = findField(schema, name)!
    const restore = (stored: unknown): unknown => (isBool(field) ? stored === 1 : stored)
    return [isArray(field) ? (value as unknown[]).map(restore) : restore(value)]
  })
}
