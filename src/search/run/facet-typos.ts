/** Finds the facet values that a misspelt facet query means. */
import { editDistance } from '../../lib/nearest'
import { comparedTokens } from '../text/compared'
import { typosAllowed } from '../text/typo'
import type { TokenRules } from '../text/words'

/** A value whose words are near those of a query. */
export interface Similar {
  /** typos in all words together */
  typos: number
  /** beginnings of the value's words to highlight, as long as the words of the query */
  beginnings: string[]
}

/**
 * How near a value is to a query: each word of the query is near the beginning of one of the value's.
 * @param maxTypos in a word; short words may have fewer
 * @returns undefined if it is not near
 */
export function similarity(
  value: string,
  wanted: readonly string[],
  maxTypos: number,
  rules: TokenRules,
): Similar | undefined {
  if (wanted.length === 0) return undefined
  const words = comparedTokens(value, rules).map(({ text }) => text)
  const found: Similar = { typos: 0, beginnings: [] }
  for (const word of wanted) {
    const most = typosAllowed(word, {
      maxTypos,
      minLengthOneTypo: 4,
      minLengthTwoTypos: 7,
      withDigits: true,
      numbers: true,
    })
    let best: { typos: number; beginning: string } | undefined
    for (const other of words) {
      const typos = typosToBeginning(word, other, most)
      if (typos <= most && typos < (best?.typos ?? Number.POSITIVE_INFINITY)) {
        best = { typos, beginning: other.slice(0, word.length) }
      }
    }
    if (best === undefined) return undefined
    found.typos += best.typos
    found.beginnings.push(best.beginning)
  }
  return found
}

/** The least number of typos between a word and a beginning of another one. */
function typosToBeginning(word: string, other: string, most: number): number {
  let least = Number.POSITIVE_INFINITY
  const longest = Math.min(other.length, word.length + most)
  for (let length = Math.max(1, word.length - most); length <= longest; length++) {
    least = Math.min(least, editDistance(word, other.slice(0, length), most))
  }
  return least
}
