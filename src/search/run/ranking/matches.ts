/** The matches of an expression without their scores: which they are, if they are few, and how many. */
import { fragment, join, not, oneOf, type SqlFragment } from '../../fragment'
import {
  both,
  countedWindow,
  countIn,
  countOf,
  type OrderedMatch,
  type RangedFilter,
  type TextMatch,
  type Top,
  textMatches,
  unscoredMatches,
} from '../candidates'
import type { SearchContext } from '../context'
import { allMatches, atMost, knownMatches, wordsOf } from '../kept-matches'
import type { Pace } from '../pace'

/** So many matches are read without asking FTS5 which are the best, and of a tier so many are read. */
export const FEW = 64

/**
 * All matches of an expression, if there are at most so many; undefined otherwise.
 * @param among how many there are at most, if that is known
 */
export async function fewMatches(
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
  most: number,
  pace: Pace,
  among?: number,
): Promise<number[] | undefined> {
  const { sql } = context
  const known = knownMatches(context, wordsOf(match, filter), pace)
  if (known !== undefined) return atMost(most, known)
  const seqs: number[] = []
  for await (const { relation } of unscoredMatches(sql, match, filter, among)(pace)) {
    seqs.push(...listOf(sql, join([relation, fragment(' LIMIT ?', most + 1 - seqs.length)], ''), pace))
    if (seqs.length > most) return undefined
  }
  return seqs
}

/**
 * The matches of an expression with the beginning of a word. FTS5 collects all words with that beginning before it has
 * the first match, so all are counted at once.
 * @returns all matches, if there are at most so many
 */
export async function countedMatches(
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
  most: number,
  pace: Pace,
): Promise<{ found: number; seqs: number[] | undefined }> {
  const { sql } = context
  const all = await allMatches(context, wordsOf(match, filter), pace)
  if (all !== undefined) return { found: all.size, seqs: atMost(most, all) }
  const seqs: number[] = []
  let found = 0
  for await (const { relation } of unscoredMatches(sql, match, filter)(pace)) {
    if (found > most) {
      found += countIn(sql, relation, pace)
      continue
    }
    const some = listOf(sql, relation, pace)
    found += some.length
    if (found <= most) seqs.push(...some)
  }
  return { found, seqs: found <= most ? seqs : undefined }
}

/** How many an expression matches. */
export const countMatches = async (
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
  pace: Pace,
): Promise<number> =>
  (await allMatches(context, wordsOf(match, filter), pace))?.size ??
  (await countOf(context.sql, unscoredMatches(context.sql, match, filter), pace))

/** The best of what an expression matches, by BM25 or in another order, and the number of all. */
export interface Counted {
  rows: OrderedMatch[]
  found: number
}

/**
 * The best matches and how many there are. Those of a large collection are counted first, without their scores.
 * @param lacks matches that do not count
 * @param found how many there are without those, if that is known
 */
export async function bestMatches(
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
  { lacks = [], found }: { lacks?: readonly number[]; found?: number | undefined },
  top: Top | undefined,
  pace: Pace,
): Promise<Counted> {
  const { sql } = context
  const words = wordsOf(match, filter)
  const all = found === undefined ? await allMatches(context, words, pace) : undefined
  const total = found ?? (all && all.size - lacks.length)
  const parts = textMatches(sql, match, lacking(filter, lacks), words !== undefined && total !== undefined)
  return countedWindow(sql, { parts, found: total }, top, pace)
}

/** A filter that these documents do not pass. */
export const lacking = (filter: RangedFilter, seqs: readonly number[]): RangedFilter =>
  seqs.length === 0 ? filter : (range) => both(filter(range), not(oneOf([...seqs])))

/** Sequence numbers in one row: a list is read more quickly than many rows. */
function listOf(sql: SqlStorage, relation: SqlFragment, pace: Pace): number[] {
  const [row] = pace.query<{ list: string }>(
    sql,
    join([fragment('SELECT json_group_array(seq) AS list FROM ('), relation, fragment(')')], ''),
  )
  return JSON.parse(row!.list)
}
