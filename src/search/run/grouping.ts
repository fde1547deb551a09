/** group_by: the best hits of every group. Groups are in the order of their best hits. */
import { ApiError } from '../../errors'
import { parseExact } from '../../exact-json'
import { fragment, join, type SqlFragment } from '../fragment'
import { MAX_DISTINCT } from '../limits'
import type { Order } from '../request/order'
import type { SearchRequest } from '../request/request'
import { findField } from '../schema/find-field'
import { columnsTable, isArray, isBool, type StoredSchema, scalarColumn, valuesTable } from '../schema/layout'
import { type Candidates, type OrderedMatch, ordered, type Part, rowsAsRelation } from './candidates'
import type { SearchContext } from './context'
import type { HitRow } from './hits'
import type { Pace } from './pace'
import { FIRST_WIDTH_GROUPED } from './scan'

export type GroupRow = OrderedMatch & {
  /** the group's values as JSON, or the sequence number of a document that is a group of its own */
  group_key: string | number
  /** how many hits the group has */
  group_found: number
}

export type GroupHit = HitRow & Pick<GroupRow, 'group_key' | 'group_found'>

export interface Groups {
  /** the hits of the groups on the page, group by group */
  rows: GroupHit[]
  /** how many groups there are */
  found: number
}

/** Rows are pruned when there are more than twice those needed plus this many. */
const CUT_FROM = 1_000

/**
 * Groups are formed part by part. The groups of the page are among the best of each part, and their hits among the
 * best of each part's members. The size of a group takes a count over all parts.
 * @throws ApiError 422 for more groups than are counted
 */
export async function groupHits(
  { sql, schema }: SearchContext,
  request: SearchRequest,
  { parts }: Candidates,
  order: Order,
  pace: Pace,
): Promise<Groups> {
  const key = groupKey(schema, request)
  const names = [...order.names, 'group_key']
  const grouping: Grouping = { sql, pace, order, key, names, sizes: new Map(), alone: 0 }
  if (order.byGroupSize) {
    names.push('group_found')
    for await (const part of parts(pace, FIRST_WIDTH_GROUPED)) countGroups(grouping, part)
  }
  const wanted = request.offset + request.perPage
  let best: GroupRow[] = []
  for await (const part of parts(pace, FIRST_WIDTH_GROUPED)) {
    const heads = bestOfGroups(grouping, keyed(grouping, part), 1)
    if (!order.byGroupSize)
      for (const { group_key, group_found } of heads) count(grouping, group_key, group_found)
    best = [...best, ...heads.slice(0, wanted)]
    if (best.length > 2 * wanted + CUT_FROM) best = cut(grouping, best, 1, wanted)
  }
  const heads = cut(grouping, best, 1, wanted).slice(request.offset)
  const rows = request.groupLimit > 1 ? await members(grouping, heads, request.groupLimit, parts) : heads
  return {
    rows: rows.map((row) => ({ ...row, group_found: sizeOf(grouping, row.group_key) })),
    found: grouping.sizes.size + grouping.alone,
  }
}

interface Grouping {
  sql: SqlStorage
  pace: Pace
  order: Order
  /** SQL over `d` of a document's group key */
  key: string
  /** names of columns besides those of a match */
  names: string[]
  /** the number of hits of each group, by its key */
  sizes: Map<string, number>
  /** groups of a single document that lacks the value */
  alone: number
}

const sizeOf = ({ sizes }: Grouping, key: GroupRow['group_key']): number =>
  typeof key === 'number' ? 1 : (sizes.get(key) ?? 1)

function count(grouping: Grouping, key: GroupRow['group_key'], hits: number): void {
  if (typeof key === 'number') {
    grouping.alone += hits
    return
  }
  grouping.sizes.set(key, (grouping.sizes.get(key) ?? 0) + hits)
  if (grouping.sizes.size > MAX_DISTINCT) throw tooManyGroups()
}

export const tooManyGroups = (): ApiError =>
  new ApiError(
    422,
    `\`group_by\` makes at most ${MAX_DISTINCT} groups. Find fewer documents with \`filter_by\`.`,
  )

const wrapped = (
  before: string,
  relation: SqlFragment,
  after: string,
  ...bindings: SqlStorageValue[]
): SqlFragment => join([fragment(before), relation, fragment(after, ...bindings)], '')

function countGroups(grouping: Grouping, { relation }: Part): void {
  const query = wrapped(
    `SELECT ${grouping.key} AS group_key, count(*) AS group_found FROM (`,
    relation,
    ') d GROUP BY group_key',
  )
  for (const row of grouping.pace.query<Pick<GroupRow, 'group_key' | 'group_found'>>(grouping.sql, query)) {
    count(grouping, row.group_key, row.group_found)
  }
}

