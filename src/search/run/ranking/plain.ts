/**
 * Decides which words a document needs in a plain search, as in Typesense.
 *
 * A document matches if every word of the query is in any of the fields. If fewer than typo_tokens_threshold
 * documents match, similar words will do too, unless the query has more than ten words. If fewer than
 * drop_tokens_threshold match, words are dropped one by one, from one end and then from the other, until enough are
 * found. Matches of more words are never lost, and a phrase in quotes is never dropped.
 *
 * The answer to a question in a whole sentence seldom has the question's words. So where words of a sentence would be
 * dropped, and matches are ordered by how well they match, any informative word is enough and BM25 ranks.
 * `drop_tokens_mode` turns that off.
 */

import { once } from '../../../lib/once'
import { fragment } from '../../fragment'
import type { SearchRequest } from '../../request/request'
import { completeSort, type SortKey } from '../../request/sort'
import { BLOCK } from '../../schema/column'
import { stemsOf, type TextIndex } from '../../text/analyzer'
import {
  type ColumnGroup,
  groupsOf,
  informativeWords,
  inQuotes,
  isOpen,
  matchExpression,
  type ParsedQuery,
  relax,
  type SearchedColumn,
  type Term,
  type TextMatch,
  termsFor,
  typed,
} from '../../text/query'
import { hasSynonyms } from '../../text/synonyms'
import {
  type Conditions,
  equalCandidates,
  type Fit,
  gatherScores,
  type OrderedMatch,
  type Scores,
  type Top,
  where,
} from '../candidates'
import type { Running } from '../context'
import { allMatches, filteredMatches, type Matches, scoredMatches } from '../kept-matches'
import { common, eachBlock, type MatchSet, minus, partsOf, seqsOf, setOf, sizeOf } from '../match-set'
import { type Window, windowOf } from '../order'
import type { Found } from '../page'
import {
  areKnown,
  columnsOf,
  correct,
  rankOf,
  splitsAndJoins,
  withLongest,
  withSimilar,
  withSpacing,
} from '../query-words'
import {
  BY_TEXT,
  bestMatches,
  DocumentScorer,
  FEW,
  firstByLength,
  hasLength,
  type Ranking,
  type Scored,
  wordsIn,
} from './documents'
import { costOf, type TextScore } from './score'

/** With this many informative words, a query counts as a question. */
const QUESTION_WORDS = 5
/** More matches than this are enough whatever the thresholds say. */
const MOST_COUNTED = 10_000
/** The words of a longer query are not corrected. */
const MOST_CORRECTED = 10
/** Of a longer query, only the first words are dropped. */
const MOST_DROPPED = 20

interface PlainSearch {
  /** the words of the query, with the words that are searched for instead */
  terms: Term[]
  match: TextMatch
  matches: MatchSet
  /** the index that was searched, if it is not the request's */
  index?: TextIndex
  /** where to look first; undefined if any word is enough, and BM25 ranks */
  tiers: (() => Tier[]) | undefined
  /** the best matches, if BM25 ranks and they were asked for */
  top?: { rows: OrderedMatch[]; found: number }
}

/**
 * Chooses the query for the index, by counting matches.
 * @param top the best matches to bring along, where BM25 ranks
 * @returns undefined when the query has no word to look for
 */
