/**
 * The matches of words that meet the conditions of a search. The words are found without them, and kept: FTS5 would look for
 * the words anew in each slice.
 */

import { Filter } from '../filter/filter'
import { packed } from '../schema/match-memory'
import type { TextMatch } from '../text/query'
import { type Conditions, isIn, textMatches } from './candidates'
import type { SearchContext } from './context'
import { allMatches, Matches, wordsOf } from './kept-matches'
import { filteredIn, type MatchSet, type Parts } from './match-set'
import type { Pace } from './pace'

/** Of the conditions of a search: the matches that meet them, by expression. */
const KNOWN = new WeakMap<Conditions, Map<string, Matches>>()

/** The matches that meet the conditions, found once for these. */
export async function filteredMatches(
  context: SearchContext,
  match: TextMatch,
  conditions: Conditions,
  pace: Pace,
): Promise<Matches> {
  const words = wordsOf(match)
  if (conditions.isAll) return allMatches(context, words, pace)
  const of = KNOWN.get(conditions) ?? new Map<string, Matches>()
  KNOWN.set(conditions, of)
  const known = of.get(words.key)
  if (known !== undefined) return known
  const all = await allMatches(context, words, pace)
  const { writes } = context.columns.matches
  const passed = await conditions.among(all.set, pace)
  const matches = new Matches([...passed].map(([number, offsets]) => [number, packed(offsets, writes)]))
  if (!pace.cutoff) of.set(words.key, matches)
  return matches
}

/** The same with scores, in parts. */
export async function scoredMatches(
  context: SearchContext,
  match: TextMatch,
  conditions: Conditions,
  pace: Pace,
): Promise<Parts> {
  if (conditions.isAll) return textMatches(context.sql, match)
  return textMatches(context.sql, match, isIn((await filteredMatches(context, match, conditions, pace)).set))
}

/** The documents of a set that pass a filter without joins. @throws ApiError 400 */
export const passingOf = (
  context: SearchContext,
  filterBy: string,
  set: MatchSet,
  pace: Pace,
): Promise<MatchSet> => filteredIn(context, new Filter(context.schema, filterBy), set, pace)
