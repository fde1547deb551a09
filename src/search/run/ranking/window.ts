/**
 * The order of a plain search: matches by how well they fit (score.ts), then by the other keys of the sort.
 *
 * If there are few matches, all of them are read. Otherwise tiers.ts decides which to read first. Of each tier the first by
 * the other keys are read, or without other keys the best by BM25, and the rest follow in that order. The order depends only on
 * the query and not on the page, so no document is on two pages or on none.
 */

import type { SortKey } from '../../request/sort'
import { BLOCK } from '../../schema/block'
import { equalCandidates, type Scores } from '../candidates'
import { filteredMatches } from '../filtered-matches'
import type { OrderedMatch } from '../gathered'
import { allMatches, wordsOf } from '../kept-matches'
import { common, eachBlock, type MatchSet, minus, seqsOf, setOf, sizeOf } from '../match-set'
import { type Window, windowOf } from '../window'
import type { Scored } from './documents'
import { bestMatches, FEW, firstByLength, wordsIn } from './matches'
import type { Ranking } from './ranking'
import type { TextScore } from './score'
import type { Tier } from './tiers'
import { wholeFields } from './whole-fields'

export interface RankedPage {
  rows: OrderedMatch[]
  /** by sequence number */
  texts: Map<number, TextScore>
}

/** What a search has found or a part of it, and where to look first. The last tier has all matches; without tiers, all are read. */
export interface Tiered {
  set: MatchSet
  isPart?: boolean
  tiersOf: () => readonly Tier[]
}

/** Up to this many matches, there are hardly ever too many with the words in a row to read all of those. */
const HARDLY_CROWDED = 16 * FEW

/** The part of a slice that reading and scoring the first documents takes. */
const READING = 0.5

/** Where all matches need scores, so many of a large tier are read: most of it fits equally well. */
const A_FEW = 16

/** Of more matches, BM25 says little, and takes long: the newest come first. */
const MOST_WEIGHED = 16_384

/** Where an order has no other keys, the newest of equals come first. */
export const NEWEST: SortKey = { kind: 'seq', direction: 'DESC' }

/** A tier without the ones before it. */
interface Segment {
  tier: Tier
  set: MatchSet
  size: number
}

/**
 * The matches of a window, in order.
 * @param most so many matches are all read
 */
export async function rankedPage(
  ranking: Ranking,
  found: Tiered,
  { offset, limit }: Window,
  most = FEW,
): Promise<RankedPage> {
  const { set, tiersOf } = found
  const page: RankedPage = { rows: [], texts: new Map() }
  const tiers = sizeOf(set) <= most ? [] : tiersOf()
  if (tiers.length === 0) {
    await ranking.pace.rest(READING)
    append(page, await ordered(ranking, ranking.scorer.scoreAll(seqsOf(set)), offset, limit))
    return page
  }
  const end = offset + limit
  let passed = 0
  for await (const segment of segmentsOf(ranking, found, tiers)) {
    const from = Math.max(0, offset - passed)
    const left = end - Math.max(offset, passed)
    if (from < segment.size) await addRanked(ranking, page, segment, { offset: from, limit: left })
    passed += segment.size
    if (passed >= end) break
  }
  lower(page)
  return page
}

/**
 * The scores of all matches. Those that are not read have the worst score of those that are of their tier, so that all orders
 * agree with that of `rankedPage`.
 */