export async function planPlainSearch(
  context: Running,
  request: SearchRequest,
  query: ParsedQuery,
  filter: Conditions,
  top: Top | undefined,
): Promise<PlainSearch | undefined> {
  if (query.terms.length === 0 || request.queryFields.length === 0) return undefined
  const { table } = request.index
  const columns = columnsOf(context, request)
  const rank = rankOf(context, request)
  const expression = (terms: Term[]) => matchExpression(terms, query.excluded, columns, 'AND')
  const attempt = async (words: string): Promise<{ match: TextMatch; matches: Matches }> => {
    const match = { match: words, table, rank }
    return { match, matches: await filteredMatches(context, match, filter) }
  }

  let terms = withLongest(context, request, query.terms)
  let search = await attempt(expression(terms))
  const isTooLittle = () => foundBy(search) < request.dropTokensThreshold
  const sort = completeSort(request.sort, context.schema, { text: true, vector: false })
  const isAsked = isQuestion(request, sort, query.terms)
  const answered = () => answerOf(context, request, query, { filter, top, found: foundBy(search) })
  // A sentence without a mistyped word is not corrected.
  if (isTooLittle() && isAsked && areKnown(context, request, query.terms)) {
    const question = await answered()
    if (question !== undefined) return question
  }
  if (foundBy(search) < request.typoTokensThreshold && terms.length <= MOST_CORRECTED) {
    const corrected = request.index.stems
      ? correct(context, request, terms)
      : await withSimilar(context, request, terms)
    if (corrected !== undefined) {
      terms = corrected
      search = await attempt(expression(terms))
    }
  }
  const spaced = splitsAndJoins(request, foundBy(search)) && withSpacing(context, request, query, terms)
  if (spaced) {
    terms = spaced
    search = await attempt(expression(terms))
  }
  if (isTooLittle() && isAsked) {
    const question = await answered()
    if (question !== undefined) return question
  }
  const isLast = sort.length === 1
  const needed = [terms]
  const drops = isTooLittle() ? dropped(terms, request) : []
  for (const kept of drops) {
    if (!isTooLittle() && terms.length > request.dropTokensMode.bothSides) break
    needed.push(kept)
    search = await attempt(needed.map((some) => expression(some)).join(' OR '))
  }
  const weighed = columns.map((column, index) => ({ ...column, rank: request.queryFields[index]!.rank }))
  const { match, matches } = search
  return {
    terms,
    match,
    matches: matches.set,
    tiers: () =>
      needed.length === 1
        ? tiersOf(match, terms, query.excluded, weighed, isLast)
        : tiersByCount(match, terms, columns),
  }
}

/** The search for any word of a question. @returns undefined if it does not find more than the words together */
async function answerOf(
  context: Running,
  request: SearchRequest,
  { terms, excluded }: ParsedQuery,
  { filter, top, found }: { filter: Conditions; top: Top | undefined; found: number },
): Promise<PlainSearch | undefined> {
  const any = relax(terms)
  // The answer to a sentence seldom has its exact words, so use stems.
  const index = stemsOf(request.queryFields.map(({ field }) => field))
  const columns = columnsOf(context, { ...request, index })
  const words = matchExpression(any, excluded, columns, 'OR')
  const match = { match: words, table: index.table, rank: rankOf(context, request) }
  const { set, size } = await filteredMatches(context, match, filter)
  if (size <= found) return undefined
  const rows = top && (await bestMatches(context, match, set, top))
  return {
    terms: any,
    match,
    matches: set,
    tiers: undefined,
    index,
    ...(rows && { top: { rows, found: size } }),
  }
}

const foundBy = ({ matches: { size } }: { matches: Matches }): number =>
  size > MOST_COUNTED ? Number.POSITIVE_INFINITY : size

function isQuestion(
  { dropTokensThreshold, dropTokensMode }: SearchRequest,
  [first]: readonly SortKey[],
  terms: Term[],
): boolean {
  if (dropTokensThreshold === 0 || dropTokensMode.given || terms.some(({ quoted }) => quoted)) return false
  return first!.kind === 'text_match' && informativeWords(terms) >= QUESTION_WORDS
}

/** Yields the remaining words of a query as words are dropped: from one end down to one word, then from the other. */
function* dropped(terms: readonly Term[], { dropTokensMode }: SearchRequest): Generator<Term[]> {
  const words = terms.slice(0, MOST_DROPPED).filter(({ quoted }) => !quoted)
  const phrases = terms.filter(({ quoted }) => quoted)
  const beside = (some: readonly Term[]) =>
    terms.filter((term) => some.includes(term) || phrases.includes(term))
  const fromRight = () => words.map((_, count) => words.slice(0, words.length - count)).slice(1)
  const fromLeft = () => words.map((_, count) => words.slice(count)).slice(1)
  const first = dropTokensMode.direction === 'right_to_left' ? fromRight() : fromLeft()
  const second = dropTokensMode.direction === 'right_to_left' ? fromLeft() : fromRight()
  for (const some of [...first, ...second]) yield beside(some)
}

