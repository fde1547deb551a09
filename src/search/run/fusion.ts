/**
 * Score fusion: the order of a search for a question, by how good its words and its meaning fit.
 *
 * Rank fusion knows places alone: the second document weighs half as much as the first, however close they are. Score
 * fusion keeps the distances between documents. It puts each side on a scale from 0 to 1 and adds the two:
 *
 *     fused = (1 - meaning) * bm25 / best bm25  +  meaning * (floor - distance) / (floor - nearest distance)
 *
 * This is the convex combination of Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM
 * TOIS 42 (2023), https://doi.org/10.1145/3596512. The words have a natural zero, and the vectors get the distance of
 * their hundredth neighbour for one.
 */
import type { Neighbour } from '../vectors/vector-index'
import { Gathered } from './gathered'

/** The neighbour whose distance counts as nothing. A fixed one, so that a later page does not change an earlier one. */
const FLOOR = 100

/**
 * Joins both sides by their scores. Every document of either side is in the result.
 * @param text matches by their words; FTS5's scores, the lower the better
 * @param neighbours nearest first
 * @param meaning weight of the vectors, from 0 to 1; the words have the rest
 * @returns `fused` is from 0 to 1
 */
export function fuseScores(text: Gathered, neighbours: readonly Neighbour[], meaning: number): Gathered {
  const fused = new Gathered()
  const close = closenessOf(neighbours)
  const distances = new Map(neighbours.map(({ seq, distance }) => [seq, distance]))
  const best = lowest(text.scores)
  for (const [at, seq] of text.seqs.entries()) {
    const score = text.scores[at]!
    const distance = distances.get(seq)
    const byMeaning = distance === undefined ? 0 : meaning * close(distance)
    fused.add(seq, score, distance ?? Number.NaN, (1 - meaning) * shareOf(score, best) + byMeaning)
    distances.delete(seq)
  }
  for (const [seq, distance] of distances) fused.add(seq, Number.NaN, distance, meaning * close(distance))
  return fused
}

/**
 * Text matches of a question with those of what was said before it. Both count by their share of their best match.
 * The result's scores are on the scale of the question's own, so that they can stand in for BM25.
 * @param said the matches of what was said before
 * @param weight of `said`, from 0 to 1
 */
export function blend(asked: Gathered, said: Gathered, weight: number): Gathered {
  const [bestAsked, bestSaid] = [lowest(asked.scores), lowest(said.scores)]
  const scale = bestAsked < 0 ? bestAsked : bestSaid
  const shares = new Map<number, number>()
  for (const [at, seq] of asked.seqs.entries()) {
    shares.set(seq, (1 - weight) * shareOf(asked.scores[at]!, bestAsked))
  }
  for (const [at, seq] of said.seqs.entries()) {
    shares.set(seq, (shares.get(seq) ?? 0) + weight * shareOf(said.scores[at]!, bestSaid))
  }
  const blended = new Gathered()
  for (const [seq, share] of shares) blended.add(seq, share * scale, Number.NaN, Number.NaN)
  return blended
}

/** A score's part of the best one, from 0 to 1. Where the fields weigh nothing, all scores are 0 and equally good. */
const shareOf = (score: number, best: number): number => (best < 0 ? Math.max(0, score / best) : 1)

/** From a distance to how close it is: 1 for the nearest, 0 at the floor and beyond. */
function closenessOf(neighbours: readonly Neighbour[]): (distance: number) => number {
  const nearest = neighbours[0]?.distance ?? 0
  const floor = neighbours[Math.min(FLOOR, neighbours.length) - 1]?.distance ?? 0
  // Where all are equally far, all are the nearest.
  if (!(floor > nearest)) return (distance) => (distance <= nearest ? 1 : 0)
  return (distance) => Math.min(1, Math.max(0, (floor - distance) / (floor - nearest)))
}

/** Math.min takes its values as arguments, and half a million of them overflow the stack. */
function lowest(values: readonly number[]): number {
  let least = 0
  for (const value of values) if (value < least) least = value
  return least
}
