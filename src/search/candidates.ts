/**
 * What a search has found, as a relation over which hits are ordered, facets counted and groups made:
 *
 *     seq        the document's number
 *     score      BM25 as FTS5 gives it, lower is better; NULL when the words were not found
 *     distance   of the document's vector; NULL when it is not among the nearest
 *     fused      both ranks in one number, higher is better; hybrid searches only
 *
 * It stays SQL to the end, so that ten thousand matches never pass through JavaScript for the sake of ten hits.
 */
import { fragment, join, type SqlFragment } from './fragment'
import { fusion } from './fusion'
import type { Neighbour } from './vector-index'

export interface Candidates {
  relation: SqlFragment
  /** whether `score` and `distance` carry something */
  text: boolean
  vector: boolean
  /** how many they are, where that is known already */
  found: number | undefined
}

/** Text matches in text_index: an FTS5 expression, and the weights as FTS5's `rank` takes them. */
export interface TextMatch {
  match: string
  /** `bm25(2.0, 1.0)` */
  rank: string
}

const where = (relation: SqlFragment, filter: SqlFragment): SqlFragment =>
  filter.sql === '1'
    ? relation
    : join([fragment('SELECT d.* FROM ('), relation, fragment(') d WHERE '), filter], '')

/** Every document that passes the filter. */
export const everything = (filter: SqlFragment): SqlFragment =>
  where(fragment('SELECT seq, NULL AS score, NULL AS distance, NULL AS fused FROM documents'), filter)

export const textMatches = ({ match, rank }: TextMatch, filter: SqlFragment): SqlFragment =>
  where(
    fragment(
      `SELECT rowid AS seq, rank AS score, NULL AS distance, NULL AS fused
         FROM text_index WHERE text_index MATCH ? AND rank MATCH ?`,
      match,
      rank,
    ),
    filter,
  )

/** Neighbours that one bound value holds: SQLite takes none above 2 MB, and one of them is 40 bytes at most. */
const NEIGHBOURS_A_BINDING = 50_000

/** Nearest neighbours, filtered already. */
export function neighbours(found: Neighbour[]): SqlFragment {
  const parts: SqlFragment[] = []
  for (let start = 0; start === 0 || start < found.length; start += NEIGHBOURS_A_BINDING) {
    const part = found.slice(start, start + NEIGHBOURS_A_BINDING)
    parts.push(
      fragment(
        `SELECT value ->> 0 AS seq, NULL AS score, value ->> 1 AS distance, NULL AS fused FROM json_each(?)`,
        JSON.stringify(part.map(({ seq, distance }) => [seq, distance])),
      ),
    )
  }
  return join(parts, ' UNION ALL ')
}

/** Both, fused by rank (fusion.ts). */
export const hybrid = (text: SqlFragment, found: Neighbour[], alpha: number): SqlFragment =>
  fusion(text, neighbours(found), alpha)

export const countOf = (sql: SqlStorage, relation: SqlFragment): number =>
  sql.exec<{ count: number }>(`SELECT count(*) AS count FROM (${relation.sql})`, ...relation.bindings).one()
    .count

/** A window on what was found. */
export interface Top {
  offset: number
  limit: number
  /** the whole ORDER BY, over `d` */
  order: SqlFragment
  /** it looks at the score, best first, before anything else */
  byScore: boolean
}

/** A document as it was found: the columns of the relation. */
export interface Match {
  seq: number
  score: number | null
  distance: number | null
  fused: number | null
}

/**
 * A window of what was found and how many there are in all, in one pass, which is most of what a search costs.
 * Where the score comes first, what the order looks at after it is read only for matches that are as good as
 * the window's last.
 */
export function countedWindow(
  sql: SqlStorage,
  relation: SqlFragment,
  { offset, limit, order, byScore }: Top,
): { rows: Match[]; found: number } {
  if (limit <= 0) return { rows: [], found: countOf(sql, relation) }
  const asGood = byScore
    ? fragment(
        ' WHERE d.score <= coalesce((SELECT score FROM m ORDER BY score LIMIT 1 OFFSET ?), 0)',
        offset + limit - 1,
      )
    : fragment('')
  const query = join(
    [
      fragment('WITH m AS MATERIALIZED ('),
      relation,
      fragment(') SELECT d.seq, d.score, d.distance, d.fused, (SELECT count(*) FROM m) AS found FROM m d'),
      asGood,
      fragment(' ORDER BY '),
      order,
      fragment(' LIMIT ? OFFSET ?', limit, offset),
    ],
    '',
  )
  const rows = sql
    .exec<Record<string, SqlStorageValue> & Match & { found: number }>(query.sql, ...query.bindings)
    .toArray()
  return { rows, found: rows[0]?.found ?? (offset === 0 ? 0 : countOf(sql, relation)) }
}
