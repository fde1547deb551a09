/**
 * Reads the documents that have the words of an expression from the postings (text/postings.ts), and caches them in
 * memory for each word and for the expression. A later question that shares some words reads only the others.
 */
import { changesOf, reform, writesOf } from '../changes'
import { BLOCK } from '../schema/block'
import { BITMAP_BYTES, bitsOf, type KeptMatches, type Packed, packedBits } from '../schema/match-memory'
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

/** Calls `work` for a few blocks at a time, and gives other searches a turn in between. */
export async function eachFewBlocks(
  numbers: readonly number[],
  pace: Pace,
  work: (some: readonly number[]) => void,
): Promise<void> {
  let width = FIRST_BLOCKS
  for (let from = 0; from < numbers.length; ) {
    const before = pace.used
    work(numbers.slice(from, from + width))
    from += width
    const cost = pace.used - before
    if (cost < QUICK) width = Math.min(MOST_BLOCKS, width * 2)
    else if (cost > 1) width = Math.max(1, width >> 1)
    if (from < numbers.length && !(await pace.rest())) return
  }
}

/**
 * Reads the matches that are not in memory. When the search is cut off, the last blocks are missing.
 * @param numbers of blocks
 * @returns undefined if FTS5 must be used
 */
export async function readWords(
  context: SearchContext,
  key: string,
  { table, expression }: WordMatch,
  numbers: readonly number[],
  pace: Pace,
): Promise<[number, Packed][] | undefined> {
  const memory = context.columns.matches
  const kept = memory.open(key)
  const words = new Map(wordsIn(expression).map((word) => [keyOfWord(table, word), word]))
  const postings = new OpenPostings(context, table, pace)
  const blocks: [number, Packed][] = []
  try {
    await eachFewBlocks(numbers, pace, (some) => {
      const missing = some.filter((number) => kept.block(number) === undefined)
      const read = new Map<string, KeptMatches>()
      for (const [wordKey, word] of missing.length > 0 ? words : []) {
        const keptWord = wordKey === key ? kept : memory.open(wordKey)
        read.set(wordKey, keptWord)
        readWord(keptWord, postings, word, missing)
      }
      for (const number of missing) {
        if (kept.block(number) !== undefined) continue
        const bits = evaluate(expression, (word) => bitsOf(read.get(keyOfWord(table, word))!.block(number)!))
        kept.keepPacked(number, packedBits(bits, memory.writes))
      }
      for (const number of some) blocks.push([number, kept.block(number)!])
      context.columns.keptMatches()
    })
  } catch (error) {
    if (error instanceof Unreadable) return undefined
    throw error
  }
  return blocks
}

/** Reads the blocks of a word that are not in memory. */
function readWord(
  kept: KeptMatches,
  { context, now, pace }: OpenPostings,
  { word, prefix, columns }: WordIn,
  numbers: readonly number[],
): void {
  const missing = numbers.filter((number) => kept.block(number) === undefined)
  if (missing.length === 0) return
  const [low, high] = [Math.min(...missing) * BLOCK, Math.max(...missing) * BLOCK + BLOCK - 1]
  const bits = new Uint8Array((high - low + 1) / 8)
  const isWanted: number[] = []
  for (const column of columns) isWanted[column] = 1
  const read = now.visit(word, prefix, { low, high }, (seq, bytes, from, to) => {
    if (weightOfPlaces(bytes, from, to, isWanted, true) === 0) return
    const at = seq - low
    bits[at >> 3]! |= 1 << (at & 7)
  })
  pace.countRows(read / POSTINGS_A_ROW)
  const { writes } = context.columns.matches
  for (const number of missing) {
    const from = (number * BLOCK - low) / 8
    kept.keepPacked(number, packedBits(bits.slice(from, from + BITMAP_BYTES), writes))
  }
}

function evaluate(expression: Expression, bitsOfWord: (word: WordIn) => Uint8Array): Uint8Array {
  if (expression.kind === 'word') return bitsOfWord(expression)
  if (expression.kind === 'not') {
    const without = evaluate(expression.without, bitsOfWord)
    return evaluate(expression.part, bitsOfWord).map((byte, at) => byte & ~without[at]!)
  }
  const isAnd = expression.kind === 'and'
  const bits = new Uint8Array(BITMAP_BYTES).fill(isAnd ? 255 : 0)
  for (const part of expression.parts) {
    const others = evaluate(part, bitsOfWord)
    for (let at = 0; at < bits.length; at++)
      bits[at] = isAnd ? bits[at]! & others[at]! : bits[at]! | others[at]!
  }
  return bits
}
