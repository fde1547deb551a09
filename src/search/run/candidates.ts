/**
 * The matches of a search. FTS5 finds those of words, in parts that are each small enough for one statement (scan.ts):
 *
 *     seq        the document's sequence number
 *     score      FTS5's BM25, lower is better; NULL when the words were not found
 *     distance   of the document's vector; NULL when it is not among the nearest
 *     fused      both ranks in one number, higher is better; hybrid searches only
 */
import { ApiError } from '../../errors'
import { fragment, join, limited, oneOf, type SqlFragment } from '../fragment'
import { MAX_RANKED } from '../limits'
import { type Range, ROWID_IN_RANGE } from '../range'
import type { SortKey } from '../request/sort'
import { BLOCK } from '../schema/block'
import type { TextMatch } from '../text/query'
import { Gathered, type OrderedMatch } from './gathered'
import { type MatchSet, once, type Parts, setOf } from './match-set'
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
    set: MatchSet,
    keys: readonly SortKey[],
    window: { offset: number; limit: number },
  ): Promise<OrderedMatch[]>
}

/** The matches of a search. */
export interface Candidates {
  /** whether words were found, and neighbours of a vector */
  text: boolean
  vector: boolean
  /** the number of matches, if already known */
  found: number | undefined
  /** all of them, unless the search is cut off (match-set.ts); found once */
  set(pace: Pace): Promise<MatchSet>
  /** the same with the scores and distances by which they were found */
  gathered?: ((pace: Pace) => Promise<Gathered>) | undefined
  /** of matches of words that a plain search has found */
  fit?: Fit
}

/** What the hits of a search have to meet. */
export interface Conditions {
  /** nothing: all documents pass */
  readonly isAll: boolean
  /** the documents of a set that pass */
  among(set: MatchSet, pace: Pace): Promise<MatchSet>
  /** all documents that pass; found once */
  set(pace: Pace): Promise<MatchSet>
}

/** More than any score of BM25. */
const FIRST = 1_000

export const where = (relation: SqlFragment, filter: SqlFragment): SqlFragment =>
  filter.sql === '1'
    ? relation
    : join([fragment('SELECT d.* FROM ('), relation, fragment(') d WHERE '), filter], '')

/** Words of an expression that take no longer than few. */
const FEW_WORDS = 40

/** How many times as long as for a few words FTS5 takes for a document: it looks at each word of an expression, in quotes. */
export const weightOfWords = (match: string): number => Math.max(1, match.split('"').length / 2 / FEW_WORDS)

/** A test for the documents of a set. */
export const isIn =
  (set: MatchSet) =>
  ({ low, high }: Range): SqlFragment => {
    const seqs: number[] = []
    for (const [number, offsets] of set) {
      if (number < Math.floor(low / BLOCK) || number * BLOCK > high) continue
      for (const at of offsets) seqs.push(number * BLOCK + at)
    }
    return oneOf(seqs)
  }

/** @param isAtOnce whether one statement finds all matches */
const inRanges = (
  sql: SqlStorage,
  relationOf: (range: Range) => SqlFragment,
  isAtOnce: (pace: Pace) => boolean = () => false,
  weight = 1,
): Parts =>
  async function* (pace, width = FIRST_WIDTH) {
    const division = { atOnce: isAtOnce(pace), weight }
    for await (const range of ranges(sql, pace, width, division)) yield { range, relation: relationOf(range) }
  }

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
 * @param test that the documents of a range have to pass
 * @param atOnce whether one statement finds all matches, for callers who want only the best. A statement with BM25
 *   takes long whatever its range, because FTS5 reads all documents of each word
 */
export const textMatches = (
  sql: SqlStorage,
  match: TextMatch,
  test: (range: Range) => SqlFragment = () => fragment('1'),
  atOnce = false,
): Parts =>
  inRanges(
    sql,
    (range) => textMatchesIn(match, test(range), range),
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

/** A window of the matches, by keys of which the first is the score of their words, best first. */
export interface Top {
  offset: number
  limit: number
  sort: readonly SortKey[]
}

/**
 * Loads candidates into memory.
 * @param into already has some of them
 * @throws ApiError 422 when there are too many
 */
export async function gather(
  sql: SqlStorage,
  parts: Parts,
  pace: Pace,
  into = new Gathered(),
): Promise<Gathered> {
  for await (const { relation } of parts(pace)) {
    for (const { seq, score, distance, fused } of pace.query<Record<string, number | null>>(sql, relation)) {
      into.add(seq!, score ?? undefined, distance ?? undefined, fused ?? undefined)
    }
    if (into.size > MAX_RANKED) {
      throw new ApiError(
        422,
        `The search ranks at most ${MAX_RANKED} documents together. Find fewer with \`filter_by\`, or search by words or by vector alone and without buckets.`,
      )
    }
  }
  return into
}

/**
 * Loads text matches into memory: `seq` and `score`, which takes half the time of all four columns.
 * @throws ApiError 422 when there are too many
 */
export const gatherScores = (sql: SqlStorage, parts: Parts, pace: Pace): Promise<Gathered> =>
  gather(sql, withColumns(parts, 'd.seq, d.score'), pace)

/** The same matches with these columns alone. */
const withColumns = (parts: Parts, columns: string): Parts =>
  async function* (pace) {
    for await (const { relation, range } of parts(pace)) {
      yield { relation: join([fragment(`SELECT ${columns} FROM (`), relation, fragment(') d')], ''), range }
    }
  }

/**
 * The matches with the best scores, and those that are as good as the last of them: without other keys, the newest of
 * those. All in one pass with the number of matches, which is most of the cost of a search.
 */
export async function bestByScore(
  sql: SqlStorage,
  parts: Parts,
  wanted: number,
  isOnly: boolean,
  pace: Pace,
): Promise<{ best: Gathered; found: number }> {
  let found = 0
  let best = new Gathered()
  for await (const { relation } of parts(pace)) {
    const query = join(
      [
        fragment('WITH m AS MATERIALIZED (SELECT d.seq, d.score FROM ('),
        relation,
        fragment(
          `) d) SELECT m.seq, m.score, (SELECT count(*) FROM m) AS found FROM m
             WHERE m.score <= coalesce((SELECT score FROM m ORDER BY score LIMIT 1 OFFSET ?), 0)`,
          wanted - 1,
        ),
        ...(isOnly ? [fragment(' ORDER BY m.score, m.seq DESC'), limited(wanted)] : []),
      ],
      '',
    )
    const rows = pace.query<{ seq: number; score: number; found: number }>(sql, query)
    found += rows[0]?.found ?? 0
    for (const { seq, score } of rows) best.add(seq, score)
    best = await pace.through(best.best(wanted))
  }
  return { best, found }
}

/** Documents that are in memory, as matches that were found neither by words nor by a vector. */
export const equalCandidates = (set: MatchSet): Candidates => ({
  text: false,
  vector: false,
  found: undefined,
  set: async () => set,
})

/** Matches that are in memory with what they were found by. */
export const candidatesOf = (gathered: Gathered, text: boolean, vector: boolean): Candidates => ({
  text,
  vector,
  found: gathered.size,
  set: once(async () => setOf(gathered.seqs)),
  gathered: async () => gathered,
})
