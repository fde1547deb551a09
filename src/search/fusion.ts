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
  // MATERIALIZED: both sides are looked at twice, and the ranks must be worked out once.
  return {
    sql: `
      WITH t AS MATERIALIZED (
        SELECT seq, score, dense_rank() OVER (ORDER BY score) AS text_rank FROM (${text.sql})
      ), v AS MATERIALIZED (
        SELECT seq, distance, row_number() OVER (ORDER BY distance, seq DESC) AS vector_rank
          FROM (${vector.sql})
      )
      SELECT t.seq, t.score, v.distance, ? / t.text_rank + coalesce(? / v.vector_rank, 0) AS fused
        FROM t LEFT JOIN v ON v.seq = t.seq
      UNION ALL
      SELECT v.seq, NULL, v.distance, ? / v.vector_rank FROM v WHERE v.seq NOT IN (SELECT seq FROM t)`,
    bindings: [...text.bindings, ...vector.bindings, 1 - alpha, alpha, alpha],
  }
}
