/** How far a mistyped word is from a word of the index. */

/** The letters to change (optimal string alignment distance), at most one more than the limit. */
export interface WordDistance {
  /** to the whole word */
  whole: number
  /** to the nearest beginning of the word */
  beginning: number
}

/** A row of the table of distances, with room for the longest words. */
const CELLS = 256
let beforeLast = new Uint8Array(CELLS)
let last = new Uint8Array(CELLS)
let row = new Uint8Array(CELLS)

/**
 * The distances from a word as it was typed to a whole word and to its nearest beginning, in one pass. They are those
 * of `editDistance`, but nothing is allocated: a search compares thousands of words.
 * @param typed at most 128 UTF-16 units
 * @param limit at most 100
 */
export function wordDistance(typed: string, word: string, limit: number): WordDistance {
  const past = limit + 1
  const most = Math.min(word.length, typed.length + limit)
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
