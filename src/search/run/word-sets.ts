/**
 * Reads the documents that have the words of an expression from the postings (text/postings.ts), and caches them in
 * memory for each word and for the expression. A later question that shares some words reads only the others.
 */
import type { Range } from '../range'
import { BLOCK } from '../schema/block'
import {
  addBits,
  BITMAP_BYTES,
  bitsOf,
  type KeptMatches,
  type Packed,
  packed,
  packedBits,
  wide,
} from '../schema/match-memory'
import { type Expression, type Together, type WordIn, wordsIn } from '../text/expression'
import { COLUMN, eachPlace, Unreadable, weightOfPlaces } from '../text/fts5-format'
import { initialBlocks, readAllBroad } from './broad-words'
import type { TextMatch } from './candidates'
import type { SearchContext } from './context'
import { keyOfWord, listed, OpenPostings, POSTINGS_A_ROW } from './open-postings'
import type { Pace } from './pace'

export { keyOfWord, OpenPostings } from './open-postings'

/** An expression whose words are read from the postings, and its full-text index. */
export interface WordMatch {
  table: TextMatch['table']
  expression: Expression
}

/** Blocks that are read together: at first, and at most. */
const [FIRST_BLOCKS, MOST_BLOCKS] = [2, 16]
/** Listing the places in this many bytes of postings takes about as long as reading a row with SQL. Most places take a byte. */
const PLACE_BYTES_A_ROW = 4
/** More places of a word are not listed for several blocks together: each takes about 8 bytes of memory. */
const MOST_PLACE_BYTES = 100_000
/** The postings of a word that take no more pages are read at once for all blocks. */
const FEW_PAGES = 32
/** The share of a slice that the blocks read together should take. */
const WANTED = 0.6

/** Thrown when blocks have too much to be read together. */
class TooMuch extends Error {}

/**
 * Calls `work` for a few blocks at a time until it returns false, and gives other searches a turn in between. If it
 * throws `TooMuch`, it is called again for fewer blocks.
 */
export async function eachFewBlocks(
  numbers: readonly number[],
  pace: Pace,
  work: (some: readonly number[]) => boolean,
): Promise<void> {
  let width = FIRST_BLOCKS
  for (let from = 0; from < numbers.length; ) {
    const before = pace.used
    const some = numbers.slice(from, from + width)
    try {
      if (!work(some)) return
      from += some.length
      const each = (pace.used - before) / some.length
      // A slice of no time makes NaN.
      width = Math.max(1, Math.min(MOST_BLOCKS, width * 2, Math.floor(WANTED / each) || 1))
      if (!(await pace.rest(from < numbers.length ? each * width : 0))) return
    } catch (error) {
      if (!(error instanceof TooMuch)) throw error
      width = Math.ceil(width / 4)
      if (!(await pace.rest())) return
    }
  }
}

/**
 * Reads the matches that are not in memory. When the search is cut off, the last blocks are missing.
 * @param numbers of blocks, the newest first
 * @param most reading ends once there are more matches
 * @returns undefined if FTS5 must be used
 */
export async function readWords(
  context: SearchContext,
  key: string,
  { table, expression }: WordMatch,
  numbers: readonly number[],
  most: number,
  pace: Pace,
): Promise<[number, Packed][] | undefined> {
  const memory = context.columns.matches
  const kept = memory.open(key)
  const postings = new OpenPostings(context, table, pace)
  const blocks: [number, Packed][] = []
  let size = 0
  try {
    const isMissing = (number: number) => kept.block(number) === undefined
    if (numbers.some(isMissing)) {
      // Words with few documents are read at once: each slice would look for them anew.
      if (!(await readAllBroad(expression, postings, numbers))) return []
      const rare = wordsIn(expression).filter(
        ({ word, prefix }) =>
          !postings.now.isBroad(word, prefix) && postings.now.pagesOf(word, prefix) <= FEW_PAGES,
      )
      for (const word of rare) {
        readWord(memory.open(keyOfWord(table, word)), postings, word, numbers)
        await pace.rest()
      }
    }
    await eachFewBlocks(numbers, pace, (some) => {
      const missing = some.filter(isMissing)
      if (expression.kind === 'word') readWord(kept, postings, expression, missing)
      else {
        const evaluated = evaluate(expression, missing, postings)
        for (const number of missing) {
          kept.keepPacked(number, packedOr(evaluated.get(number), memory.writes))
        }
      }
      for (const number of some) {
        const block = kept.block(number)!
        blocks.push([number, block])
        size += block.size
      }
      context.columns.keptMatches()
      return size <= most
    })
  } catch (error) {
    if (error instanceof Unreadable) return undefined
    throw error
  }
  return blocks
}

