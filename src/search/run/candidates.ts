/**
 * The matches of a search, as SQL relations. Ordering, facets and groups work on these:
 *
 *     seq        the document's sequence number
 *     score      FTS5's BM25, lower is better; NULL when the words were not found
 *     distance   of the document's vector; NULL when it is not among the nearest
 *     fused      both ranks in one number, higher is better; hybrid searches only
 *
 * They come in parts, each small enough for one statement (scan.ts), and no document is in two parts. Most of the
 * work stays in SQL, so ten thousand matches need not pass through JavaScript to give ten hits.
 */
import { fragment, join, limited, type SqlFragment } from '../fragment'
import { type Range, ROWID_IN_RANGE } from '../range'
import type { Order } from '../request/order'
import type { SortKey } from '../request/sort'
import type { TextIndex } from '../text/analyzer'
import type { Pace } from './pace'
import { FIRST_WIDTH, ranges } from './scan'

/** Of each block, the scores of its documents by offset. As of FTS5, lower is better. */
export type Scores = (number: number) => (at: number) => number

/** How well matches of words fit, for those who need to know. */
export interface Fit {
  /** the scores of all matches */
  all(pace: Pace): Promise<Scores>
  /** the scores of some documents, which are read. Deleted ones are missing */
  of(seqs: readonly number[]): ReadonlyMap<number, number>
  /** a window of some of the matches, those that fit best first, and then by the keys of an order */
  first(
    set: ReadonlyMap<number, Uint16Array>,
    keys: readonly SortKey[],
    window: { offset: number; limit: number },
  ): Promise<OrderedMatch[]>
}

/** A part of the matches. */
export interface Part {
  relation: SqlFragment
  /** contains the sequence numbers of all of its documents */
  range: Range
}

export interface Candidates {
  /** All matches, unless the search is cut off. @param width sequence numbers that the first part spans */
  parts(pace: Pace, width?: number): AsyncIterable<Part>
  /** whether `score` and `distance` are set */
  text: boolean
  vector: boolean
  /** the number of matches, if already known */
  found: number | undefined
  /** The same matches in memory, where that is possible (match-set.ts). Resolves to undefined if it turns out not to be. */
  set?: ((pace: Pace) => Promise<ReadonlyMap<number, Uint16Array> | undefined>) | undefined
  /** of matches of words that a plain search has found, whose `set` lacks the scores */
  fit?: Fit
  /** The matches that can be among the best `count`, where all are in memory. */
  leading?: ((count: number) => Candidates['parts']) | undefined
}

/** A filter for the documents of a range; `1` passes all of them. */
export interface RangedFilter {
  (range: Range): SqlFragment
  /** the documents that pass, where memory can tell */
  set?: Candidates['set']
}

/** A query of a full-text index: an FTS5 expression, and the weights in the form of FTS5's `rank`. */
export interface TextMatch {
  match: string
  table: TextIndex['table']
  /** `bm25(2.0, 1.0)` */
  rank: string
  /** an FTS5 expression. Its matches come before all others */
  first?: string
}

/** More than any score of BM25. */
const FIRST = 1_000

export const where = (relation: SqlFragment, filter: SqlFragment): SqlFragment =>
  filter.sql === '1'
    ? relation
    : join([fragment('SELECT d.* FROM ('), relation, fragment(') d WHERE '), filter], '')

/** Both filters of a document. */
export const both = (one: SqlFragment, other: SqlFragment): SqlFragment =>
  one.sql === '1' ? other : join([fragment('('), one, fragment(') AND ('), other, fragment(')')], '')

/** Words of an expression that take no longer than few. */
const FEW_WORDS = 40

/** How many times as long as for a few words FTS5 takes for a document: it looks at each word of an expression, in quotes. */
export const weightOfWords = (match: string): number => Math.max(1, match.split('"').length / 2 / FEW_WORDS)

/** @param isAtOnce whether one statement finds all matches */
const inRanges = (
  sql: SqlStorage,
  relationOf: (range: Range) => SqlFragment,
  isAtOnce: (pace: Pace) => boolean = () => false,
  weight = 1,
): Candidates['parts'] =>
  async function* (pace, width = FIRST_WIDTH) {
    const division = { atOnce: isAtOnce(pace), weight }
    for await (const range of ranges(sql, pace, width, division)) yield { range, relation: relationOf(range) }
  }

