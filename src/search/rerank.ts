/**
 * rerank_hybrid_matches: every hit gets both of its sides. What the words found has its distance measured,
 * however far it is, and what the vector found is scored by whichever of the words it holds.
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
  const byText = new Set(
    context.sql
      .exec<{ seq: number }>(`SELECT seq FROM (${text.sql})`, ...text.bindings)
      .toArray()
      .map(({ seq }) => seq),
  )
  const byVectorAlone = nearest.map(({ seq }) => seq).filter((seq) => !byText.has(seq))
  const all = new Set([...byText, ...byVectorAlone])
  const distances = context.vectors(vector.field).nearest(vector.vector, all.size, all)
  const scored = textMatches(matchOfAny(context, request, query, terms), oneOf(byVectorAlone))
  return hybrid(join([text, fragment(' UNION ALL '), scored], ''), distances, vector.alpha)
}
