/**
 * Pinned documents of grouped searches. As in Typesense, the groups of pinned documents take their positions. In a group,
 * pinned documents come first, and other matches of the group follow them up to `group_limit`.
 */
import { fragment, join } from '../fragment'
import type { Order } from '../request/order'
import type { SearchRequest } from '../request/request'
import type { Candidates } from './candidates'
import type { SearchContext } from './context'
import { type GroupHit, type GroupRow, type Groups, groupHits, groupKey } from './grouping'
import type { Pace } from './pace'
import { besidePinned, type Pinned, pinnedRow, placesOf } from './pinned'

type Key = GroupRow['group_key']

/**
 * The groups of a page, with those of pinned documents in their places.
 * @param candidates the matches that are not pinned
 * @returns `found` is the number of groups among the other matches and of groups of pinned documents. A group that has
 *   both counts twice, as in Typesense.
 * @throws ApiError 422 for more groups than are counted
 */
export async function groupsWithPinned(
  context: SearchContext,
  request: SearchRequest,
  candidates: Candidates,
  { order, pinned }: { order: Order; pinned: readonly Pinned[] },
  pace: Pace,
): Promise<Groups> {
  const first = groupsOf(context, request, pinned, pace)
  const keys = [...first.keys()]
  const among = (test: string): Candidates => keyedBy(context, request, candidates, keys, test)
  const { offset, perPage } = request
  const own = { ...request, offset: 0, perPage: keys.length }
  const inPinned = await groupHits(context, own, among('IN'), order, pace)
  const positions = keys.map((key, seq) => ({ seq, position: first.get(key)![0]!.position }))
  const beside = besidePinned({ offset, limit: perPage }, positions)
  const asked = { ...request, offset: beside.offset, perPage: beside.limit }
  const others = await groupHits(context, asked, among('NOT IN'), order, pace)
  const [followers, otherGroups] = [byKey(inPinned.rows), [...byKey(others.rows).values()]]
  const places = placesOf(positions, others.found)
  const rows: GroupHit[] = []
  let next = offset - [...places.keys()].filter((place) => place < offset).length - beside.offset
  for (let place = offset; place < offset + perPage; place++) {
    const index = places.get(place)
    if (index === undefined) {
      rows.push(...(otherGroups[next++] ?? []))
      continue
    }
    const key = keys[index]!
    const pins = first.get(key)!
    const follow = followers.get(key) ?? []
    const found = pins.length + (follow[0]?.group_found ?? 0)
    const group = [...pins.map(({ seq }) => pinnedRow(seq)), ...follow].slice(0, request.groupLimit)
    rows.push(...group.map((row) => ({ ...row, group_key: key, group_found: found })))
  }
  return { rows, found: keys.length + inPinned.found + others.found }
}

/** The groups of pinned documents, by position. */
function groupsOf(
  { sql, schema }: SearchContext,
  request: SearchRequest,
  pinned: readonly Pinned[],
  pace: Pace,
): Map<Key, Pinned[]> {
  const rows = pace.query<{ seq: number; group_key: Key }>(
    sql,
    fragment(
      `SELECT d.seq, ${groupKey(schema, request)} AS group_key FROM (SELECT value AS seq FROM json_each(?)) d`,
      JSON.stringify(pinned.map(({ seq }) => seq)),
    ),
  )
  const keys = new Map(rows.map(({ seq, group_key }) => [seq, group_key]))
  return Map.groupBy(pinned, ({ seq }) => keys.get(seq)!)
}

/** The candidates whose group is among `keys`, or is not. */
function keyedBy(
  { schema }: SearchContext,
  request: SearchRequest,
  candidates: Candidates,
  keys: readonly Key[],
  test: string,
): Candidates {
  const after = fragment(
    `) d WHERE ${groupKey(schema, request)} ${test} (SELECT value FROM json_each(?))`,
    JSON.stringify(keys),
  )
  return {
    ...candidates,
    found: undefined,
    set: undefined,
    async *parts(pace, width) {
      for await (const { relation, range } of candidates.parts(pace, width)) {
        yield { range, relation: join([fragment('SELECT d.* FROM ('), relation, after], '') }
      }
    },
  }
}

const byKey = (rows: readonly GroupHit[]): Map<Key, GroupHit[]> =>
  Map.groupBy(rows, ({ group_key }) => group_key)
