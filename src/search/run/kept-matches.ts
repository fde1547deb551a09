/** The matches of an expression, read once and kept in memory (schema/column-memory.ts). */
import { readColumn } from '../../lib/stored-json'
import { Filter } from '../filter/filter'
import { fragment, join, limited, type Range } from '../fragment'
import { BLOCK, type Offsets } from '../schema/column'
import type { TextMatch } from '../text/query'
import {
  type Conditions,
  FIRST_WIDTH,
  isIn,
  ranges,
  textMatches,
  unscoredIn,
  weightOfWords,
} from './candidates'
import type { Running } from './context'
import { filteredIn, type MatchSet, type Parts, setOf, sizeOf } from './match-set'

/** The matches of an expression. */
export interface Matches {
  set: MatchSet
  size: number
}

type Words = Pick<TextMatch, 'match' | 'table'>

/** What tells an expression from others. */
const keyOf = ({ match, table }: Words): string => JSON.stringify([table, match])

/**
 * The documents that an expression matches. Those that are not in memory are read. When the search is cut off, the oldest are
 * missing.
 */
export async function allMatches(context: Running, words: Words): Promise<Matches> {
  const ends = context.pace.ends(context.sql)
  const key = keyOf(words)
  const blocks = new Map<number, Offsets>()
  let missing: Range | undefined
  const read = async () => {
    if (missing !== undefined) await readInto(blocks, context, words, missing)
    missing = undefined
  }
  for (const number of numbersIn(ends)) {
    const offsets = context.columns.matches.get(key, number)
    if (offsets === undefined) {
      const low = Math.max(ends.low, number * BLOCK)
      missing = { low, high: missing?.high ?? Math.min(ends.high, number * BLOCK + BLOCK - 1) }
      continue
    }
    await read()
    if (offsets.length > 0) blocks.set(number, offsets)
  }
  await read()
  return { set: blocks, size: sizeOf(blocks) }
}

/** The numbers of the blocks of a range, the newest first. */
function* numbersIn({ low, high }: Range): Generator<number> {
  for (let number = Math.floor(high / BLOCK); number >= Math.floor(low / BLOCK); number--) yield number
}

async function readInto(
  blocks: Map<number, Offsets>,
  context: Running,
  words: Words,
  missing: Range,
): Promise<void> {
  const { matches } = context.columns
  const key = keyOf(words)
  // A block that is written while others are read is read again by the next search.
  const { writes } = matches
  // FTS5 collects words with a beginning first, so each statement takes long before its first match.
  const division = { within: missing, atOnce: words.match.includes('*'), weight: weightOfWords(words.match) }
  for await (const range of ranges(context, FIRST_WIDTH, division)) {
    const found = setOf(listOf(context, words, range))
    for (const number of numbersIn(range)) {
      const own = found.get(number) ?? new Uint16Array(0)
      // A previous range may have had the newer part of the block.
      const newer = blocks.get(number)
      const offsets = newer === undefined ? own : Uint16Array.of(...own, ...newer)
      if (offsets.length > 0) blocks.set(number, offsets)
      const isWhole = range.low <= Math.max(missing.low, number * BLOCK)
      if (isWhole) matches.set(key, number, offsets, offsets.byteLength, writes)
    }
  }
}

/** Sequence numbers that fit into one value: SQLite takes 2 MB. */
const MOST_IN_A_LIST = 150_000

/** Sequence numbers in few rows: a list is read more quickly than many rows. FTS5 finds the oldest documents first. */
function listOf({ sql, pace }: Running, words: Words, { low, high }: Range): number[] {
  const lists: number[][] = []
  for (let from = low; ; ) {
    const some = [unscoredIn(words, { low: from, high }), limited(MOST_IN_A_LIST)]
    const query = join([fragment('SELECT json_group_array(seq) AS list FROM ('), ...some, fragment(')')])
    const [row] = pace.query<{ list: string }>(sql, query)
    const list = readColumn<number>(row!.list)
    lists.push(list)
    if (list.length < MOST_IN_A_LIST) return lists.flat()
    from = list.at(-1)! + 1
  }
}

// =============================================================================
// The matches of words that meet the conditions of a search. The words are found without them, and kept: FTS5 would look for
// the words anew in each slice.

/** The matches that meet the conditions, which know what they have tested. */
export async function filteredMatches(
  context: Running,
  match: TextMatch,
  conditions: Conditions,
): Promise<Matches> {
  const all = await allMatches(context, match)
  if (conditions.isAll) return all
  const set = await conditions.among(all.set)
  return { set, size: sizeOf(set) }
}

/** The same with scores, in parts. */
export async function scoredMatches(
  context: Running,
  match: TextMatch,
  conditions: Conditions,
): Promise<Parts> {
  if (conditions.isAll) return textMatches(context, match)
  return textMatches(context, match, isIn((await filteredMatches(context, match, conditions)).set))
}

/** The documents of a set that pass a filter without joins. @throws ApiError 400 */
export const passingOf = (context: Running, filterBy: string, set: MatchSet): Promise<MatchSet> =>
  filteredIn(context, new Filter(context.schema, filterBy), set)
