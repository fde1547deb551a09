/** Finds the name that somebody may have meant. */

/** Names that differ by more letters than this are other names. */
const FURTHEST = 3

/**
 * The known name that is most like a mistyped one. Case and the characters `-`, `_` and `.` count as letters.
 *
 * @returns undefined if none is near: at most a third of the letters differ, and never more than 3
 */
export function nearest(given: string, known: readonly string[]): string | undefined {
  let limit = Math.min(FURTHEST, Math.floor(given.length / 3))
  let found: string | undefined
  for (const name of known) {
    const distance = editDistance(given.toLowerCase(), name.toLowerCase(), limit)
    if (distance > limit) continue
    found = name
    limit = distance - 1
    if (limit < 0) break
  }
  return found
}

/** Names that are listed when none of them is near. */
const MOST_LISTED = 20

/**
 * What to do about an unknown name: `did you mean `y`?`, or else the names there are.
 * @param known in the order in which they are listed
 */
export function meant(given: string, known: readonly string[]): string {
  const name = nearest(given, known)
  if (name !== undefined) return `did you mean \`${name}\`?`
  const listed = known.slice(0, MOST_LISTED).map((each) => `\`${each}\``)
  return `the known ones are ${listed.join(', ')}${known.length > MOST_LISTED ? ' and others' : ''}.`
}

/**
 * Counts the letters to insert, delete, replace or swap with a neighbour (optimal string alignment distance). Stops
 * at `limit + 1`.
 */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= b.length; j++) {
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, beforeLast[j - 2]! + 1)
      }
      row.push(cost)
      least = Math.min(least, cost)
    }
    if (least > limit) return limit + 1
    beforeLast = last
    last = row
  }
  return Math.min(last[b.length]!, limit + 1)
}