// =============================================================================
// Decides the order in which a plain search reads matches if it cannot read all: first those whose words are close
// together, which FTS5 finds without ranking, then the others.
//
// Each tier is a subset of the next, and no document of a tier can fit worse than those that later tiers add.

interface Tier {
  match: TextMatch
  /** without other keys, the documents whose text in this column is shortest are read */
  shortest?: string
  /** fields that begin with the query; the first tier has it */
  initial?: TextMatch
}

interface Column extends SearchedColumn {
  /** Typesense's weight of the field */
  rank: number
}

/** The most tokens between two words that are close together: they are at most ten apart. */
const NEAR = 9
/** With more words than this, FTS5 is not asked whether they are close together. */
const MOST_NEAR = 16
/** The most ways to write a query with similar words. With more ways, only its own words are used. */
const MOST_WAYS = 64

/**
 * @param whole what the search matches
 * @param terms each match has all of them
 */
export function tiersOf(
  whole: TextMatch,
  terms: readonly Term[],
  excluded: readonly Term[],
  columns: readonly Column[],
  isLast: boolean,
): Tier[] {
  const all = { match: whole }
  if (terms.length > MOST_NEAR || hasSynonyms(terms)) return [all]
  const unwanted =
    excluded.length === 0 ? '' : ` NOT (${matchExpression([], [...excluded], [...columns], 'AND')})`
  const tier = (match: string): Tier => ({ match: { ...whole, match: match + unwanted } })
  const own = terms.map((term) => ({ ...term, prefix: false, corrections: [] }))
  const initial = tier(together(own, columns, 'initial')).match
  const isTyping = isOpen(terms.at(-1)!)
  const isExact = !isTyping && terms.every(({ corrections }) => corrections.length === 0)
  const heaviest = Math.max(...columns.map(({ rank }) => rank))
  const best = columns.filter(({ rank }) => rank === heaviest)
  // The query as the beginning of a field, for somebody who is still typing that text.
  const begun = own.with(-1, { ...own.at(-1)!, prefix: terms.at(-1)!.prefix })
  const typed = (some: readonly Column[]) => together(begun, some, 'initial')
  const [only] = best
  const shortest = best.length === 1 && isLast && hasLength(only!) ? { shortest: only!.column } : {}
  if (terms.length > 1) {
    const near = together(own, columns, 'near')
    const phrase = together(own, columns, 'phrase')
    const tiers: Tier[] = [{ ...tier(phrase), initial }]
    if (isTyping) {
      tiers.push({ ...tier(either(phrase, typed(best))), ...shortest })
      tiers.push(tier(either(near, typed(columns))))
    } else tiers.push(tier(near))
    if (!isExact && waysOf(terms) <= MOST_WAYS) {
      tiers.push(tier(either(near, together(terms, columns, 'phrase'))))
    }
    return [...tiers, all]
  }
  const exact = matchExpression(own, [], [...columns], 'AND')
  const inBest = tier(matchExpression(own, [], best, 'AND'))
  const isCorrected = terms[0]!.corrections.length > 0
  // How little was corrected counts more than the field.
  const close = isCorrected ? matchExpression(terms.map(nearest), [], [...columns], 'AND') : exact
  const closest = isCorrected ? [tier(close)] : []
  const completed = tier(either(close, matchExpression([...terms], [], best, 'AND')))
  if (best.length === columns.length) {
    return isExact ? [{ ...all, initial }] : [{ ...inBest, initial }, ...closest, all]
  }
  if (!isLast)
    return isExact
      ? [{ ...inBest, initial }, all]
      : [{ ...inBest, initial }, tier(exact), ...closest, completed, all]
  const tiers: Tier[] = [{ ...tier(together(own, best, 'initial')), ...shortest, initial }, inBest]
  if (isExact) return [...tiers, all]
  tiers.push(tier(exact), ...closest)
  if (isTyping) tiers.push({ ...tier(either(close, typed(best))), ...shortest })
  return [...tiers, completed, all]
}

