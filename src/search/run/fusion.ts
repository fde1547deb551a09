/**
 * Score fusion: the order of a search for a question, by how well its words and its meaning fit.
 *
 * Rank fusion uses only ranks: the second document counts half as much as the first, however close their scores are.
 * Score fusion uses the scores of both sides:
 *
 *     fused = (1 - meaning) * bm25 / ideal  +  meaning * (floor - distance)
 *
 * `ideal` is the BM25 of a document with the words as often as can count. So the words' side counts by how much of
 * the question it found. If the question's rare words are in no document, meaning decides. `floor` is the distance of
 * the hundredth neighbour. So meaning counts by how clearly the nearest documents stand out.
 *
 * It is a convex combination as in Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM
 * TOIS 42 (2023), https://doi.org/10.1145/3596512, where the maximum is the largest possible BM25.
 */
import { type Steps, stepwise } from '../steps'
import type { Neighbour } from '../vectors/vector-index'
import { Gathered } from './candidates'
import type { WeighedWord } from './query-words'

/** Text matches, and the score of one that could not be better. */
export interface ScoredWords {
  /** FTS5's scores: negative, the lower the better */
  matches: Gathered
  /** the BM25 that they are compared with, positive; 0 if the question has no words */
  ideal: number
  /** the words of the question, if `ideal` was computed */
  asked?: WeighedWord[] | undefined
  /** the same of what was said before */
  said?: WeighedWord[] | undefined
}

/**
 * Weight of `context_q` beside `q`, for words and for meaning. On the 180 follow-ups of MTRAG 0.2 to 0.4 gain nearly the
 * same.
 */
export const CONTEXT_WEIGHT = 0.3

/**
 * The rank of the neighbour whose distance is `floor`. A fixed one, so that a later page does not change an earlier
 * one.
 */
const FLOOR = 100
/** With fewer neighbours than this, the last one says nothing: perhaps there are no other documents. */
const FEW = 50
/** The cosine distance of a text that has nothing to do with the question. */
const UNRELATED = 1

/**
 * Joins both sides by their scores. Every document of either side is in the result.
 * @param neighbours nearest first
 * @param meaning weight of the vectors, from 0 to 1; the words have the rest
 * @param bounded whether distances are from 0 to 2, as those of cosines; others are put on a scale from 0 to 1
 * @returns `fused` is from 0 to 2, and higher is better
 */
export function* fuseScores(
  words: ScoredWords,
  neighbours: readonly Neighbour[],
  meaning: number,
  bounded = true,
): Steps<Gathered> {
  const fused = new Gathered()
  const close = closenessOf(neighbours, bounded)
  const distances = new Map(neighbours.map(({ seq, distance }) => [seq, distance]))
  const { matches } = words
  yield* stepwise(matches.size, (at) => {
    const [seq, score] = [matches.seqs[at]!, matches.scores[at]!]
    const distance = distances.get(seq)
    const byMeaning = distance === undefined ? 0 : meaning * close(distance)
    fused.add(seq, score, distance ?? Number.NaN, (1 - meaning) * share(score, words) + byMeaning)
    distances.delete(seq)
  })
  for (const [seq, distance] of distances) fused.add(seq, Number.NaN, distance, meaning * close(distance))
  return fused
}

/**
 * Text matches of a question with those of what was said before it. Every match of either is in the result.
 * @param weight of `said`, from 0 to 1
 */
export function blend(asked: ScoredWords, said: ScoredWords, weight: number): ScoredWords {
  const ideal = asked.ideal || said.ideal
  const shares = new Map<number, number>()
  const add = (words: ScoredWords, factor: number) => {
    for (const [at, seq] of words.matches.seqs.entries()) {
      shares.set(seq, (shares.get(seq) ?? 0) + factor * share(words.matches.scores[at]!, words))
    }
  }
  add(asked, 1 - weight)
  add(said, weight)
  const matches = new Gathered()
  for (const [seq, value] of shares) matches.add(seq, -value * ideal)
  return { matches, ideal, asked: asked.asked, said: said.asked }
}

/** A score's part of the best possible one. A phrase found besides its words can bring it to a little more than 1. */
export const share = (score: number, { ideal }: ScoredWords): number =>
  ideal > 0 ? Math.min(2, -score / ideal) : 0

/** Returns a function from a distance to how much nearer than the floor it is; 0 from the floor on. */
function closenessOf(neighbours: readonly Neighbour[], bounded: boolean): (distance: number) => number {
  const nearest = neighbours[0]?.distance ?? 0
  const last = neighbours[Math.min(FLOOR, neighbours.length) - 1]?.distance ?? 0
  if (bounded) {
    const floor = neighbours.length < FEW ? UNRELATED : last
    return (distance) => Math.max(0, floor - distance)
  }
  // If all are equally far, all count as the nearest.
  if (!(last > nearest)) return (distance) => (distance <= nearest ? 1 : 0)
  return (distance) => Math.max(0, (last - distance) / (last - nearest))
}
