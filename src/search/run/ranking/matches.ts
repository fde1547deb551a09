/** The matches of an expression without their scores: which they are, if they are few, and how many. */
import { fragment, join, type SqlFragment } from '../../fragment'
import { type Candidates, countIn, type RangedFilter, type TextMatch, unscoredMatches } from '../candidates'
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

/** Text matches with the columns of a match, for orders that do not ask for the score. */
export const withoutScores = (sql: SqlStorage, match: TextMatch, filter: RangedFilter): Candidates['parts'] =>
  async function* (pace, width) {
    for await (const { relation, range } of unscoredMatches(sql, match, filter)(pace, width)) {
      const columns = 'SELECT d.seq, NULL AS score, NULL AS distance, NULL AS fused FROM ('
      yield { range, relation: join([fragment(columns), relation, fragment(') d')], '') }
    }
  }

/** Columns whose lengths are told. Each column before one makes the query longer. */
const MOST_COLUMNS = 16

/** Whether `wordsIn` tells the length of a field: it does not in a column that fields share. */
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
