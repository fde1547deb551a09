/**
 * rerank_hybrid_matches: every hit gets both of its sides. What the words found has its distance measured,
 * however far it is, and what the vector found is scored by whichever of the words it holds.
 *
 * Measured are the best ten thousand by their words, and the neighbours. What comes after those and is no
 * neighbour keeps the rank of its words: its vector could add no more than 0.3 / 101 to that.
 */
import { hybrid, textMatches } from './candidates'
import type { SearchContext } from './context'
import { oneOf } from './filter/compile'
import { fragment, join, type SqlFragment } from './fragment'
import { matchOfAny } from './keyword'
import type { VectorSearch } from './nearest'
import type { ParsedQuery, Term } from './query'
import type { SearchRequest } from './request'
import type { Neighbour } from './vector-index'

/** Text matches whose distances are measured: each takes 6 microseconds. */
const MAX_MEASURED = 10_000

export function rerankCandidates(
  context: SearchContext,
  request: SearchRequest,
  found: {
    vector: VectorSearch
    nearest: Neighbour[]
    text: SqlFragment
    terms: Term[]
    query: ParsedQuery
  },
): SqlFragment {
  const { vector, nearest, text, terms, query } = found
  const bestFirst = context.sql
    .exec<{ seq: number }>(`SELECT seq FROM (${text.sql}) ORDER BY score`, ...text.bindings)
    .toArray()
    .map(({ seq }) => seq)
  const byText = new Set(bestFirst)
  const byVector = nearest.map(({ seq }) => seq)
  const byVectorAlone = byVector.filter((seq) => !byText.has(seq))
  const measured = new Set([...bestFirst.slice(0, MAX_MEASURED), ...byVector])
  const distances = context.vectors(vector.field).nearest(vector.vector, measured.size, measured)
  const scored = textMatches(matchOfAny(context, request, query, terms), oneOf(byVectorAlone))
  return hybrid(join([text, fragment(' UNION ALL '), scored], ''), distances, vector.alpha)
}
