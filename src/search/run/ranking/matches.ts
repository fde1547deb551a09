/** The matches of an expression without their scores: a list if they are few, otherwise their number. */

import { readColumn } from '../../../stored-json'
import { fragment, join, limited, not, oneOf, type SqlFragment } from '../../fragment'
import type { Range } from '../../range'
import { orderBy, type SortKey } from '../../request/sort'
import {
  both,
  type Candidates,
  countedWindow,
  countIn,
  countOf,
  inRanges,
  type OrderedMatch,
  type RangedFilter,
  type TextMatch,
  type Top,
  textMatches,
  unscoredIn,
  unscoredMatches,
  where,
} from '../candidates'
import type { SearchContext } from '../context'
import { filteredMatches } from '../filtered-matches'
import { Gathered } from '../gathered'
import { allMatches, atMost, knownMatches, type Matches, wordsOf } from '../kept-matches'
import type { Pace } from '../pace'
import { MOST_OF_PAGES } from '../recent-questions'
import { bestByPostings, type Scored } from '../word-ranking'

/** Up to this many matches are all read, without asking FTS5 for the best. Of each tier, this many are read. */
export const FEW = 64

/** The order of BM25. */
export const BY_TEXT: SortKey = { kind: 'text_match', buckets: undefined, direction: 'DESC' }

/** Up to this many matches that are in memory are ordered by one statement. */
const MOST_LISTED = 4_096

/** One match costs a slice as much as this many rows. */
const ROWS_A_MATCH = 10

/**
 * All matches of an expression, if there are at most `most`; undefined otherwise.
 * @param among an upper bound of their number, if known
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
  const words = wordsOf(match, filter)
  const known =
    words === undefined
      ? await filteredMatches(context, match, filter, pace)
      : knownMatches(context, words, pace)
  if (known !== undefined) return atMost(most, known)
  // FTS5 is quicker for several whole words: it steps over documents that lack the rarer one. Looking for rare places, it
  // reads on past the end of a slice.
  if (words?.words !== undefined && (words.collects || words.words.expression.kind !== 'and')) {
    const all = await allMatches(context, words, pace, most)
    if (all !== undefined) return atMost(most, all)
  }
  const atOnce = ({ slice }: Pace) =>
    words?.collects === true || (among !== undefined && among * ROWS_A_MATCH <= slice.rows)
  const seqs: number[] = []
  for await (const { relation } of unscoredMatches(sql, match, filter, atOnce)(pace)) {
    seqs.push(...listOf(sql, join([relation, limited(most + 1)], ''), pace))
    if (seqs.length > most) return undefined
  }
  return seqs
}

/**
 * The matches of an expression with the beginning of a word. FTS5 collects all words with that beginning before it has
 * the first match, so all are counted at once.
 * @returns all matches, if there are few enough
 */