/** Every document that passes the filter. */
export const everything = (sql: SqlStorage, filter: RangedFilter): Candidates['parts'] =>
  inRanges(sql, (range) =>
    where(
      fragment(
        `SELECT seq, NULL AS score, NULL AS distance, NULL AS fused FROM documents WHERE seq BETWEEN ? AND ?`,
        range.low,
        range.high,
      ),
      filter(range),
    ),
  )

/** Text matches among the documents of a range. */
export const textMatchesIn = (
  { match, table, rank, first }: TextMatch,
  filter: SqlFragment,
  { low, high }: Range,
): SqlFragment => {
  const score =
    first === undefined
      ? 'rank'
      : `rank - iif(rowid IN (SELECT rowid FROM ${table} WHERE ${table} MATCH ? AND ${ROWID_IN_RANGE}), ${FIRST}, 0)`
  // With a bare rowid, SQLite may evaluate an `a OR b` of the filter row by row without using the full-text index,
  // which FTS5 refuses ("unable to use function MATCH").
  return where(
    fragment(
      `SELECT +rowid AS seq, ${score} AS score, NULL AS distance, NULL AS fused
         FROM ${table} WHERE ${table} MATCH ? AND rank MATCH ? AND ${ROWID_IN_RANGE}`,
      ...(first === undefined ? [] : [first, low, high]),
      match,
      rank,
      low,
      high,
    ),
    filter,
  )
}

/**
 * @param atOnce whether one statement finds all matches, for callers who want only the best. A statement with BM25
 *   takes long whatever its range, because FTS5 reads all documents of each word
 */
export const textMatches = (
  sql: SqlStorage,
  match: TextMatch,
  filter: RangedFilter,
  atOnce = false,
): Candidates['parts'] =>
  inRanges(
    sql,
    (range) => textMatchesIn(match, filter(range), range),
    () => atOnce,
    weightOfWords(match.match),
  )

/**
 * Text matches without scores: `seq` is the only column. BM25 reads the length of each matching document and looks each
 * word up again, so it costs more than finding the matches.
 */
export const unscoredIn = (
  { match, table }: Pick<TextMatch, 'match' | 'table'>,
  { low, high }: Range,
): SqlFragment =>
  fragment(
    `SELECT +rowid AS seq FROM ${table} WHERE ${table} MATCH ? AND ${ROWID_IN_RANGE}`,
    match,
    low,
    high,
  )

/** Counts the matches, up to where the search is cut off. */
export async function countOf(sql: SqlStorage, parts: Candidates['parts'], pace: Pace): Promise<number> {
  let total = 0
  for await (const { relation } of parts(pace)) total += countIn(sql, relation, pace)
  return total
}

/** Counts the matches of a part. */
function countIn(sql: SqlStorage, relation: SqlFragment, pace: Pace): number {
  const [row] = pace.query<{ count: number }>(
    sql,
    join([fragment('SELECT count(*) AS count FROM ('), relation, fragment(')')], ''),
  )
  return row!.count
}

/** A window of the matches. */
export interface Top {
  offset: number
  limit: number
  order: Order
  /** the score, best first, comes before all other keys */
  byScore: boolean
}

/** A match: the columns of the relation. */
export interface Match {
  seq: number
  score: number | null
  distance: number | null
  fused: number | null
}

/** A match with the columns that it is ordered by. */
export type OrderedMatch = Match & Record<string, SqlStorageValue>

/** Adds the columns that an order needs. Filters in it may read documents, which `pace` counts. */
export const ordered = (
  { relation, range }: Part,
  { columns }: Order,
  pace: Pick<Pace, 'countDocuments'>,
): SqlFragment => {
  const own = columns(range, pace.countDocuments)
  if (own.length === 0) return relation
  return join([fragment('SELECT d.*, '), join(own, ', '), fragment(' FROM ('), relation, fragment(') d')], '')
}

/**
 * A window of the matches and their total number in one pass, which is most of the cost of a search. If the score is
 * the first key, the columns of other keys are read only for matches that are as good as the window's last.
 * @param top undefined to count alone
 */