/** A term with those of its corrections that differ from it least, whole words alone. */
function nearest(term: Term): Term {
  const costs = term.corrections.map((word) => costOf(term.tokens[0] ?? '', word, term.prefix))
  const least = Math.min(...costs)
  return { ...term, prefix: false, corrections: term.corrections.filter((_, at) => costs[at] === least) }
}

/**
 * The tiers of a query of which words were dropped: documents with more of its words come first.
 * @param whole what the search matches
 * @param terms all of the query
 */
function tiersByCount(whole: TextMatch, terms: readonly Term[], columns: readonly SearchedColumn[]): Tier[] {
  const all = { match: whole }
  if (terms.length > MOST_NEAR || hasSynonyms(terms)) return [all]
  const tiers: Tier[] = []
  for (let count = terms.length; count > 1; count--) {
    const some = choicesOf(terms, count)
    if (some.length > MOST_WAYS) continue
    const words = some.map((each) => matchExpression(each, [], [...columns], 'AND')).join(' OR ')
    tiers.push({ match: { ...whole, match: `((${words}) AND (${whole.match}))` } })
  }
  return [...tiers, all]
}

/** All choices of so many terms; more than MOST_WAYS are not all there. */
function choicesOf(terms: readonly Term[], count: number): Term[][] {
  let choices: { some: Term[]; next: number }[] = [{ some: [], next: 0 }]
  for (let taken = 0; taken < count && choices.length <= MOST_WAYS; taken++) {
    choices = choices.flatMap(({ some, next }) =>
      terms
        .slice(next, terms.length - (count - taken) + 1)
        .map((term, at) => ({ some: [...some, term], next: next + at + 1 })),
    )
  }
  return choices.map(({ some }) => some)
}

const either = (one: string, other: string): string => `((${one}) OR (${other}))`

/** An expression for words that are close together in one of the columns. */
function together(
  terms: readonly Term[],
  columns: readonly Column[],
  how: 'initial' | 'phrase' | 'near',
): string {
  const expressions = groupsOf(columns).map((group) => {
    const taken = termsFor(terms, group)
    const words = writings(taken, group).map((strings) => {
      if (how === 'near') return `NEAR(${strings.map((each) => `"${each}"`).join(' ')}, ${NEAR})`
      const phrase = strings.join(' ')
      // In a shared column, the code by itself marks the beginning of the field.
      const initial = group.code ? `"${group.code} ${phrase}"` : `^ "${phrase}"`
      return `${how === 'initial' ? initial : `"${phrase}"`}${isOpen(taken.at(-1)!) ? ' *' : ''}`
    })
    return `${group.names} : ${words.length === 1 ? words[0] : `(${words.join(' OR ')})`}`
  })
  return expressions.length === 1 ? expressions[0]! : `(${expressions.join(' OR ')})`
}

const waysOf = (terms: readonly Term[]): number =>
  terms.reduce((ways, { corrections }) => ways * (1 + corrections.length), 1)

/** All ways to write the words: as typed, or with similar words instead. */
const writings = (terms: readonly Term[], group: ColumnGroup): string[][] =>
  terms.reduce<string[][]>(
    (ways, term) => {
      const { words: own, text } = group.analyzer.phrase(typed(term))
      const typedText = group.code ? inQuotes(own, group) : text
      const words = [typedText, ...term.corrections.map((word) => inQuotes([word], group))]
      return ways.flatMap((way) => words.map((word) => [...way, word]))
    },
    [[]],
  )

// =============================================================================
// The order of a plain search: matches by how well they fit (score.ts), then by the other keys of the sort.
//
// If there are few matches, all of them are read. Otherwise the tiers decide which to read first. Of each tier the first by
// the other keys are read, or without other keys the best by BM25, and the rest follow in that order. The order depends only on
// the query and not on the page, so no document is on two pages or on none.

interface RankedPage {
  rows: OrderedMatch[]
  /** by sequence number */
  texts: Map<number, TextScore>
}

/** What a search has found or a part of it, and where to look first. The last tier has all matches; without tiers, all are read. */
export interface Tiered {
  set: MatchSet
  tiersOf: () => readonly Tier[]
}

/** A tier with so many matches likely fills the first page. FTS5 is not asked for wider ones: each takes it a millisecond. */
const ENOUGH = 16

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

