/**
 * The page of a plain search: matches by how well they fit (score.ts), then by the other keys of the sort.
 *
 * If there are few matches, all of them are read. Otherwise tiers.ts tells which to look at first. Of each tier the
 * best are read, and the rest follow in the order of BM25. What a page shows depends on the query alone and not on the
 * page, so no document is on two pages or on none.
 */
import { fragment, join, not, oneOf, type SqlFragment } from '../../fragment'
import type { SearchRequest } from '../../request/request'
import { orderBy, type SortKey } from '../../request/sort'
import {
  countedWindow,
  countOf,
  type OrderedMatch,
  type RangedFilter,
  type TextMatch,
  textMatches,
} from '../candidates'
import type { SearchContext } from '../context'
import { Gathered } from '../gathered'
import type { Pace } from '../pace'
import type { DocumentScorer, Scored } from './documents'
import type { TextScore } from './score'
import type { Tier } from './tiers'

/** So many matches are read without asking FTS5 which are the best. */
export const FEW = 64
/** Documents of a tier that are read. */
const MOST_READ = 128

/** What a search matches, and some of it. */
export interface Matched {
  found: number
  /** all matches, if they are few */
  seqs: number[] | undefined
}

/** Counts the matches. The first ones come along, since they are often all. */
export async function matchedBy(
  sql: SqlStorage,
  match: TextMatch,
  filter: RangedFilter,
  most: number,
  pace: Pace,
): Promise<Matched> {
  const seqs: number[] = []
  let found = 0
  for await (const { relation } of textMatches(sql, match, filter)(pace)) {
    if (found <= most) {
      const some = pace.query<{ seq: number }>(
        sql,
        join([fragment('SELECT d.seq FROM ('), relation, fragment(') d LIMIT ?', most + 1 - found)], ''),
      )
      for (const { seq } of some) seqs.push(seq)
      if (found + some.length <= most) {
        found += some.length
        continue
      }
    }
    const [row] = pace.query<{ count: number }>(
      sql,
      join([fragment('SELECT count(*) AS count FROM ('), relation, fragment(')')], ''),
    )
    found += row!.count
  }
  return { found, seqs: found <= most ? seqs : undefined }
}

export interface RankedPage {
  rows: OrderedMatch[]
  /** by sequence number */
  texts: Map<number, TextScore>
}

/** A search whose matches are ranked. */
export interface Ranking {
  context: SearchContext
  request: SearchRequest
  scorer: DocumentScorer
  filter: RangedFilter
  /** all keys; the first is the text match */
  sort: SortKey[]
  pace: Pace
}

/** The matches of a window, in order. */
export async function rankedPage(
  ranking: Ranking,
  { found, seqs }: Matched,
  tiers: readonly Tier[],
  { offset, limit }: { offset: number; limit: number },
): Promise<RankedPage> {
  const page: RankedPage = { rows: [], texts: new Map() }
  if (seqs !== undefined) {
    append(page, await ordered(ranking, ranking.scorer.scoreAll(seqs), offset, limit))
    return page
  }
  let before: TextMatch | undefined
  // Matches before the tier.
  let passed = 0
  for (const [number, tier] of tiers.entries()) {
    const left = offset + limit - Math.max(offset, passed)
    if (left <= 0) break
    const isLast = number === tiers.length - 1
    const filter = before === undefined ? ranking.filter : without(ranking.filter, before)
    const size = isLast
      ? found - passed
      : await countOf(ranking.context.sql, textMatches(ranking.context.sql, tier.match, filter), ranking.pace)
    if (size > 0 && passed + size > offset) {
      await addTier(ranking, page, tier, filter, { size, offset: Math.max(0, offset - passed), limit: left })
    }
    passed += size
    before = tier.match
  }
  lower(page)
  return page
}