export async function scoresOfAll(ranking: Ranking, found: Tiered, most: number): Promise<Scores> {
  const { set, tiersOf } = found
  const { pace, scorer } = ranking
  const blocks = new Map<number, Float64Array>()
  for (const number of set.keys()) blocks.set(number, new Float64Array(BLOCK))
  let least = Number.POSITIVE_INFINITY
  const add = async (seqs: readonly number[], others: MatchSet) => {
    await pace.rest(READING)
    const read = scorer.scoreAll(seqs)
    const before = least
    for (const { text } of read) least = Math.min(least, text.rank)
    await eachBlock(others, pace, (number, offsets) => {
      const scores = blocks.get(number)!
      for (const at of offsets) scores[at] = -least
    })
    for (const { seq, text } of read) {
      const number = Math.floor(seq / BLOCK)
      blocks.get(number)![seq - number * BLOCK] = -Math.min(before, text.rank)
    }
  }
  const tiers = sizeOf(set) <= most ? [] : tiersOf()
  if (tiers.length === 0) await add(seqsOf(set), new Map())
  for await (const segment of segmentsOf(ranking, found, tiers)) {
    await add(await firstOf(ranking, segment, A_FEW), segment.set)
  }
  return (number) => {
    const scores = blocks.get(number)
    return (at) => scores?.[at] ?? 0
  }
}

/**
 * Starts from the widest tier that has few matches. If all have many, it starts from the first; then fields that
 * equal the query come before it, since they may not be among those that are read.
 */
async function* segmentsOf(
  ranking: Ranking,
  { set, isPart }: Tiered,
  tiers: readonly Tier[],
): AsyncGenerator<Segment> {
  if (tiers.length === 0) return
  const { context, filter, pace } = ranking
  const last = tiers.length - 1
  const known = new Map<number, MatchSet>([[last, set]])
  const matching = async (at: number): Promise<MatchSet> => {
    const before = known.get(at)
    if (before !== undefined) return before
    const all = (await filteredMatches(context, tiers[at]!.match, filter, pace)).set
    const own = isPart ? common(set, all) : all
    known.set(at, own)
    return own
  }
  const isFew = async (at: number) => sizeOf(await matching(at)) <= FEW
  let first = 0
  let few = false
  const widestFirst = [...tiers.keys()].slice(0, -1).reverse()
  // If the narrowest tier has many matches, so have the others. With few matches in all, it seldom has many, so do
  // not check it first.
  const isNarrowFirst = sizeOf(set) > HARDLY_CROWDED
  for (const at of isNarrowFirst && tiers.length > 1 ? [0, ...widestFirst.slice(0, -1)] : widestFirst) {
    const own = await isFew(at)
    if (own) [first, few] = [at, true]
    if (at === 0 ? !own : own) break
  }
  const equal = few ? new Map() : common(setOf(await wholeFields(ranking, tiers[0]!)), set)
  if (equal.size > 0) yield { tier: tiers[0]!, set: equal, size: sizeOf(equal) }
  let before: MatchSet = new Map()
  for (const [at, tier] of tiers.entries()) {
    if (at < first) continue
    const own = await matching(at)
    const others = minus(minus(own, before), equal)
    before = own
    const size = sizeOf(others)
    if (size > 0) yield { tier, set: others, size }
  }
}

/** The documents of a segment that are read: all, if they are few. */
const firstOf = async (ranking: Ranking, segment: Segment, most = FEW): Promise<readonly number[]> =>
  segment.size <= FEW
    ? seqsOf(segment.set)
    : (await others(ranking, segment, [], { offset: 0, limit: most })).map(({ seq }) => seq)

/** Adds the matches of a segment that are in the window: first those that are read, then the others. */
async function addRanked(
  ranking: Ranking,
  page: RankedPage,
  segment: Segment,
  { offset, limit }: Window,
): Promise<void> {
  const first = await firstOf(ranking, segment)
  await ranking.pace.rest(READING)
  const { scorer } = ranking
  const read = scorer.scoreAll(first)
  const taken = Math.max(0, Math.min(read.length, offset + limit) - offset)
  if (taken > 0) append(page, await ordered(ranking, read, offset, taken))
  const missing = Math.min(limit, segment.size - offset) - taken
  if (missing <= 0) return
  const known = read.map(({ seq }) => seq)
  const window = { offset: Math.max(0, offset - read.length), limit: missing }
  const rest = await others(ranking, segment, known, window)
  const least = read.reduce<TextScore | undefined>(
    (low, { text }) => (low === undefined || text.rank < low.rank ? text : low),
    undefined,
  )
  const texts = new Map(scorer.scoreAll(rest.map(({ seq }) => seq)).map(({ seq, text }) => [seq, text]))
  for (const row of rest) {
    const text = texts.get(row.seq)
    if (text === undefined) continue
    page.rows.push(row)
    page.texts.set(row.seq, least !== undefined && text.rank > least.rank ? least : text)
  }
}