export async function countedMatches(
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
  most: number,
  pace: Pace,
): Promise<{ found: number; seqs: number[] | undefined }> {
  const { sql } = context
  const all = await filteredMatches(context, match, filter, pace)
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

/** Counts the matches of an expression. */
export const countMatches = async (
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
  pace: Pace,
): Promise<number> =>
  (await filteredMatches(context, match, filter, pace))?.size ??
  (await countOf(context.sql, unscoredMatches(context.sql, match, filter), pace))

/** The best matches of an expression, by BM25 or in another order, and the number of all. */
export interface Counted {
  rows: OrderedMatch[]
  found: number
}

/**
 * The best matches and how many there are. Those of a large collection are counted first, without their scores.
 * @param lacks matches to leave out
 * @param found how many there are without those, if known
 * @param isScored whether the order asks for the score
 */
export async function bestMatches(
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
  {
    lacks = [],
    found,
    isScored = true,
  }: { lacks?: readonly number[]; found?: number | undefined; isScored?: boolean },
  top: Top | undefined,
  pace: Pace,
): Promise<Counted> {
  const { sql } = context
  const words = wordsOf(match, filter)
  const ranks =
    isScored && top?.byScore === true && top.limit > 0 && (words === undefined || words.words !== undefined)
  const all =
    found === undefined || ranks || !isScored
      ? await filteredMatches(context, match, filter, pace)
      : undefined
  const total = found ?? (all && all.size - lacks.length)
  if (ranks && all !== undefined) {
    const wanted = { wanted: top.offset + top.limit, lacks }
    const best = await bestByPostings(context, match, all, wanted, pace)
    if (best !== undefined) return windowOf(sql, best, total!, top, pace)
  }
  const among = lacking(filter, lacks)
  const parts = isScored
    ? textMatches(sql, match, among, words !== undefined && total !== undefined)
    : withoutScores(sql, match, among, all)
  return countedWindow(sql, { parts, found: total }, top, pace)
}

/** A window of matches with scores. */
async function windowOf(
  sql: SqlStorage,
  best: readonly Scored[],
  found: number,
  top: Top,
  pace: Pace,
): Promise<Counted> {
  const gathered = new Gathered()
  for (const { seq, score } of best) gathered.add(seq, score, Number.NaN, Number.NaN)
  const scores = new Map(best.map(({ seq, score }) => [seq, score]))
  await pace.rest()
  const { rows } = await countedWindow(sql, { parts: gathered.parts, found }, top, pace)
  // SQLite may not read a number from JSON to its last digit.
  return { rows: rows.map((row) => ({ ...row, score: scores.get(row.seq)! })), found }
}

/** A filter that these documents do not pass. */
export const lacking = (filter: RangedFilter, seqs: readonly number[]): RangedFilter =>
  seqs.length === 0 ? filter : (range) => both(filter(range), not(oneOf([...seqs])))

/**
 * The best matches of a question by BM25, and the number of all. FTS5 takes long for the common words of a question.
 * So if one statement finds the best, they are cached until the next write.
 */
export async function bestOfQuestion(
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
  top: Top | undefined,
  pace: Pace,
): Promise<Counted> {
  const { sql, questions } = context
  const all = await allMatches(context, wordsOf(match, filter), pace)
  if (all === undefined || top === undefined || questions === undefined) {
    return bestMatches(context, match, filter, { found: all?.size }, top, pace)
  }
  const read = async () => {
    const order = orderBy([BY_TEXT], sql, context.schema, false)
    const first = { offset: 0, limit: MOST_OF_PAGES, order, byScore: true }
    const { rows } = await bestMatches(context, match, filter, { found: all.size }, first, pace)
    const gathered = new Gathered()
    for (const { seq, score } of rows) gathered.add(seq, score ?? Number.NaN, Number.NaN, Number.NaN)
    return gathered
  }
  const best = await questions.findOrRead(sql, match, pace, read, MOST_OF_PAGES)
  const scores = new Map(best.seqs.map((seq, at) => [seq, best.scores[at]!]))
  const worst = Math.max(...best.scores)
  const { rows } = await countedWindow(sql, { parts: best.parts, found: all.size }, top, pace)
  // If others are as good as the worst of these, the list is not complete for that score.
  const isWhole = best.size === all.size || (rows.length === top.limit && rows.at(-1)!.score! < worst)
  // SQLite may not read a number from JSON to its last digit.
  return isWhole
    ? { rows: rows.map((row) => ({ ...row, score: scores.get(row.seq)! })), found: all.size }
    : bestMatches(context, match, filter, { found: all.size }, top, pace)
}

/**
 * A window of the matches of a large collection in an order without scores, such as by length. The first few are cached until the
 * next write: their order takes a statement for each slice.
 * @param by identifies the order
 * @param lacks matches to leave out
 * @returns undefined if they have to be read anew
 */
export async function firstMatches(
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
  { by, order, lacks }: { by: string; order: Top['order']; lacks: readonly number[] },
  { offset, limit }: { offset: number; limit: number },
  pace: Pace,
): Promise<OrderedMatch[] | undefined> {
  const { sql, questions } = context
  const all = await allMatches(context, wordsOf(match, filter), pace)
  if (all === undefined || questions === undefined) return undefined
  const asked = { ...match, rank: by }
  const read = async () => {
    const top = { offset: 0, limit: MOST_OF_PAGES, order, byScore: false }
    const known = { found: all.size, isScored: false }
    const { rows } = await bestMatches(context, match, filter, known, top, pace)
    const gathered = new Gathered()
    for (const [place, { seq }] of rows.entries()) gathered.add(seq, place, Number.NaN, Number.NaN)
    return gathered
  }
  const first = await questions.findOrRead(sql, asked, pace, read, MOST_OF_PAGES)
  const left = first.seqs.filter((seq) => !lacks.includes(seq))
  if (left.length < offset + limit && first.size < all.size) return undefined
  const nothing = { score: null, distance: null, fused: null }
  return left.slice(offset, offset + limit).map((seq) => ({ seq, ...nothing }))
}

/** Sequence numbers in one row: a list is read more quickly than many rows. */
export function listOf(sql: SqlStorage, relation: SqlFragment, pace: Pace): number[] {
  const [row] = pace.query<{ list: string }>(
    sql,
    join([fragment('SELECT json_group_array(seq) AS list FROM ('), relation, fragment(')')], ''),
  )
  return readColumn<number>(row!.list)
}

/**
 * Text matches with the columns of a match, for orders that do not ask for the score.
 * @param all the same in memory: FTS5 would look for them again in each slice
 */
export const withoutScores = (
  sql: SqlStorage,
  match: TextMatch,
  filter: RangedFilter,
  all?: Matches,
): Candidates['parts'] =>
  async function* (pace, width) {
    const found = (range: Range) => where(all?.within(range) ?? unscoredIn(match, range), filter(range))
    const isFew = all !== undefined && all.size <= MOST_LISTED
    for await (const { relation, range } of inRanges(sql, found, () => isFew)(pace, width)) {
      const columns = 'SELECT d.seq, NULL AS score, NULL AS distance, NULL AS fused FROM ('
      yield { range, relation: join([fragment(columns), relation, fragment(') d')], '') }
    }
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
