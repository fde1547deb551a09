/**
 * rerank_hybrid_matches: completes both sides of every hit. Keyword matches get their distance measured, however far
 * they are, and neighbours get a score by whichever words they contain.
 *
 * Distances are measured for the best ten thousand keyword matches and for the neighbours. Any later match keeps its
 * keyword rank: its vector could add no more than 0.3 / 101.
 */

import { oneOf } from '../fragment'
import { EVERYWHERE } from '../range'
import { stepwise } from '../steps'
import type { TextMatch } from '../text/query'
import { byDistance, type Neighbour } from '../vectors/vector-index'
import { gather, textMatchesIn } from './candidates'
import type { SearchContext } from './context'
import type { Gathered } from './gathered'
import type { Parts } from './match-set'
import type { VectorSearch } from './nearest'
import type { Pace } from './pace'

/** Keyword matches whose distances are measured: each takes 6 microseconds. */
const MAX_MEASURED = 10_000

/**
 * Completes both sides of a hybrid search.
 * @param text keyword matches; gets those added that only the vector has found
 * @param anyWord matches documents with any of the words
 * @returns distances of all of them, nearest first
 */
export async function completeSides(
  context: SearchContext,
  {
    vector,
    nearest,
    text,
    anyWord,
  }: { vector: VectorSearch; nearest: Neighbour[]; text: Gathered; anyWord: TextMatch },
  pace: Pace,
): Promise<Neighbour[]> {
  const byVectorAlone = new Set(nearest.map(({ seq }) => seq))
  await pace.through(stepwise(text.size, (at) => byVectorAlone.delete(text.seqs[at]!)))
  const best = await pace.through(text.best(MAX_MEASURED))
  const measured = new Set([...best.seqs.slice(0, MAX_MEASURED), ...nearest.map(({ seq }) => seq)])
  const relation = textMatchesIn(anyWord, oneOf([...byVectorAlone]), EVERYWHERE)
  const added: Parts = async function* () {
    yield { relation, range: EVERYWHERE }
  }
  await gather(context.sql, added, pace, text)
  return measure(context, vector, [...measured], pace)
}

/** Distances computed before other searches get a turn. */
const MEASURED_AT_ONCE = 1_000

/** The distances of documents that have a vector, nearest first. */
async function measure(
  context: SearchContext,
  { field, vector }: VectorSearch,
  seqs: number[],
  pace: Pace,
): Promise<Neighbour[]> {
  const measured: Neighbour[] = []
  for (let from = 0; from < seqs.length; from += MEASURED_AT_ONCE) {
    const some = new Set(seqs.slice(from, from + MEASURED_AT_ONCE))
    for (const neighbour of context.vectors(field).nearest(vector, some.size, some)) measured.push(neighbour)
    await pace.rest()
  }
  return measured.sort(byDistance)
}
