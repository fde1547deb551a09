/**
 * The page of a plain search: matches by how well they fit (score.ts), then by the other keys of the sort.
 *
 * If there are few matches, all of them are read. Otherwise tiers.ts decides which to read first. Of each tier the
 * best are read, and the rest follow in the order of BM25. The order depends only on the query and not on the page,
 * so no document is on two pages or on none.
 */

import { readColumn } from '../../../stored-json'
import { fragment, join, type SqlFragment } from '../../fragment'
import { ROWID_IN_RANGE } from '../../range'
import { orderBy } from '../../request/sort'
import {
  both,
  type OrderedMatch,
  type RangedFilter,
  type TextMatch,
  ordered as withColumns,
} from '../candidates'
import { filteredMatches } from '../filtered-matches'
import { withoutSeqs } from '../match-set'
import { windowInMemory } from '../memory-page'
import type { Scored } from './documents'
import {
  bestMatches,
  type Counted,
  countMatches,
  FEW,
  fewMatches,
  firstMatches,
  lacking,
  wordsIn,
} from './matches'
import type { Ranking } from './ranking'
import type { TextScore } from './score'
import { scoresOfWord } from './single-word'
import type { Tier } from './tiers'
import { wholeFields } from './whole-fields'

export interface RankedPage {
  rows: OrderedMatch[]
  /** by sequence number */
  texts: Map<number, TextScore>
  found: number
}

/** Up to this many matches, there are hardly ever too many with the words in a row to read all of those. */
const HARDLY_CROWDED = 16 * FEW

/** The part of a slice that reading and scoring the first documents takes. */
const READING = 0.5

/** A tier without the ones before it. */
interface Segment {
  tier: Tier
  filter: RangedFilter
  /** the documents that its filter excludes; undefined if it excludes more than a list of documents */
  lacks: readonly number[] | undefined
  /** its documents, if they are few */
  seqs: number[] | undefined
  /** it certainly has more than a few documents */
  isLarge?: boolean
}

/**
 * The matches of a window, in order, and the number of all.
 * @param seqs all matches, if they are few
 * @param found the number of all matches, if known
 * @param count reads the first of all matches and counts them, where the last tier is not read without the others
 * @param tiersOf where to look first. The last tier has all matches
 */
export async function rankedPage(
  ranking: Ranking,
  {
    seqs,
    found,
    count,
  }: {
    seqs: number[] | undefined
    found?: number | undefined
    count?: (() => Promise<Counted>) | undefined
  },
  tiersOf: () => readonly Tier[],
  { offset, limit }: { offset: number; limit: number },
): Promise<RankedPage> {
  const page: RankedPage = { rows: [], texts: new Map(), found: seqs?.length ?? 0 }
  if (seqs !== undefined) {
    await ranking.pace.rest(READING)
    let read = scoresOfWord(ranking, seqs) ?? ranking.scorer.scoreAll(seqs)
    // If they are too long to be read, those that fit best are read first.
    if (count && ranking.scorer.hasUnread) {
      read = ranking.scorer.scoreAll((await count()).rows.map(({ seq }) => seq))
    }
    append(page, ordered(ranking, read, offset, limit))
    return page
  }
  const tiers = tiersOf()
  const whole = tiers.at(-1)!
  const end = offset + limit
  let passed = 0
  const segments = await segmentsOf(ranking, tiers, found)
  for (const segment of segments) {
    const from = Math.max(0, offset - passed)
    const left = end - Math.max(offset, passed)
    if (left <= 0) break
    const isEnough = segment.isLarge === true && from + left <= FEW
    const isLast = segment === segments.at(-1)
    const { size, ranked } =
      (isLast && count && (await othersOf(count, segments.slice(0, -1)))) ||
      (await sizeOf(ranking, segment, isEnough, isLast || (from === 0 && !isEnough && !segment.tier.tied)))
    if (ranked !== undefined) {
      await addRanked(ranking, page, segment, { size, from, left, known: ranked })
    } else if (segment.seqs !== undefined) {
      append(page, ordered(ranking, scoresOf(ranking, segment.seqs), from, left))
    } else if (from < size) {
      await addRanked(ranking, page, segment, { size, from, left, known: undefined })
    }
    passed += size
    if (isLast) page.found = passed
  }
  if (page.found === 0) {
    // The page is empty, so nothing was ranked: only count the matches.
    page.found = found ?? (await countMatches(ranking.context, whole.match, ranking.filter, ranking.pace))
  }
  lower(page)
  return page
}

/**
 * Starts from the widest tier that has few matches. If all have many, it starts from the first; then fields that
 * equal the query come before it, since they may not be among the best by BM25.
 */
