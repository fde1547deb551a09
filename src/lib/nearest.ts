/** How far a mistyped word is from another, and the name that somebody may have meant. */

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
    const distance = wordDistance(given.toLowerCase(), name.toLowerCase(), limit).whole
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

/** Rows of the table of distances. They are made anew only for longer words. */
let [beforeLast, last, row] = rowsFor(255)

function rowsFor(letters: number): [Uint8Array, Uint8Array, Uint8Array] {
  const cells = letters + 1
  return [new Uint8Array(cells), new Uint8Array(cells), new Uint8Array(cells)]
}

/**
 * The distances from a word as it was typed to a whole word and to its nearest beginning, in one pass. Nothing is allocated for
 * the table: a search compares thousands of words.
 * @param limit at most 100
 * @returns the letters to insert, delete, replace or swap (optimal string alignment distance), at most one more than the limit
 */
export function wordDistance(typed: string, word: string, limit: number) {
  const past = limit + 1
  const most = Math.min(word.length, typed.length + limit)
  if (most >= last.length) [beforeLast, last, row] = rowsFor(most)
  for (let j = 0; j <= most; j++) last[j] = Math.min(j, past)
  for (let i = 1; i <= typed.length; i++) {
    // Cells further from the diagonal than the limit are past it.
    const from = Math.max(1, i - limit)
    const to = Math.min(most, i + limit)
    row[0] = Math.min(i, past)
    if (from > 1) row[from - 1] = past
    if (i + limit <= most) last[i + limit] = past
    let least = from === 1 ? row[0]! : past
    const letter = typed.charCodeAt(i - 1)
    for (let j = from; j <= to; j++) {
      const other = word.charCodeAt(j - 1)
      let cost = Math.min(last[j - 1]! + (letter === other ? 0 : 1), last[j]! + 1, row[j - 1]! + 1)
      const isSwapped =
        i > 1 && j > 1 && letter === word.charCodeAt(j - 2) && typed.charCodeAt(i - 2) === other
      if (isSwapped) cost = Math.min(cost, beforeLast[j - 2]! + 1)
      row[j] = Math.min(cost, past)
      least = Math.min(least, cost)
    }
    if (least > limit) return { whole: past, beginning: past }
    const spare = beforeLast
    beforeLast = last
    last = row
    row = spare
  }
  let beginning = past
  for (let j = Math.max(1, typed.length - limit); j <= most; j++) beginning = Math.min(beginning, last[j]!)
  return { whole: most === word.length && most >= typed.length - limit ? last[most]! : past, beginning }
}

/** The names in a text, separated by blanks: how tables list keys and parameters. */
export const namesOf = (names: string): string[] => names.trim().split(/\s+/)
