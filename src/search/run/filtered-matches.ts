/**
 * The matches of words that pass a filter. The words are found without the filter, and the filter is
 * evaluated in memory, or by SQL for the matches alone. FTS5 would look for the words anew in each slice.
 */

import { rangedFilter } from '../filter/compile'
import { fragment } from '../fragment'
import { NOWHERE, type Range } from '../range'
import { BLOCK } from '../schema/block'
import { packed, unpacked } from '../schema/match-memory'
import type { TextMatch } from '../text/query'
import { type RangedFilter, where } from './candidates'
import type { SearchContext } from './context'
import { allMatches, listOf, Matches, wordsOf } from './kept-matches'
import { eachBlock, type MatchSet, minus, once, setOf } from './match-set'
import type { Pace } from './pace'
import { FIRST_WIDTH, ranges } from './scan'

/** Of so few matches SQL reads the fields, rather than loading the fields of all documents into memory. */
const FEW = 4_096
/** Of so few matches SQL tests the filter. A block that is read once serves all attempts of a search, and the next searches. */
const MOST_BY_SQL = 64

/** Of each filter of a search: the matches that pass it, by expression. */
const KNOWN = new WeakMap<RangedFilter, Map<string, Matches>>()

/** The matches that pass a filter, found once for each filter. */
export async function filteredMatches(
  context: SearchContext,
  match: TextMatch,
  filter: RangedFilter,
  pace: Pace,
): Promise<Matches> {
  const words = wordsOf(match)
  if (filter(NOWHERE).sql === '1') return allMatches(context, words, pace)
  const of = KNOWN.get(filter) ?? new Map<string, Matches>()
  KNOWN.set(filter, of)
  const known = of.get(words.key)
  if (known !== undefined) return known
  const all = await allMatches(context, words, pace)
  const { writes } = context.columns.matches
  const set = (all.size > MOST_BY_SQL && (await filter.set?.(pace))) || undefined
  const passed = set ? await bothOf(all, set, pace) : await passing(context, all, filter, pace)
  const matches = new Matches([...passed].map(([number, offsets]) => [number, packed(offsets, writes)]))
  if (!pace.cutoff) of.set(words.key, matches)
  return matches
}

async function bothOf(all: Matches, set: MatchSet, pace: Pace): Promise<MatchSet> {
  const both = new Map<number, Uint16Array>()
  const blocks = new Map(all.blocks)
  const passes = new Uint8Array(BLOCK)
  await eachBlock(set, pace, (number, offsets) => {
    const block = blocks.get(number)
    if (block === undefined) return
    passes.fill(0)
    for (const at of offsets) passes[at] = 1
    both.set(
      number,
      unpacked(block).filter((at) => passes[at] === 1),
    )
  })
  return both
}

async function passing(
  context: SearchContext,
  all: Matches,
  filter: RangedFilter,
  pace: Pace,
): Promise<MatchSet> {
  const seqs: number[][] = []
  const relation = (range: Range) => where(all.within(range), filter(range))
  for await (const range of ranges(context.sql, pace, FIRST_WIDTH, {
    atOnce: all.size <= FEW && pace.weight === 1,
  })) {
    seqs.push(listOf(context.sql, relation, range, pace))
  }
  return setOf(seqs.flat())
}

/**
 * The documents of a set without those that match an expression.
 * @returns resolves to undefined if SQL has to find them
 */
export const setWithout = (
  context: SearchContext,
  all: RangedFilter['set'],
  match: TextMatch,
): NonNullable<RangedFilter['set']> =>
  once(async (pace) => {
    const matches = await allMatches(context, wordsOf(match), pace)
    const set = await all?.(pace)
    if (set === undefined) return undefined
    return minus(set, matches.set)
  })

/** The documents of a set that pass a filter without joins. @throws ApiError 400 */
export async function passingOf(
  { sql, schema }: SearchContext,
  filterBy: string,
  set: MatchSet,
  pace: Pace,
): Promise<MatchSet> {
  const compiled = rangedFilter(sql, schema, filterBy, undefined, pace.countDocuments)
  const step = Math.ceil(BLOCK / pace.weight)
  const found: number[] = []
  for (const [number, offsets] of set) {
    for (let from = 0; from < offsets.length; from += step) {
      const seqs = Array.from(offsets.subarray(from, from + step), (at) => number * BLOCK + at)
      const { where: test, bindings } = compiled({ low: seqs[0]!, high: seqs.at(-1)! })
      const list = fragment('SELECT value AS seq FROM json_each(?)', JSON.stringify(seqs))
      for (const { seq } of pace.query<{ seq: number }>(sql, where(list, { sql: `(${test})`, bindings })))
        found.push(seq)
      await pace.rest()
    }
  }
  return setOf(found)
}
