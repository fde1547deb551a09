/** Misspells questions as people do, the same way in each run. */
import { createHash } from 'node:crypto'

const WORD = /\b[a-z]{5,}\b/gi
/** Letters that lie beside each other on a keyboard. */
const BESIDE = Object.fromEntries(
  ['qwertyuiop', 'asdfghjkl', 'zxcvbnm'].flatMap((row) =>
    [...row].map((letter, at) => [letter, row[at + 1] ?? row[at - 1]]),
  ),
)

/** The four slips of a typist at a letter that is neither the first nor the last. */
const SLIPS = [
  (word, at) => word.slice(0, at) + word[at + 1] + word[at] + word.slice(at + 2),
  (word, at) => word.slice(0, at) + word.slice(at + 1),
  (word, at) => word.slice(0, at) + word[at] + word.slice(at),
  (word, at) => word.slice(0, at) + (BESIDE[word[at].toLowerCase()] ?? word[at]) + word.slice(at + 1),
]

/**
 * One slip in one word of five letters or more: two letters swapped, one left out, doubled, or its neighbour on the
 * keyboard. The first letter stays. A question without such a word stays as it is.
 */
export function misspell(question) {
  const words = [...question.matchAll(WORD)]
  if (words.length === 0) return question
  const [which, where, how] = createHash('sha256').update(question).digest()
  const { 0: word, index } = words[which % words.length]
  const slipped = SLIPS[how % SLIPS.length](word, 1 + (where % (word.length - 2)))
  return question.slice(0, index) + slipped + question.slice(index + word.length)
}