async function segmentsOf(
  ranking: Ranking,
  tiers: readonly Tier[],
  found: number | undefined,
): Promise<Segment[]> {
  const { context, filter, pace } = ranking
  const segments: Segment[] = []
  const few = (at: number) => fewMatches(context, tiers[at]!.match, filter, FEW, pace, found)
  let first = 0
  let seqs: number[] | undefined
  const widestFirst = [...tiers.keys()].slice(0, -1).reverse()
  // If the narrowest tier has many matches, so have the others. With few matches in all, it seldom has many, so do
  // not check it first.
  const isNarrowFirst = found === undefined || found > HARDLY_CROWDED
  for (const at of isNarrowFirst && tiers.length > 1 ? [0, ...widestFirst.slice(0, -1)] : widestFirst) {
    const some = await few(at)
    if (some !== undefined) [first, seqs] = [at, some]
    if (at === 0 ? some === undefined : some !== undefined) break
  }
  const whole = seqs === undefined ? await wholeFields(ranking, tiers[0]!) : []
  const others = lacking(filter, whole)
  if (whole.length > 0) segments.push({ tier: tiers[0]!, filter, lacks: [], seqs: whole })
  const isLarge = seqs === undefined && whole.length === 0
  let among = others
  let lacks: readonly number[] | undefined = whole
  for (const [number, tier] of tiers.slice(first).entries()) {
    segments.push({ tier, filter: among, lacks, seqs, isLarge: isLarge && number === 0 })
    among = seqs === undefined ? without(others, tier.match) : lacking(others, seqs)
    lacks = seqs && [...whole, ...seqs]
    seqs = undefined
  }
  return segments
}

/**
 * The count without the earlier segments: how many, and the first few. Undefined if the documents of those segments
 * are not known.
 */
async function othersOf(
  count: () => Promise<Counted>,
  before: readonly Segment[],
): Promise<{ size: number; ranked: OrderedMatch[] } | undefined> {
  if (before.some(({ seqs }) => seqs === undefined)) return undefined
  const { rows, found } = await count()
  const known = new Set(before.flatMap(({ seqs }) => seqs!))
  return { size: found - known.size, ranked: rows.filter(({ seq }) => !known.has(seq)).slice(0, FEW) }
}

/**
 * How many documents a segment has; a lower bound if the window certainly lies in it.
 * @param ranks whether one statement counts and ranks them
 */
async function sizeOf(
  ranking: Ranking,
  segment: Segment,
  isEnough: boolean,
  ranks: boolean,
): Promise<{ size: number; ranked: OrderedMatch[] | undefined }> {
  if (segment.seqs !== undefined) return { size: segment.seqs.length, ranked: undefined }
  if (ranks) {
    const { rows, found } = await bestBy(ranking, segment, [], { offset: 0, limit: FEW })
    return { size: found, ranked: rows }
  }
  if (isEnough) return { size: FEW, ranked: undefined }
  const size = await countMatches(ranking.context, segment.tier.match, segment.filter, ranking.pace)
  return { size, ranked: undefined }
}

/** Adds the matches of a segment that are in the window: first those that are read, then the others. */
async function addRanked(
  ranking: Ranking,
  page: RankedPage,
  segment: Segment,
  {
    size,
    from,
    left,
    known,
  }: { size: number; from: number; left: number; known: OrderedMatch[] | undefined },
): Promise<void> {
  const best = (without: readonly number[], offset: number, limit: number) =>
    bestOf(ranking, segment, without, { offset, limit }, size)
  const first = known ?? (await best([], 0, FEW))
  await ranking.pace.rest(READING)
  const read = scoresOf(
    ranking,
    first.map(({ seq }) => seq),
  )
  const taken = Math.max(0, Math.min(read.length, from + left) - from)
  if (taken > 0) append(page, ordered(ranking, read, from, taken))
  const missing = Math.min(left, size - from) - taken
  if (missing <= 0) return
  const readSeqs = read.map(({ seq }) => seq)
  const rest = await best(readSeqs, Math.max(0, from - read.length), missing)
  const least = read.reduce<TextScore | undefined>(
    (low, { text }) => (low === undefined || text.rank < low.rank ? text : low),
    undefined,
  )
  const others = scoresOf(
    ranking,
    rest.map(({ seq }) => seq),
  )
  const texts = new Map(others.map(({ seq, text }) => [seq, text]))
  for (const row of rest) {
    const text = texts.get(row.seq)
    if (text === undefined) continue
    page.rows.push(row)
    page.texts.set(row.seq, least !== undefined && text.rank > least.rank ? least : text)
  }
}

const scoresOf = (ranking: Ranking, seqs: readonly number[]): Scored[] => ranking.scorer.scoreAll(seqs)

