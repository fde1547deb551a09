/** The matches of an expression without their scores: which they are, if they are few, and how many. */
import { fragment, join, type SqlFragment } from '../../fragment'
import { countIn, type RangedFilter, type TextMatch, unscoredMatches } from '../candidates'
import type { Pace } from '../pace'

/** All matches of an expression, if there are at most so many; undefined otherwise. */
export async function fewMatches(
  sql: SqlStorage,
  match: TextMatch,
  filter: RangedFilter,
  most: number,
  pace: Pace,
): Promise<number[] | undefined> {
  const seqs: number[] = []
  for await (const { relation } of unscoredMatches(sql, match, filter)(pace)) {
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
  sql: SqlStorage,
  match: TextMatch,
  filter: RangedFilter,
  most: number,
  pace: Pace,
): Promise<{ found: number; seqs: number[] | undefined }> {
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

/** Sequence numbers in one row: a list is read more quickly than many rows. */
function listOf(sql: SqlStorage, relation: SqlFragment, pace: Pace): number[] {
  const [row] = pace.query<{ list: string }>(
    sql,
    join([fragment('SELECT json_group_array(seq) AS list FROM ('), relation, fragment(')')], ''),
  )
  return JSON.parse(row!.list)
}
