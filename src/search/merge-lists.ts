/** Makes one list of the hits of several searches. */

/** Hits of all searches of a merged list together. They are in memory at the same time, with their documents. */
export const MOST_MERGED_HITS = 10_000

export type MergeLists = <T>(lists: readonly (readonly T[])[]) => T[]

/** All of the first search, then all of the second, and so on. */
export const inTurn: MergeLists = (lists) => lists.flat()

/** Merges lists whose scores do not compare: the first hits of all, then the second ones, and so on. */
export const byRank: MergeLists = (lists) => {
  const longest = Math.max(0, ...lists.map((list) => list.length))
  return Array.from({ length: longest }, (_, rank) =>
    lists.flatMap((list) => list.slice(rank, rank + 1)),
  ).flat(1)
}

/**
 * Merges lists, each of which is in order, by comparing their heads. Of equal items the one of the earlier list comes first.
 * @param compare below 0 if `a` comes first
 * @param most how many items are wanted, from the first
 */
export function inOrder<T>(
  lists: readonly (readonly T[])[],
  compare: (a: T, b: T) => number,
  most = Number.POSITIVE_INFINITY,
): T[] {
  const heads = lists.map(() => 0)
  const merged: T[] = []
  while (merged.length < most) {
    let best = -1
    for (const [at, list] of lists.entries()) {
      const head = heads[at]!
      if (head >= list.length) continue
      if (best < 0 || compare(list[head]!, lists[best]![heads[best]!]!) < 0) best = at
    }
    if (best < 0) break
    merged.push(lists[best]![heads[best]!++]!)
  }
  return merged
}

// =============================================================================
// Lists whose scores are normalised and combined, as by OpenSearch's `normalization-processor` and `score-ranker-processor`.

/** How the scores of several lists become those of one. */
export interface Normalization {
  technique: string
  combination: string
  /** absent: all weigh the same */
  weights?: number[]
  /** present: items are ranked by their places in the lists (reciprocal rank fusion) instead of their scores */
  rankConstant?: number
}

/** The score that OpenSearch gives the worst item of a list: above zero, because it was found. */
const WORST = 0.001

/** Each item once, best first. @param how undefined: its best score counts */
export function byScores<Item>(
  lists: readonly (readonly Item[])[],
  keyOf: (item: Item) => string,
  scoreOf: (item: Item) => number,
  how: Normalization | undefined,
): { item: Item; score: number }[] {
  const weights = how?.weights ?? lists.map(() => 1)
  const found = new Map<string, { item: Item; scores: number[] }>()
  for (const [at, list] of lists.entries()) {
    const scores = normalised(list.map(scoreOf), how)
    for (const [place, item] of list.entries()) {
      const key = keyOf(item)
      const known = found.get(key) ?? { item, scores: lists.map(() => 0) }
      known.scores[at] = scores[place]!
      found.set(key, known)
    }
  }
  return [...found.values()]
    .map(({ item, scores }) => ({ item, score: combined(scores, weights, how) }))
    .sort((a, b) => b.score - a.score)
}

function normalised(scores: number[], how: Normalization | undefined): number[] {
  if (how === undefined) return scores
  const { technique, rankConstant } = how
  if (rankConstant !== undefined) return scores.map((_, place) => 1 / (rankConstant + place + 1))
  if (technique === 'l2') {
    const length = Math.hypot(...scores)
    return scores.map((score) => (length === 0 ? WORST : score / length))
  }
  const least = Math.min(...scores)
  const most = Math.max(...scores)
  return scores.map((score) => (most === least ? 1 : Math.max(WORST, (score - least) / (most - least))))
}

/** @see https://opensearch.org/docs/latest/search-plugins/search-pipelines/normalization-processor/ */
function combined(scores: number[], weights: number[], how: Normalization | undefined): number {
  if (how === undefined) return Math.max(...scores)
  const all = scores.map((score, at) => ({ score, weight: weights[at]! }))
  const sum = (of: typeof all, value: (each: (typeof all)[number]) => number): number =>
    of.reduce((total, each) => total + value(each), 0)
  if (how.combination === 'arithmetic_mean') {
    const whole = how.rankConstant === undefined ? sum(all, ({ weight }) => weight) : 1
    return sum(all, ({ score, weight }) => score * weight) / (whole || 1)
  }
  // Neither of these means can take a zero, so a query that did not find the hit is left out.
  const some = all.filter(({ score }) => score > 0)
  const weight = sum(some, (each) => each.weight)
  if (weight === 0) return 0
  return how.combination === 'geometric_mean'
    ? Math.exp(sum(some, ({ score, weight }) => weight * Math.log(score)) / weight)
    : weight / sum(some, ({ score, weight }) => weight / score)
}
