/**
 * Beginnings of very many words, as the first letter that somebody types. To find all documents with such a word, FTS5 takes
 * more memory than it may, and one statement of a second or more. Here the postings of the words are read one after the other,
 * and other searches get a turn in between.
 */
import { BLOCK } from '../schema/block'
import { BITMAP_BYTES, bitsOf, type KeptMatches, type Packed, packedBits } from '../schema/match-memory'
import type { Expression, Together, WordIn } from '../text/expression'
import { COLUMN, eachPlace, Unreadable, weightOfPlaces } from '../text/fts5-format'
import type { Visit } from '../text/posting-list'
import type { TextMatch } from './candidates'
import { keyOfWord, listed, type OpenPostings, POSTINGS_A_ROW } from './open-postings'

/** How often a sweep begins. What is written meanwhile moves the pages of the index. */
const MOST_SWEEPS = 3

/**
 * Visits all documents of a broad beginning (`Postings.isBroad`), and gives other searches a turn in between.
 * @param begin called for each attempt
 * @returns false when the search was cut off before the end
 * @throws Unreadable
 */
export async function sweep(postings: OpenPostings, word: string, begin: () => Visit): Promise<boolean> {
  const { context, pace } = postings
  for (let attempt = 1; ; attempt++) {
    const { now } = postings
    let isCurrent = true
    for (const read of now.sweep(word, pace.ends(context.sql).high, begin())) {
      pace.countRows(read / POSTINGS_A_ROW)
      if (attempt === MOST_SWEEPS || pace.used < 1) continue
      if (!(await pace.rest())) return false
      isCurrent = postings.now === now
      if (!isCurrent) break
    }
    if (isCurrent) return true
  }
}

/** Reads all blocks of a broad beginning. @param initial only where it begins a column @returns as `sweep` */
function readBroad(
  postings: OpenPostings,
  { word, columns }: WordIn,
  initial: boolean,
  kept: KeptMatches,
  numbers: readonly number[],
): Promise<boolean> | true {
  const missing = numbers.filter((number) => kept.block(number) === undefined)
  if (missing.length === 0) return true
  const isWanted = listed(columns)
  const { matches } = postings.context.columns
  const low = missing.at(-1)! * BLOCK
  let bits = new Uint8Array(0)
  let writes = 0
  const begin = (): Visit => {
    bits = new Uint8Array((missing[0]! + 1) * BITMAP_BYTES - low / 8)
    writes = matches.writes
    return (seq, bytes, from, to) => {
      let has = !initial && weightOfPlaces(bytes, from, to, isWanted, true) > 0
      if (initial) {
        eachPlace(bytes, from, to, isWanted, (place) => {
          has ||= place % COLUMN === 0
        })
      }
      if (has && seq >= low) bits[Math.floor((seq - low) / 8)]! |= 1 << ((seq - low) % 8)
    }
  }
  return sweep(postings, word, begin).then((isWhole) => {
    for (const number of isWhole ? missing : []) {
      const at = number * BITMAP_BYTES - low / 8
      kept.keepPacked(number, packedBits(bits.subarray(at, at + BITMAP_BYTES), writes))
    }
    return isWhole
  })
}

/** The word of an expression `^ "word" *`. */
const initialOf = ({ words, initial }: Together): WordIn | undefined =>
  initial && words.length === 1 ? words[0] : undefined

const keyOfInitial = (table: TextMatch['table'], word: WordIn): string => `^${keyOfWord(table, word)}`

/** Reads the broad beginnings of an expression. @returns as `sweep` */
export async function readAllBroad(
  expression: Expression,
  postings: OpenPostings,
  numbers: readonly number[],
): Promise<boolean> {
  const { table } = postings
  const { matches } = postings.context.columns
  if (expression.kind === 'together' || expression.kind === 'word') {
    const word = expression.kind === 'word' ? expression : initialOf(expression)
    if (word === undefined || !postings.now.isBroad(word.word, word.prefix)) return true
    const isInitial = expression.kind === 'together'
    const key = isInitial ? keyOfInitial(table, word) : keyOfWord(table, word)
    return readBroad(postings, word, isInitial, matches.open(key), numbers)
  }
  const parts = 'parts' in expression ? expression.parts : [expression.part, expression.without]
  for (const part of parts) if (!(await readAllBroad(part, postings, numbers))) return false
  return true
}

/** A block of a broad beginning. @throws Unreadable if it was written to since */
function known(kept: KeptMatches, number: number): Packed {
  const block = kept.block(number)
  if (block === undefined) throw new Unreadable()
  return block
}

/** The documents of some blocks with a broad beginning at the beginning of a column. @returns undefined for other expressions */
export function initialBlocks(
  expression: Together,
  numbers: readonly number[],
  postings: OpenPostings,
): Map<number, Uint8Array> | undefined {
  const word = initialOf(expression)
  if (word === undefined || !postings.now.isBroad(word.word, word.prefix)) return undefined
  const kept = postings.context.columns.matches.open(keyOfInitial(postings.table, word))
  return new Map(numbers.map((number) => [number, bitsOf(known(kept, number)).slice()]))
}