/** A window of a segment without some documents, in the order in which they are read. */
async function others(
  ranking: Ranking,
  { tier, set: own, size }: Segment,
  known: readonly number[],
  window: Window,
): Promise<OrderedMatch[]> {
  const { context, sort, pace } = ranking
  const set = minus(own, setOf(known))
  const keys = sort.length === 1 && size > MOST_WEIGHED ? [NEWEST] : sort.slice(1)
  if (keys.length > 0) {
    return (await windowOf(context, equalCandidates(set), keys, window, pace)).rows
  }
  const { match, shortest } = tier
  if (shortest !== undefined) return firstByLength(context, set, wordsIn(match.table, shortest), window, pace)
  const all = (await allMatches(context, wordsOf(match), pace)).set
  return bestMatches(context, match, all, set, { ...window, sort }, pace)
}

function append(page: RankedPage, some: { row: OrderedMatch; text: TextScore }[]): void {
  for (const { row, text } of some) {
    page.rows.push(row)
    page.texts.set(row.seq, text)
  }
}

/** Keeps text matches from rising within a page: a document that was not read may fit better than one before it. */
function lower({ rows, texts }: RankedPage): void {
  let least: TextScore | undefined
  for (const { seq } of rows) {
    const text = texts.get(seq)!
    if (least !== undefined && text.rank > least.rank) texts.set(seq, least)
    else least = text
  }
}

/** Documents that were read, in order: a window of them. */
async function ordered(
  ranking: Ranking,
  read: readonly Scored[],
  offset: number,
  limit: number,
): Promise<{ row: OrderedMatch; text: TextScore }[]> {
  // Only documents with a rank of the window have to be sorted.
  const ranks = Float64Array.from(read, ({ text }) => text.rank).sort()
  const highest = ranks[ranks.length - 1 - offset]
  if (highest === undefined || limit === 0) return []
  const lowest = ranks[Math.max(0, ranks.length - offset - limit)]!
  const near = read.filter(({ text: { rank } }) => rank <= highest && rank >= lowest)
  const before = ranks.length - 1 - ranks.lastIndexOf(highest)
  if (ranking.sort.length > 1) {
    // The other keys decide only between those that fit equally well.
    const equals = await byOtherKeys(ranking, tiesIn(near))
    const places = new Map(equals.map((seq, place) => [seq, place]))
    const placeOf = ({ seq }: Scored) => places.get(seq) ?? 0
    near.sort((a, b) => b.text.rank - a.text.rank || placeOf(a) - placeOf(b))
  } else {
    near.sort(
      (a, b) => b.text.rank - a.text.rank || b.shape - a.shape || b.quality - a.quality || b.seq - a.seq,
    )
  }
  const window = near.slice(offset - before, offset - before + limit)
  return window.map(({ seq, text }) => ({
    row: { seq, score: -text.rank, distance: null, fused: null },
    text,
  }))
}

/** Documents that share their rank with another one. */
function tiesIn(some: readonly Scored[]): Scored[] {
  const counts = new Map<number, number>()
  for (const { text } of some) counts.set(text.rank, (counts.get(text.rank) ?? 0) + 1)
  return some.filter(({ text }) => counts.get(text.rank)! > 1)
}

/** Only the order within equal ranks matters. As in Typesense, the newest comes first where all keys are equal. */
async function byOtherKeys({ context, sort, pace }: Ranking, tied: readonly Scored[]): Promise<number[]> {
  const equals = equalCandidates(setOf(tied.map(({ seq }) => seq)))
  const { rows } = await windowOf(context, equals, sort, { offset: 0, limit: tied.length }, pace)
  return rows.map(({ seq }) => seq)
}