/** The matches of a window, in order. */
export async function rankedPage(
  ranking: Ranking,
  found: Tiered,
  { offset, limit }: Window,
): Promise<RankedPage> {
  const { set, tiersOf } = found
  const page: RankedPage = { rows: [], texts: new Map() }
  const tiers = sizeOf(set) <= FEW ? [] : tiersOf()
  if (tiers.length === 0) {
    await ranking.context.pace.rest(READING)
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
  const { scorer } = ranking
  const { pace } = ranking.context
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
 * Starts from a tier that has few matches but enough for a page, else from the widest that has few. If all have many, it starts
 * from the first; then fields that equal the query come before it, since they may not be among those that are read.
 */
async function* segmentsOf(
  ranking: Ranking,
  { set }: Tiered,
  tiers: readonly Tier[],
): AsyncGenerator<Segment> {
  if (tiers.length === 0) return
  const { context } = ranking
  const last = tiers.length - 1
  const known = new Map<number, MatchSet>([[last, set]])
  const matching = async (at: number): Promise<MatchSet> => {
    const before = known.get(at)
    if (before !== undefined) return before
    const own = common((await allMatches(context, tiers[at]!.match)).set, set)
    known.set(at, own)
    return own
  }
  const sizeAt = async (at: number) => sizeOf(await matching(at))
  const few = (await sizeAt(0)) <= FEW
  // Each tier is a part of the next. If the first has many matches, so have the others.
  let [first, many] = [0, few ? last : 1]
  while (many - first > 1 && (await sizeAt(first)) < ENOUGH) {
    const middle = (first + many) >> 1
    if ((await sizeAt(middle)) <= FEW) first = middle
    else many = middle
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
  await ranking.context.pace.rest(READING)
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
  const { context, sort } = ranking
  const set = minus(own, setOf(known))
  const keys = sort.length === 1 && size > MOST_WEIGHED ? [NEWEST] : sort.slice(1)
  if (keys.length > 0) {
    return (await windowOf(context, equalCandidates(set), keys, window)).rows
  }
  const { match, shortest } = tier
  if (shortest !== undefined) return firstByLength(context, set, wordsIn(match.table, shortest), window)
  return bestMatches(context, match, set, { ...window, sort })
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
  const inOrder = [...read]
  if (ranking.sort.length > 1) {
    // The other keys decide only between those that fit equally well. Where all are equal, the newest comes first, as in Typesense.
    const { context, sort } = ranking
    const equals = equalCandidates(setOf(read.map(({ seq }) => seq)))
    const { rows } = await windowOf(context, equals, sort, { offset: 0, limit: read.length })
    const places = new Map(rows.map(({ seq }, place) => [seq, place]))
    const placeOf = ({ seq }: Scored) => places.get(seq) ?? 0
    inOrder.sort((a, b) => b.text.rank - a.text.rank || placeOf(a) - placeOf(b))
  } else {
    inOrder.sort(
      (a, b) => b.text.rank - a.text.rank || b.shape - a.shape || b.quality - a.quality || b.seq - a.seq,
    )
  }
  const window = inOrder.slice(offset, offset + limit)
  return window.map(({ seq, text }) => ({
    row: { seq, score: -text.rank, distance: null, fused: null },
    text,
  }))
}

// =============================================================================
// Documents with a field that equals the query. They come first, however low their BM25 is.

/** A text may have this many characters more than the query and still equal it: symbols around the words. */
const MOST_SIGNS = 1

/** Documents with a field that is the query, word by word. */
export async function wholeFields(ranking: Ranking, { initial }: Tier): Promise<number[]> {
  const { context, request, filter, scorer } = ranking
  if (initial === undefined || !request.ranking.exactMatch) return []
  // A path of SQLite cannot quote a quote.
  const fields = request.queryFields.map(({ field }) => field).filter(({ name }) => !name.includes('"'))
  if (fields.length === 0) return []
  const paths = [
    ...new Set(fields.flatMap(({ name }) => [`$."${name}"`, `$."${name.replaceAll('.', '"."')}"`])),
  ]
  const isShort = fragment(
    `EXISTS (SELECT 1 FROM documents x, json_each(?) p, json_each(x.body, p.value) t
       WHERE t.atom IS NOT NULL AND length(t.atom) <= ? AND x.seq = d.seq)`,
    JSON.stringify(paths),
    request.q.length + MOST_SIGNS,
  )
  const { set } = await filteredMatches(context, initial, filter)
  const seqs: number[] = []
  for await (const relation of partsOf(set, context.pace)) {
    seqs.push(
      ...context.pace.query<{ seq: number }>(context.sql, where(relation, isShort)).map(({ seq }) => seq),
    )
    if (seqs.length > FEW) return []
  }
  return scorer
    .scoreAll(seqs)
    .filter(({ text }) => text.best?.order === 2)
    .map(({ seq }) => seq)
}

// =============================================================================
// Runs a plain search: what is typed into a search box, without vectors and without a conversation around it.

/** Where all matches need scores, as for groups, so many are read one by one. */
const FEW_AS_A_WHOLE = 250

/** From this `drop_tokens_threshold` on, any informative word is always enough: the search is for a question. */
const ANY_WORD = 1_000_000

export const isPlain = ({ index, dropTokensThreshold, contextQ }: SearchRequest): boolean =>
  !index.stems && dropTokensThreshold < ANY_WORD && contextQ === ''

/**
 * Finds and ranks the matches of a plain search.
 * @param asked.top the page beside the pinned documents, if the best text matches come first in it
 * @returns undefined when the query has no word to look for
 */
export async function findPlain(
  context: Running,
  request: SearchRequest,
  asked: { query: ParsedQuery; filter: Conditions; top: Top | undefined; pinned: Found['pinned'] },
): Promise<Found | undefined> {
  const { query, filter, pinned, top } = asked
  const plain = await planPlainSearch(context, request, query, filter, top)
  if (plain === undefined) return undefined
  const { terms, match, matches: set, tiers: tiersOf, index } = plain
  const candidates: Found['candidates'] = {
    text: true,
    vector: false,
    found: sizeOf(set),
    set: async () => set,
  }
  if (tiersOf === undefined) {
    candidates.gathered = once(async () => gatherScores(context, await scoredMatches(context, match, filter)))
    return { candidates, terms, index, pinned, top: plain.top }
  }
  const sort = completeSort(request.sort, context.schema, { text: true, vector: false })
  const scorer = new DocumentScorer(context, request, terms)
  const ranking = { context, request, scorer, filter, sort }
  const found = { set, tiersOf }
  const texts = new Map<number, TextScore>()
  const fit = fitOf(ranking, found, texts)
  const fitting = { ...candidates, fit }
  if (top === undefined) return { candidates: fitting, terms, pinned, texts }
  const page = await rankedPage(ranking, found, top)
  return {
    candidates: fitting,
    terms,
    pinned,
    top: { rows: page.rows, found: sizeOf(set) },
    texts: page.texts,
    first: (limit: number) => rankedPage(ranking, found, { offset: 0, limit }),
  }
}

/** @param texts gets how well the documents fit that are read one by one */
function fitOf(ranking: Ranking, found: Tiered, texts: Map<number, TextScore>): Fit {
  let scores: Promise<Scores> | undefined
  const keep = (read: Iterable<readonly [number, TextScore]>) => {
    for (const [seq, text] of read) texts.set(seq, text)
  }
  return {
    all: () => {
      const keys = ranking.sort.filter(({ kind }) => kind === 'field')
      scores ??= scoresOfAll({ ...ranking, sort: [BY_TEXT, ...keys, NEWEST] }, found, FEW_AS_A_WHOLE)
      return scores
    },
    of: (seqs) => {
      const read = ranking.scorer.scoreAll(seqs)
      keep(read.map(({ seq, text }) => [seq, text]))
      return new Map(read.map(({ seq, text }) => [seq, -text.rank]))
    },
    first: async (some, keys, window) => {
      const own = { ...ranking, sort: [BY_TEXT, ...keys, NEWEST] }
      const page = await rankedPage(own, { ...found, set: some }, window)
      keep(page.texts)
      return page.rows
    },
  }
}