/** A part's matches with their group keys, and with group sizes if the order needs them. */
function keyed(grouping: Grouping, part: Part): SqlFragment {
  const { sql, pace, order, key } = grouping
  const rows = wrapped(`SELECT d.*, ${key} AS group_key FROM (`, ordered(part, order, pace), ') d')
  if (!order.byGroupSize) return rows
  const keys = pace.query<Pick<GroupRow, 'group_key'>>(
    sql,
    wrapped(`SELECT DISTINCT ${key} AS group_key FROM (`, part.relation, ') d'),
  )
  const sizes = keys.map(({ group_key }) => [group_key, sizeOf(grouping, group_key)])
  return join(
    [
      fragment(
        'WITH z(key, size) AS MATERIALIZED (SELECT value ->> 0, value ->> 1 FROM json_each(?)) ',
        JSON.stringify(sizes),
      ),
      wrapped('SELECT k.*, z.size AS group_found FROM (', rows, ') k JOIN z ON z.key = k.group_key'),
    ],
    '',
  )
}

/** The best `limit` members of each group in a relation with group_key, best first. */
function bestOfGroups({ sql, pace, order }: Grouping, rows: SqlFragment, limit: number): GroupRow[] {
  // Counts group sizes here unless the order has already.
  const size = order.byGroupSize ? '' : ', count(*) OVER (PARTITION BY d.group_key) AS group_found'
  const query = join(
    [
      fragment('WITH keyed AS MATERIALIZED ('),
      rows,
      fragment(`), placed AS (SELECT d.*${size}, row_number() OVER (PARTITION BY d.group_key ORDER BY `),
      order.by,
      fragment(') AS place FROM keyed d) SELECT * FROM placed d WHERE d.place <= ? ORDER BY ', limit),
      order.by,
    ],
    '',
  )
  return pace.query<GroupRow>(sql, query)
}

/** Of rows from several parts: the best `limit` members of each of the first `groups` groups. */
function cut(grouping: Grouping, rows: GroupRow[], limit: number, groups: number): GroupRow[] {
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  const best = bestOfGroups(grouping, rowsAsRelation(rows, grouping.names), limit)
  return best.slice(0, limit * groups).map(({ seq }) => bySeq.get(seq)!)
}

/** The hits of groups, group by group. @param heads their best hits, in order */
async function members(
  grouping: Grouping,
  heads: GroupRow[],
  limit: number,
  parts: Candidates['parts'],
): Promise<GroupRow[]> {
  const { pace, key } = grouping
  const keys = JSON.stringify(heads.map(({ group_key }) => group_key))
  const found = new Map(heads.map((row) => [row.seq, row]))
  for await (const part of parts(pace, FIRST_WIDTH_GROUPED)) {
    const chosen = {
      ...part,
      relation: wrapped(
        'SELECT d.* FROM (',
        part.relation,
        `) d WHERE ${key} IN (SELECT value FROM json_each(?))`,
        keys,
      ),
    }
    for (const row of bestOfGroups(grouping, keyed(grouping, chosen), limit)) found.set(row.seq, row)
    if (found.size <= 2 * limit * heads.length + CUT_FROM) continue
    const best = cut(grouping, [...found.values()], limit, heads.length)
    found.clear()
    for (const row of best) found.set(row.seq, row)
  }
  const places = new Map(heads.map(({ group_key }, place) => [group_key, place]))
  return cut(grouping, [...found.values()], limit, heads.length).sort(
    (a, b) => places.get(a.group_key)! - places.get(b.group_key)!,
  )
}

/** SQL over `d` of a document's group key. */
export function groupKey(schema: StoredSchema, { groupBy, groupMissingValues }: SearchRequest): string {
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

/** A group's values for the reply, without fields that it has no value of. */
export function groupValues(
  schema: StoredSchema,
  { groupBy }: SearchRequest,
  key: GroupRow['group_key'],
): unknown[] {
  // A group of one document without a value has the sequence number as its key.
  const values: unknown = typeof key === 'number' ? undefined : parseExact(key)
  if (!Array.isArray(values)) return []
  return groupBy.flatMap((name, index) => {
    const value: unknown = values[index]
    if (value === null) return []
    const field = findField(schema, name)!
    const restore = (stored: unknown): unknown => (isBool(field) ? stored === 1 : stored)
    return [isArray(field) ? (value as unknown[]).map(restore) : restore(value)]
  })
}
