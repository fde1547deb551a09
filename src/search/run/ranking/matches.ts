/** The first matches of an expression: by the keys of an order, by the length of a field, or by BM25. */

import { fragment, join, not, oneOf } from '../../fragment'
import type { SortKey } from '../../request/sort'
import type { TextMatch } from '../../text/query'
import { bestByScore, type Conditions, candidatesOf, type Top, textMatches } from '../candidates'
import { byNumbers, firstOf, orderOf } from '../column-order'
import type { SearchContext } from '../context'
import { filteredMatches } from '../filtered-matches'
import { Gathered, type OrderedMatch } from '../gathered'
import { allMatches, wordsOf } from '../kept-matches'
import { type MatchSet, minus, partsOf, seqsOf, sizeOf } from '../match-set'
import type { Pace } from '../pace'
import { windowOf } from '../window'

/** Up to this many matches are all read, without asking which are the best. Of each tier, this many are read. */
export const FEW = 64

/** The order of BM25. */
export const BY_TEXT: SortKey = { kind: 'text_match', buckets: undefined, direction: 'DESC' }

/** The best matches of an expression, and the number of all. */
export interface Counted {
  rows: OrderedMatch[]
  found: number
}

/**
 * A window of some matches of an expression by BM25, in one statement: whatever part of them it is asked for, FTS5 reads all
 * documents of each word.
 * @param all what the expression matches
 * @param set some of these
 */
export async function bestMatches(
  context: SearchContext,
  match: TextMatch,
  all: MatchSet,
  set: MatchSet,
  top: Top,
  pace: Pace,
): Promise<OrderedMatch[]> {
  const { sql } = context
  const found = sizeOf(set)
  const others = sizeOf(all) - found
  const list = others < found ? not(oneOf(seqsOf(minus(all, set)))) : oneOf(seqsOf(set))
  const parts = textMatches(sql, match, () => (others === 0 ? fragment('1') : list), true)
  const { offset, limit, sort } = top
  const { best } = await bestByScore(sql, parts, offset + limit, sort.length === 1, pace)
  return (await windowOf(context, candidatesOf(best, true, false), sort, top, pace)).rows
}

/** The best matches of a question by BM25, and the number of all. */
export async function bestOfQuestion(
  context: SearchContext,
  match: TextMatch,
  filter: Conditions,
  top: Top | undefined,
  pace: Pace,
): Promise<Counted> {
  const { set, size: found } = await filteredMatches(context, match, filter, pace)
  if (top === undefined) return { rows: [], found }
  const all = filter.isAll ? set : (await allMatches(context, wordsOf(match), pace)).set
  return { rows: await bestMatches(context, match, all, set, top, pace), found }
}

/** A window of a set by the length of a field, the shortest first. */
export async function firstByLength(
  { sql }: SearchContext,
  set: MatchSet,
  length: string,
  { offset, limit }: { offset: number; limit: number },
  pace: Pace,
): Promise<OrderedMatch[]> {
  const lengths = new Gathered()
  for await (const { relation } of partsOf(set)(pace)) {
    const query = join(
      [fragment(`SELECT d.seq, hex(${length}) AS length FROM (`), relation, fragment(') d')],
      '',
    )
    for (const row of pace.query<{ seq: number; length: string }>(sql, query)) {
      lengths.add(row.seq, Number.parseInt(row.length, 16))
    }
  }
  const numbers = await pace.through(lengths.numbers(lengths.scores))
  const order = orderOf([byNumbers(numbers, -1, Number.POSITIVE_INFINITY)])
  const first = await firstOf(set, order, offset + limit, pace)
  return first.slice(offset).map(({ seq }) => ({ seq, score: null, distance: null, fused: null }))
}

/** Only the lengths of the first columns are read. Each column before a column makes the query longer. */
const MOST_COLUMNS = 16

/** Whether `wordsIn` can return the length of a field. It cannot for fields that share a column. */
export const hasLength = ({ column, code }: { column: string; code?: string }): boolean =>
  !code && Number(column.slice(1)) < MOST_COLUMNS

/**
 * How many words document `d.seq` has in a column of an index, to order by: a byte, which is exact up to 127.
 *
 * FTS5 keeps the numbers of a document's columns in a row of the table `<index>_docsize`, as a blob of varints one after the
 * other: seven bits a byte, and the high bit is set in all bytes of a number but the last.
 */
export function wordsIn(table: TextMatch['table'], column: string): string {
  let place = `SELECT sz, 1 AS at FROM ${table}_docsize WHERE id = d.seq`
  for (let before = Number(column.slice(1)); before > 0; before--) {
    // OFFSET keeps SQLite from writing the inner query into each place that uses it.
    place = `SELECT sz, at + CASE WHEN substr(sz, at, 1) < x'80' THEN 1
      WHEN substr(sz, at + 1, 1) < x'80' THEN 2 ELSE 3 END AS at FROM (${place} LIMIT 1 OFFSET 0)`
  }
  return `(SELECT substr(sz, at, 1) FROM (${place}))`
}