export async function countedWindow(
  sql: SqlStorage,
  { parts, found: known }: Pick<Candidates, 'parts' | 'found'>,
  top: Top | undefined,
  pace: Pace,
): Promise<{ rows: OrderedMatch[]; found: number }> {
  if (top === undefined || top.limit <= 0)
    return { rows: [], found: known ?? (await countOf(sql, parts, pace)) }
  const { offset, limit, order, byScore } = top
  const wanted = offset + limit
  let found = 0
  let many = false
  let best: OrderedMatch[] = []
  for await (const part of parts(pace)) {
    const columns = ordered(part, order, pace)
    const query =
      known === undefined ? counted(columns, order, byScore, wanted) : plain(columns, order, wanted)
    const rows = pace.query<OrderedMatch & { found: number }>(sql, query)
    found += rows[0]?.found ?? 0
    many ||= best.length > 0 && rows.length > 0
    best = [...best, ...rows]
    if (order.newestFirst && known !== undefined && best.length >= wanted) break
    if (best.length > 2 * wanted + PRUNED_FROM) {
      best = await bestOf(sql, best, order, wanted, pace)
      many = false
    }
  }
  if (many) best = await bestOf(sql, best, order, wanted, pace)
  return { rows: best.slice(offset, wanted), found: known ?? found }
}

/** Below this number of rows, pruning costs more than it saves. */
const PRUNED_FROM = 1_000

const plain = (columns: SqlFragment, order: Order, wanted: number): SqlFragment =>
  join([fragment('SELECT d.* FROM ('), columns, fragment(') d ORDER BY '), order.by, limited(wanted)], '')

function counted(columns: SqlFragment, order: Order, byScore: boolean, wanted: number): SqlFragment {
  const asGood = byScore
    ? fragment(
        ' WHERE d.score <= coalesce((SELECT score FROM m ORDER BY score LIMIT 1 OFFSET ?), 0)',
        wanted - 1,
      )
    : fragment('')
  return join(
    [
      fragment('WITH m AS MATERIALIZED ('),
      columns,
      fragment(') SELECT d.*, (SELECT count(*) FROM m) AS found FROM m d'),
      asGood,
      fragment(' ORDER BY '),
      order.by,
      limited(wanted),
    ],
    '',
  )
}

/** The first rows in order, of those from several parts. */
async function bestOf(
  sql: SqlStorage,
  rows: OrderedMatch[],
  order: Order,
  wanted: number,
  pace: Pace,
): Promise<OrderedMatch[]> {
  // Take rows from this map: SQLite may lose the last digits of a number that it reads from JSON.
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  const query = join(
    [
      fragment('SELECT d.seq FROM ('),
      rowsAsRelation(rows, order.names),
      fragment(') d ORDER BY '),
      order.by,
      limited(wanted),
    ],
    '',
  )
  const best = pace.query<{ seq: number }>(sql, query).map(({ seq }) => bySeq.get(seq)!)
  await pace.rest()
  return best
}

/** Bytes of a bound value: SQLite takes none above 2 MB. */
const MOST_BINDING = 1_000_000

/** Turns rows into a relation. @param names columns besides those of a match */
export function rowsAsRelation(rows: readonly OrderedMatch[], names: readonly string[] = []): SqlFragment {
  const columns = ['seq', 'score', 'distance', 'fused', ...names]
  const select = `SELECT ${columns.map((name, at) => `value ->> ${at} AS ${name}`).join(', ')} FROM json_each(?)`
  const parts: SqlFragment[] = []
  let texts: string[] = []
  let length = 0
  const flush = () => {
    parts.push(fragment(select, `[${texts.join(',')}]`))
    texts = []
    length = 0
  }
  for (const row of rows) {
    const text = JSON.stringify(columns.map((name) => row[name]))
    // One UTF-16 unit takes at most three bytes of UTF-8, and group keys may contain any text.
    const bytes = names.length === 0 ? text.length : text.length * 3
    if (length + bytes > MOST_BINDING) flush()
    texts.push(text)
    length += bytes + 1
  }
  if (texts.length > 0 || parts.length === 0) flush()
  return join(parts, ' UNION ALL ')
}
