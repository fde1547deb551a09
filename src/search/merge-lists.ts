/** Makes one list of the hits of several searches. */

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
