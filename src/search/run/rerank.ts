/**
 * rerank_hybrid_matches: every hit gets both of its sides. What the words found has its distance measured,
 * however far it is, and what the vector found is scored by whichever of the words it holds.
 *
 * Measured are the best ten thousand by their words, and the neighbours. What comes after those and is no
 * neighbour keeps the rank of its words: its vector could add no more than 0.3 / 101 to that.
 */

import { oneOf } from '../fragment'
import { EVERYWHERE } from '../range'
import { byDistance, type Neighbour } from '../vectors/vector-index'
import { type TextMatch, textMatchesIn } from './candidates'
import type { SearchContext } from './context'
import { type Gathered, gather } from './gathered'
import type { VectorSearch } from './nearest'
import type { Pace } from './pace'

/** Text matches whose distances are measured: each takes 6 microseconds. */
const MAX_MEASURED = 10_000

/**
 * Completes both sides of a hybrid search.
 * @param text the matches by words; those that the vector alone has found are added to them
 * @param anyWord the match of documents with any of the words
 * @returns distances of them all, nearest first
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
  const byText = new Set(text.seqs)
  const byVector = nearest.map(({ seq }) => seq)
  const byVectorAlone = byVector.filter((seq) => !byText.has(seq))
  const best = text.best(
    MAX_MEASURED,
    text.scores.map((score) => -score),
  )
  const measured = new Set([...best.seqs.slice(0, MAX_MEASURED), ...byVector])
  await pace.rest()
  const relation = textMatchesIn(anyWord, oneOf(byVectorAlone), EVERYWHERE)
  const added: typeof text.parts = async function* () {
    yield { relation, range: EVERYWHERE }
  }
  await gather(context.sql, added, pace, text)
  return measure(context, vector, [...measured], pace)
}

/** Distances of documents that are measured without a rest. */
const MEASURED_AT_ONCE = 1_000

/** Distances of these documents, as far as they have a vector, nearest first. */
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
