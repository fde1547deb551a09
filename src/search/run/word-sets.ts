/**
 * Reads the documents that have the words of an expression from the postings (text/postings.ts), and caches them in
 * memory for each word and for the expression. A later question that shares some words reads only the others.
 */
import { changesOf, reform, writesOf } from '../changes'
import { BLOCK } from '../schema/block'
import {
  BITMAP_BYTES,
  bitsOf,
  type KeptMatches,
  type Packed,
  packed,
  packedBits,
} from '../schema/match-memory'
import { type Expression, type WordIn, wordsIn } from '../text/expression'
import { Unreadable, weightOfPlaces } from '../text/fts5-format'
import { Postings } from '../text/postings'
import type { TextMatch } from './candidates'
import type { SearchContext } from './context'
import type { Pace } from './pace'

/** An expression of single words, and its full-text index. */
export interface WordMatch {
  table: TextMatch['table']
  expression: Expression
}

/** Blocks that are read together: at first, and at most. */
const [FIRST_BLOCKS, MOST_BLOCKS] = [4, 16]
/** Reading this many postings takes about as long as reading a row with SQL. */
const POSTINGS_A_ROW = 16
/** The postings of a word that take no more pages are read at once for all blocks. */
const FEW_PAGES = 32
/** If less than this share of a slice is used, there is time for twice as many blocks. */
const QUICK = 0.4

export const keyOfWord = (table: TextMatch['table'], { word, prefix, columns }: WordIn): string =>
  JSON.stringify([table, columns, word, prefix])

/** Indexes that are open, by the memory of their collection. */
const OPEN = new WeakMap<object, Map<string, { postings: Postings; writes: number }>>()

/** The postings of an index, opened again whenever something was written. */
export class OpenPostings {
  constructor(
    readonly context: SearchContext,
    readonly table: TextMatch['table'],
    readonly pace: Pace,
  ) {}

  /** @throws Unreadable */
  get now(): Postings {
    const { sql, columns } = this.context
    const { matches } = columns
    const known = OPEN.get(columns) ?? new Map()
    OPEN.set(columns, known)
    const open = known.get(this.table)
    // A merge moves blocks, so every written row counts here.
    if (open?.writes === writesOf(sql)) return open.postings.readBy(sql, this.pace.read)
    if (matches.flushed !== changesOf(sql)) {
      // FTS5 keeps the writes of an open transaction in memory, so its tables lack them. Flush them first.
      const tables = sql.exec<{ name: string }>(
        `SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('text_index', 'word_index')`,
      )
      reform(sql, () => {
        for (const { name } of tables.toArray()) sql.exec(`INSERT INTO ${name} (${name}) VALUES ('flush')`)
      })
      matches.flushed = changesOf(sql)
    }
    const postings = new Postings(sql, this.table, this.pace.read)
    known.set(this.table, { postings, writes: writesOf(sql) })
    return postings
  }
}

/** Calls `work` for a few blocks at a time until it returns false, and gives other searches a turn in between. */
export async function eachFewBlocks(
  numbers: readonly number[],
  pace: Pace,
  work: (some: readonly number[]) => boolean,
): Promise<void> {
  let width = FIRST_BLOCKS
  for (let from = 0; from < numbers.length; ) {
    const before = pace.used
    if (!work(numbers.slice(from, from + width))) return
    from += width
    const cost = pace.used - before
    if (cost < QUICK) width = Math.min(MOST_BLOCKS, width * 2)
    else if (cost > 1) width = Math.max(1, width >> 1)
    if (from < numbers.length && !(await pace.rest())) return
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
      const rare = wordsIn(expression).filter(
        ({ word, prefix }) => postings.now.pagesOf(word, prefix) <= FEW_PAGES,
      )
      for (const word of rare) readWord(memory.open(keyOfWord(table, word)), postings, word, numbers)
    }
    await eachFewBlocks(numbers, pace, (some) => {
      const missing = some.filter(isMissing)
      const evaluated = evaluate(expression, missing, postings)
      for (const number of missing) {
        if (isMissing(number)) kept.keepPacked(number, packedOr(evaluated.get(number), memory.writes))
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
  const isWanted: number[] = []
  for (const column of columns) isWanted[column] = 1
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
      const own = isFound[at / BLOCK] === 1 ? bits.slice(at / 8, at / 8 + BITMAP_BYTES) : undefined
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

/**
 * The documents of some blocks, a bit each. Blocks without any may be missing: of words that a document needs all of, the
 * rarest is read first, and the others only where it is.
 */
function evaluate(
  expression: Expression,
  numbers: readonly number[],
  postings: OpenPostings,
): Map<number, Uint8Array> {
  if (expression.kind === 'word') {
    const kept = postings.context.columns.matches.open(keyOfWord(postings.table, expression))
    readWord(kept, postings, expression, numbers)
    const blocks = numbers.map((number): [number, Packed] => [number, kept.block(number)!])
    return new Map(
      blocks.filter(([, { size }]) => size > 0).map(([number, block]) => [number, bitsOf(block)]),
    )
  }
  const isAnd = expression.kind === 'and'
  const isOr = expression.kind === 'or'
  const parts = 'parts' in expression ? expression.parts : [expression.part, expression.without]
  const ordered = isAnd && parts.length > 1 ? parts.toSorted((a, b) => pagesOf(a) - pagesOf(b)) : parts
  function pagesOf(part: Expression): number {
    const pages = wordsIn(part).map(({ word, prefix }) => postings.now.pagesOf(word, prefix))
    return part.kind === 'and' ? Math.min(...pages) : pages.reduce((sum, each) => sum + each, 0)
  }
  let all: Map<number, Uint8Array> | undefined
  for (const part of ordered) {
    const left = all === undefined || isOr ? numbers : numbers.filter((number) => all!.has(number))
    const others = evaluate(part, left, postings)
    if (all === undefined) {
      all = others
      continue
    }
    for (const number of left) {
      const [one, other] = [all.get(number), others.get(number)]
      if (other === undefined) {
        if (isAnd) all.delete(number)
      } else if (one === undefined) all.set(number, other)
      else {
        all.set(
          number,
          one.map((byte, at) => (isAnd ? byte & other[at]! : isOr ? byte | other[at]! : byte & ~other[at]!)),
        )
      }
    }
  }
  return all!
}
