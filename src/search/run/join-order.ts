/** Sorts by fields of related documents: `$collection(field:asc)`. */
import { fragment, jsonLists, type SqlFragment } from '../fragment'
import type { JoinedKey } from '../request/order'
import type { SearchContext } from './context'
import type { Gathered } from './gathered'
import { shownOf } from './join-shown'
import type { Pace } from './pace'

/** By sequence number, the rank of a document's best related one. Documents without any have none. */
async function ranks(
  context: SearchContext,
  { collection, sortBy }: JoinedKey,
  seqs: readonly number[],
  pace: Pace,
): Promise<Map<number, number>> {
  const joins = context.joins!
  const place = joins.place(collection, 'sort_by')
  const found = new Map<number, number>()
  const { on } = await pace.away(joins.relation(place))
  for (const [filter, group] of shownOf(context, joins, place, seqs)) {
    const keys = joins.keysOf(group, on)
    const lists = jsonLists(new Set(keys.map(({ key }) => key)))
    const answer = await pace.away(joins.ask(place, { filter, want: { sortBy, keys: lists } }))
    const byKey = new Map(answer.ranks)
    for (const { seq, key } of keys) {
      const rank = byKey.get(key)
      if (rank !== undefined) found.set(seq, Math.min(rank, found.get(seq) ?? rank))
    }
  }
  return found
}

/**
 * Adds the ranks that an order uses to all candidates. SQL here has no access to the other collection, so the ranks
 * are added as rows.
 */
export async function addRanks(
  context: SearchContext,
  gathered: Gathered,
  keys: readonly JoinedKey[],
  pace: Pace,
): Promise<void> {
  for (const key of keys) {
    const bySeq = await ranks(context, key, gathered.seqs, pace)
    gathered.columns.set(
      key.column,
      gathered.seqs.map((seq) => bySeq.get(seq) ?? Number.NaN),
    )
  }
}

/** A relation of documents with these ranks. */
export async function rankedBy(
  context: SearchContext,
  keys: readonly JoinedKey[],
  seqs: readonly number[],
  pace: Pace,
): Promise<SqlFragment> {
  const columns = await Promise.all(keys.map((key) => ranks(context, key, seqs, pace)))
  const rows = seqs.map((seq) => [seq, ...columns.map((bySeq) => bySeq.get(seq) ?? null)])
  const names = keys.map(({ column }, index) => `, value ->> ${index + 1} AS ${column}`).join('')
  return fragment(
    `SELECT value ->> 0 AS seq, NULL AS score, NULL AS distance, NULL AS fused${names} FROM json_each(?)`,
    JSON.stringify(rows),
  )
}
