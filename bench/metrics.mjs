/** Measures of retrieval and answers: pure. */
import { words } from '../scripts/parley/eval/metrics.mjs'

/**
 * The share of relevant documents among the first `k`.
 * @param {string[]} found best first
 * @param {Set<string>} relevant
 * @param {number} k
 */
export const recallAt = (found, relevant, k) =>
  relevant.size === 0 ? 0 : new Set(found.slice(0, k).filter((id) => relevant.has(id))).size / relevant.size

/**
 * Normalised discounted cumulative gain with binary relevance (Järvelin and Kekäläinen 2002, the form with log2(rank + 1)).
 * @param {string[]} found best first; of an id that comes twice the first place counts
 * @param {Set<string>} relevant
 * @param {number} k
 */
export function ndcgAt(found, relevant, k) {
  if (relevant.size === 0) return 0
  const discount = (/** @type {number} */ rank) => 1 / Math.log2(rank + 2)
  let gain = 0
  for (const [rank, id] of [...new Set(found)].slice(0, k).entries())
    if (relevant.has(id)) gain += discount(rank)
  let best = 0
  for (let rank = 0; rank < Math.min(k, relevant.size); rank++) best += discount(rank)
  return gain / best
}

/**
 * F1 of the words that two texts share (SQuAD, Rajpurkar et al. 2016).
 * @param {string} answer
 * @param {string} expected
 */
export function f1(answer, expected) {
  const said = words(answer)
  const wanted = words(expected)
  /** @type {Map<string, number>} */
  const left = new Map()
  for (const word of wanted) left.set(word, (left.get(word) ?? 0) + 1)
  let shared = 0
  for (const word of said) {
    const times = left.get(word) ?? 0
    if (times === 0) continue
    left.set(word, times - 1)
    shared += 1
  }
  if (shared === 0) return said.length === wanted.length && said.length === 0 ? 1 : 0
  const precision = shared / said.length
  const recall = shared / wanted.length
  return (2 * precision * recall) / (precision + recall)
}