/** @param bits undefined if there are none */
const packedOr = (bits: Uint8Array | undefined, writes: number): Packed =>
  bits ? packedBits(bits, writes) : packed(new Uint16Array(0), writes)

/** Reads the blocks of a word that are not in memory. */
function readWord(
  kept: KeptMatches,
  { context, now, pace }: OpenPostings,
  { word, prefix, columns }: WordIn,
  numbers: readonly number[],
): void {
  const isWanted = listed(columns)
  const { writes } = context.columns.matches
  for (const missing of inRows(numbers.filter((number) => kept.block(number) === undefined))) {
    const [low, high] = [missing.at(-1)! * BLOCK, missing[0]! * BLOCK + BLOCK - 1]
    const bits = new Uint8Array((high - low + 1) / 8)
    const isFound = new Uint8Array((high - low + 1) / BLOCK)
    const read = now.visit(word, prefix, { low, high }, (seq, bytes, from, to) => {
      if (weightOfPlaces(bytes, from, to, isWanted, true) === 0) return
      const at = seq - low
      bits[at >> 3]! |= 1 << (at & 7)
      isFound[Math.floor(at / BLOCK)] = 1
    })
    pace.countRows(read / POSTINGS_A_ROW)
    for (const number of missing) {
      const at = number * BLOCK - low
      const own = isFound[at / BLOCK] === 1 ? bits.subarray(at / 8, at / 8 + BITMAP_BYTES) : undefined
      kept.keepPacked(number, packedOr(own, writes))
    }
  }
}

/** Blocks that follow each other, together. @param numbers falling */
function inRows(numbers: readonly number[]): number[][] {
  const rows: number[][] = []
  for (const number of numbers) {
    if (rows.at(-1)?.at(-1) === number + 1) rows.at(-1)!.push(number)
    else rows.push([number])
  }
  return rows
}

/** By block. Blocks without a document may be missing. */
type Bits = Map<number, Uint8Array>

/**
 * The documents of some blocks, a bit each. Of words that a document needs all of, the rarest is read first, and the others
 * only where it is.
 */
function evaluate(expression: Expression, numbers: readonly number[], postings: OpenPostings): Bits {
  if (expression.kind === 'together') {
    return initialBlocks(expression, numbers, postings) ?? together(expression, numbers, postings)
  }
  if (expression.kind === 'word') {
    const found: Bits = new Map()
    for (const [number, block] of blocksOf(expression, numbers, postings)) {
      found.set(number, block.isBitmap ? block.bytes.slice() : bitsOf(block))
    }
    return found
  }
  const isAnd = expression.kind === 'and'
  const isOr = expression.kind === 'or'
  const parts = 'parts' in expression ? expression.parts : [expression.part, expression.without]
  const ordered = isAnd && parts.length > 1 ? parts.toSorted((a, b) => pagesOf(a) - pagesOf(b)) : parts
  function pagesOf(part: Expression): number {
    const { now } = postings
    const pages = wordsIn(part).map(({ word, prefix }) =>
      now.isBroad(word, prefix) ? Number.POSITIVE_INFINITY : now.pagesOf(word, prefix),
    )
    return part.kind === 'and' ? Math.min(...pages) : pages.reduce((sum, each) => sum + each, 0)
  }
  let all: Bits | undefined
  for (const part of ordered) {
    if (all !== undefined && isOr && part.kind === 'word') {
      for (const [number, block] of blocksOf(part, numbers, postings)) {
        const own = all.get(number) ?? new Uint8Array(BITMAP_BYTES)
        addBits(own, block)
        all.set(number, own)
      }
      continue
    }
    const left: readonly number[] = all === undefined || isOr ? numbers : [...all.keys()]
    const others = evaluate(part, left, postings)
    if (all === undefined) {
      all = others
      continue
    }
    for (const number of left) {
      const [one, other] = [all.get(number), others.get(number)]
      if (other === undefined) {
        if (isAnd) all.delete(number)
        continue
      }
      if (one === undefined) {
        all.set(number, other)
        continue
      }
      const [own, more] = [wide(one), wide(other)]
      if (isAnd) for (let at = 0; at < own.length; at++) own[at]! &= more[at]!
      else if (isOr) for (let at = 0; at < own.length; at++) own[at]! |= more[at]!
      else for (let at = 0; at < own.length; at++) own[at]! &= ~more[at]!
    }
  }
  return all!
}

/** The blocks of a word that have a document. */
function blocksOf(word: WordIn, numbers: readonly number[], postings: OpenPostings): [number, Packed][] {
  const kept = postings.context.columns.matches.open(keyOfWord(postings.table, word))
  readWord(kept, postings, word, numbers)
  return numbers
    .map((number): [number, Packed] => [number, kept.block(number)!])
    .filter(([, { size }]) => size > 0)
}