/** Adds the matches of a tier that are in the window. */
async function addTier(
  ranking: Ranking,
  page: RankedPage,
  { match, tied }: Tier,
  filter: RangedFilter,
  { size, offset, limit }: { size: number; offset: number; limit: number },
): Promise<void> {
  const { context, scorer, pace } = ranking
  const { sql } = context
  const order = tied ? otherKeys(ranking) : byScore(ranking)
  const best = async (among: RangedFilter, from: number, count: number) => {
    const window = { offset: from, limit: count, order, byScore: !tied }
    const parts = textMatches(sql, match, among)
    return (await countedWindow(sql, { parts, found: size }, window, pace)).rows
  }
  const read = scorer.scoreAll((await best(filter, 0, MOST_READ)).map(({ seq }) => seq))
  const taken = Math.min(read.length, offset + limit) - offset
  if (taken > 0) append(page, await ordered(ranking, read, offset, taken))
  const missing = Math.min(limit, size - offset) - Math.max(0, taken)
  if (missing <= 0) return
  const known = read.map(({ seq }) => seq)
  const others: RangedFilter = (range) => both(filter(range), not(oneOf(known)))
  const rest = await best(others, Math.max(0, offset - read.length), missing)
  const least = read.reduce<TextScore | undefined>(
    (low, { text }) => (low === undefined || text.rank < low.rank ? text : low),
    undefined,
  )
  const scored = new Map(scorer.scoreAll(rest.map(({ seq }) => seq)).map((each) => [each.seq, each.text]))
  for (const row of rest) {
    const text = scored.get(row.seq)
    if (text === undefined) continue
    page.rows.push(row)
    page.texts.set(row.seq, least !== undefined && text.rank > least.rank ? least : text)
  }
}

function append(page: RankedPage, some: { row: OrderedMatch; text: TextScore }[]): void {
  for (const { row, text } of some) {
    page.rows.push(row)
    page.texts.set(row.seq, text)
  }
}

/** Keeps text matches from rising within a page, where a document that was not read fits better than one before it. */
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
  { context, sort, pace }: Ranking,
  read: readonly Scored[],
  offset: number,
  limit: number,
): Promise<{ row: OrderedMatch; text: TextScore }[]> {
  const sorted = read.toSorted((a, b) => b.text.rank - a.text.rank || b.quality - a.quality || b.seq - a.seq)
  const texts = new Map(sorted.map(({ seq, text }) => [seq, text]))
  const rowOf = ({ seq, text, quality }: Scored) => ({
    seq,
    score: -text.rank,
    distance: null,
    fused: quality,
  })
  const plain = ({ row }: { row: OrderedMatch }) => ({
    row: { ...row, fused: null },
    text: texts.get(row.seq)!,
  })
  if (sort.length === 1)
    return sorted.slice(offset, offset + limit).map((each) => plain({ row: rowOf(each) }))
  // The other keys decide only between those that fit equally well.
  const gathered = new Gathered()
  for (const each of sorted) gathered.add(each.seq, -each.text.rank, Number.NaN, each.quality)
  const order = orderBy(sort, context.sql, context.schema, false, [fragment('d.fused DESC')])
  const window = { offset, limit, order, byScore: false }
  const { rows } = await countedWindow(
    context.sql,
    { parts: gathered.parts, found: gathered.size },
    window,
    pace,
  )
  return rows.map((row) => plain({ row }))
}

const byScore = ({ context, sort }: Ranking) => orderBy(sort, context.sql, context.schema, false)

const otherKeys = ({ context, sort }: Ranking) =>
  orderBy(sort.slice(1), context.sql, context.schema, false, [fragment('d.score')])

/** The documents that pass a filter and do not match an expression. */
const without =
  (filter: RangedFilter, { match, table }: TextMatch): RangedFilter =>
  (range) =>
    both(
      filter(range),
      fragment(
        `d.seq NOT IN (SELECT rowid FROM ${table} WHERE ${table} MATCH ? AND rowid BETWEEN ? AND ?)`,
        match,
        range.low,
        range.high,
      ),
    )

const both = (one: SqlFragment, other: SqlFragment): SqlFragment =>
  one.sql === '1' ? other : join([fragment('('), one, fragment(') AND ('), other, fragment(')')], '')