/** The matches of a segment in the order in which they are read, without some documents: a window of them. */
async function bestOf(
  ranking: Ranking,
  segment: Segment,
  without: readonly number[],
  { offset, limit }: { offset: number; limit: number },
  size: number,
): Promise<OrderedMatch[]> {
  const { context, sort, pace } = ranking
  const { tier, lacks } = segment
  if (tier.tied && sort.length > 1 && lacks !== undefined) {
    const all = await filteredMatches(context, tier.match, ranking.filter, pace)
    const set = all && withoutSeqs(all.set, [...lacks, ...without])
    const equals = { parts: noParts, text: false, vector: false, found: undefined, set: async () => set }
    const window = set && (await windowInMemory(context, equals, sort.slice(1), { offset, limit }, pace))
    if (window !== undefined) return window.rows
  }
  if (tier.shortest !== undefined && sort.length === 1 && lacks !== undefined) {
    const by = { by: tier.shortest, order: orderOf(ranking, tier), lacks: [...lacks, ...without] }
    const rows = await firstMatches(context, tier.match, ranking.filter, by, { offset, limit }, pace)
    if (rows !== undefined) return rows
  }
  const { rows } = await bestBy(ranking, segment, without, { offset, limit }, size)
  return rows
}

/** @param size how many the segment has, if that is known */
function bestBy(
  ranking: Ranking,
  { tier, filter, lacks }: Segment,
  without: readonly number[],
  window: { offset: number; limit: number },
  size?: number,
): Promise<Counted> {
  const { context, filter: all, sort, pace } = ranking
  const top = { ...window, order: orderOf(ranking, tier), byScore: !tier.tied }
  const isScored = !tier.tied || (sort.length === 1 && tier.shortest === undefined)
  const known = { found: size, isScored }
  return lacks === undefined
    ? bestMatches(context, tier.match, filter, { ...known, lacks: without }, top, pace)
    : bestMatches(context, tier.match, all, { ...known, lacks: [...lacks, ...without] }, top, pace)
}

async function* noParts() {}

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
function ordered(
  ranking: Ranking,
  read: readonly Scored[],
  offset: number,
  limit: number,
): { row: OrderedMatch; text: TextScore }[] {
  // Only documents with a rank of the window have to be sorted.
  const ranks = Float64Array.from(read, ({ text }) => text.rank).sort()
  const highest = ranks[ranks.length - 1 - offset]
  if (highest === undefined || limit === 0) return []
  const lowest = ranks[Math.max(0, ranks.length - offset - limit)]!
  const near = read.filter(({ text: { rank } }) => rank <= highest && rank >= lowest)
  const before = ranks.length - 1 - ranks.lastIndexOf(highest)
  if (ranking.sort.length > 1) {
    // The other keys decide only between those that fit equally well.
    const places = new Map(byOtherKeys(ranking, tiesIn(near)).map((seq, place) => [seq, place]))
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

function byOtherKeys({ context, sort, pace }: Ranking, tied: readonly Scored[]): number[] {
  if (tied.length === 0) return []
  const seqs = tied.map(({ seq }) => seq)
  // Only the order within equal ranks matters, so all get the same score. As in Typesense, the newest comes first
  // where all keys are equal.
  const order = orderBy(sort, context.sql, context.schema, false)
  const relation = fragment(
    'SELECT value AS seq, 0.0 AS score, NULL AS distance, NULL AS fused FROM json_each(?)',
    JSON.stringify(seqs),
  )
  const range = { low: Math.min(...seqs), high: Math.max(...seqs) }
  const [row] = pace.query<{ list: string }>(
    context.sql,
    join(
      [
        fragment('SELECT json_group_array(d.seq ORDER BY '),
        order.by,
        fragment(') AS list FROM ('),
        withColumns({ relation, range }, order, pace),
        fragment(') d'),
      ],
      '',
    ),
  )
  return readColumn<number>(row!.list)
}

/** The order in which documents of a tier are read. */
const orderOf = ({ context, sort }: Ranking, tier: Tier) =>
  tier.tied
    ? orderBy(sort.slice(1), context.sql, context.schema, false, sort.length > 1 ? [] : [lastKeyOf(tier)])
    : orderBy(sort, context.sql, context.schema, false)

const lastKeyOf = ({ match, shortest }: Tier): SqlFragment =>
  fragment(shortest === undefined ? 'd.score' : wordsIn(match.table, shortest))

/** The documents that pass a filter and do not match an expression. */
const without =
  (filter: RangedFilter, { match, table }: TextMatch): RangedFilter =>
  (range) =>
    both(
      filter(range),
      fragment(
        `d.seq NOT IN (SELECT rowid FROM ${table} WHERE ${table} MATCH ? AND ${ROWID_IN_RANGE})`,
        match,
        range.low,
        range.high,
      ),
    )
