/** Sorts by fields of related documents: `$collection(field:asc)`. */
import { jsonLists } from '../fragment'
import type { JoinedKey } from '../request/sort'
import type { SearchContext } from './context'
import { shownOf } from './join-shown'
import type { Pace } from './pace'

/** By sequence number, the rank of a document's best related one. Documents without any have none. */
export async function ranks(
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
