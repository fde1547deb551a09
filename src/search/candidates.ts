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

/** Nearest neighbours, filtered already. */
export const neighbours = (found: Neighbour[]): SqlFragment =>
  fragment(
    `SELECT value ->> 0 AS seq, NULL AS score, value ->> 1 AS distance, NULL AS fused FROM json_each(?)`,
    JSON.stringify(found.map(({ seq, distance }) => [seq, distance])),
  )

/** Both, fused by rank (fusion.ts). */
export const hybrid = (text: SqlFragment, found: Neighbour[], alpha: number): SqlFragment =>
  fusion(text, neighbours(found), alpha)

export const countOf = (sql: SqlStorage, relation: SqlFragment): number =>
  sql.exec<{ count: number }>(`SELECT count(*) AS count FROM (${relation.sql})`, ...relation.bindings).one()
    .count