/** Where words are in documents. */
type Places = Map<number, number[]>

/** The documents with words that are together, by their places. */
function together(
  { words, initial, near }: Together,
  numbers: readonly number[],
  postings: OpenPostings,
): Bits {
  const pagesOf = ({ word, prefix }: WordIn) => postings.now.pagesOf(word, prefix)
  const rarestFirst = [...words.entries()].sort(([, a], [, b]) => pagesOf(a) - pagesOf(b))
  const found: Bits = new Map()
  for (const row of inRows(numbers)) {
    const range = { low: row.at(-1)! * BLOCK, high: row[0]! * BLOCK + BLOCK - 1 }
    const lists: Places[] = []
    for (const [at, word] of rarestFirst) {
      const before = lists.at(-1)
      if (before?.size === 0) break
      const places = placesOf(word, range, postings, before, initial ? at : undefined)
      // In a phrase only the places count where it may begin.
      lists.push(near === undefined ? beginnings(places, before, at) : places)
    }
    if (lists.length < words.length) continue
    for (const seq of lists.at(-1)!.keys()) {
      if (
        near !== undefined &&
        !isNear(
          lists.map((places) => places.get(seq)!),
          near,
        )
      )
        continue
      const at = seq % BLOCK
      const number = (seq - at) / BLOCK
      const own = found.get(number) ?? new Uint8Array(BITMAP_BYTES)
      own[at >> 3]! |= 1 << (at & 7)
      found.set(number, own)
    }
  }
  return found
}

/** The places of a word by document, ascending. @param among only in these documents @param only with so many words before */
function placesOf(
  { word, prefix, columns }: WordIn,
  range: Range,
  { now, pace }: OpenPostings,
  among: Places | undefined,
  only: number | undefined,
): Places {
  const isWanted = listed(columns)
  const places: Places = new Map()
  const bits = new Uint8Array((range.high - range.low + 1) / 8).fill(among === undefined ? 0xff : 0)
  for (const seq of among?.keys() ?? []) bits[(seq - range.low) >> 3]! |= 1 << ((seq - range.low) & 7)
  const isWide = range.high - range.low >= BLOCK
  let [current, size] = [0, 0]
  const keep = (place: number): void => {
    if (only !== undefined && place % COLUMN !== only) return
    const own = places.get(current)
    if (own === undefined) places.set(current, [place])
    else own.push(place)
  }
  const read = now.visit(word, prefix, range, (seq, bytes, from, to) => {
    const at = seq - range.low
    if ((bits[at >> 3]! & (1 << (at & 7))) === 0) return
    size += to - from
    if (isWide && size > MOST_PLACE_BYTES) return
    current = seq
    eachPlace(bytes, from, to, isWanted, keep)
  })
  if (isWide && size > MOST_PLACE_BYTES) {
    pace.countRows(read / POSTINGS_A_ROW + MOST_PLACE_BYTES / PLACE_BYTES_A_ROW)
    throw new TooMuch()
  }
  pace.countRows(read / POSTINGS_A_ROW + size / PLACE_BYTES_A_ROW)
  // The words with a beginning come one after the other.
  if (prefix) for (const own of places.values()) own.sort((a, b) => a - b)
  return places
}

/** The places where a phrase may begin whose word number `at` has these places. @param before those of its other words */
function beginnings(places: Places, before: Places | undefined, at: number): Places {
  if (at === 0 && before === undefined) return places
  for (const [seq, all] of places) {
    const known = before?.get(seq)
    const own = known ? startsIn(all, known, at) : all.map((place) => place - at)
    if (own.length > 0) places.set(seq, own)
    else places.delete(seq)
  }
  return places
}

/**
 * Those of the known beginnings that a word follows after `at` others. A document may have either list many thousand
 * places long, so each list is gone through once.
 * @param places of the word, ascending
 * @param known ascending
 */
export function startsIn(places: readonly number[], known: readonly number[], at: number): number[] {
  const starts: number[] = []
  let next = 0
  for (const place of places) {
    while (next < known.length && known[next]! < place - at) next++
    if (known[next] === place - at) starts.push(place - at)
  }
  return starts
}

/** Whether a stretch of a column has a place of each list, with so many words between the first and the last. */
function isNear(lists: readonly number[][], most: number): boolean {
  const all = lists.flatMap((places, list) => places.map((place) => ({ place, list })))
  all.sort((a, b) => a.place - b.place)
  const last = lists.map(() => Number.NEGATIVE_INFINITY)
  return all.some(({ place, list }) => {
    last[list] = place
    return place - Math.min(...last) <= most + 1
  })
}
