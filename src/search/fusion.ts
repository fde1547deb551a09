/**
 * Rank fusion as Typesense does it:
 *
 *     fused = (1 - alpha) / text rank + alpha / vector rank
 *
 * Text ranks are dense: documents with equal scores share one. Vector ranks count from 1 by distance. A side on
 * which the document was not found adds nothing.
 */
import type { SqlFragment } from './fragment'

/** @param text and @param vector relations with `seq`, `score` and `distance` (candidates.ts) */
export function fusion(text: SqlFragment, vector: SqlFragment, alpha: number): SqlFragment {
  // Grouped and not joined: SQLite would compare each match with each neighbour, a hundred million pairs for ten
  // thousand of both. A side that is missing is NULL in max() and nothing in sum().
  return {
    sql: `
      SELECT seq, max(score) AS score, max(distance) AS distance, sum(share) AS fused FROM (
        SELECT seq, score, NULL AS distance, ? / dense_rank() OVER (ORDER BY score) AS share FROM (${text.sql})
        UNION ALL
        SELECT seq, NULL, distance, ? / row_number() OVER (ORDER BY distance, seq DESC) FROM (${vector.sql})
      ) GROUP BY seq`,
    bindings: [1 - alpha, ...text.bindings, alpha, ...vector.bindings],
  }
}
