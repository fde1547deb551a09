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
import type { SearchRequest } from '../../request/request'
import { completeSort, type SortKey } from '../../request/sort'
import { stemsOf, type TextIndex } from '../../text/analyzer'
import type { TextMatch } from '../../text/query'
import { informativeWords, matchExpression, type ParsedQuery, relax, type Term } from '../../text/query'
import type { Conditions, Top } from '../candidates'
import type { SearchContext } from '../context'
import { filteredMatches } from '../filtered-matches'
import type { Matches } from '../kept-matches'
import type { MatchSet } from '../match-set'
import type { Pace } from '../pace'
import { areKnown, columnsOf, correct, rankOf, withSimilar, withSpacing } from '../query-words'
import { splitsAndJoins } from '../split-join'
import { withLongest } from './longer-words'
import { bestOfQuestion, type Counted } from './matches'
import { type Tier, tiersByCount, tiersOf } from './tiers'

/** With this many informative words, a query counts as a question. */
const QUESTION_WORDS = 5
/** More matches than this are enough whatever the thresholds say. */
const MOST_COUNTED = 10_000
/** The words of a longer query are not corrected. */
const MOST_CORRECTED = 10
/** Of a longer query, only the first words are dropped. */
const MOST_DROPPED = 20

export interface PlainSearch {
  /** the words of the query, with the words that are searched for instead */
  terms: Term[]
  match: TextMatch
  matches: MatchSet
  /** the index that was searched, if it is not the request's */
  index?: TextIndex
  /** where to look first; undefined if any word is enough, and BM25 ranks */
  tiers: (() => Tier[]) | undefined
  /** the best matches, if BM25 ranks and they were asked for */
  top?: Counted
}

/**
 * Chooses the query for the index, by counting matches.
 * @param top the best matches to bring along, where BM25 ranks
 * @returns undefined when the query has no word to look for
 */
export async function planPlainSearch(
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  filter: Conditions,
  top: Top | undefined,
  pace: Pace,
): Promise<PlainSearch | undefined> {
  if (query.terms.length === 0 || request.queryFields.length === 0) return undefined
  const { table } = request.index
  const columns = columnsOf(context, request)
  const rank = rankOf(context, request)
  const expression = (terms: Term[], operator: 'AND' | 'OR' = 'AND') =>
    matchExpression(terms, query.excluded, columns, operator)
  const attempt = async (words: string): Promise<{ match: TextMatch; matches: Matches }> => {
    const match = { match: words, table, rank }
    return { match, matches: await filteredMatches(context, match, filter, pace) }
  }

  let terms = withLongest(context, request, query.terms, pace)
  let search = await attempt(expression(terms))
  const isTooLittle = () => foundBy(search) < request.dropTokensThreshold
  const sort = completeSort(request.sort, context.schema, { text: true, vector: false })
  const isAsked = isQuestion(request, sort, query.terms)
  const answered = () => answerOf(context, request, query, { filter, top, found: foundBy(search) }, pace)
  // A sentence without a mistyped word is not corrected.
  if (isTooLittle() && isAsked && areKnown(context, request, query.terms)) {
    const question = await answered()
    if (question !== undefined) return question
  }
  if (foundBy(search) < request.typoTokensThreshold && terms.length <= MOST_CORRECTED) {
    const corrected = request.index.stems
      ? correct(context, request, terms)
      : await withSimilar(context, request, terms, pace)
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
    if (!isTooLittle() && !isBothSides(terms, request)) break
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
  context: SearchContext,
  request: SearchRequest,
  { terms, excluded }: ParsedQuery,
  { filter, top, found }: { filter: Conditions; top: Top | undefined; found: number },
  pace: Pace,
): Promise<PlainSearch | undefined> {
  const any = relax(terms)
  // The answer to a sentence seldom has its exact words, so use stems.
  const index = stemsOf(request.queryFields.map(({ field }) => field))
  const columns = columnsOf(context, { ...request, index })
  const words = matchExpression(any, excluded, columns, 'OR')
  const match = { match: words, table: index.table, rank: rankOf(context, request) }
  const ranked = await bestOfQuestion(context, match, filter, top, pace)
  if (ranked.found <= found) return undefined
  const { set } = await filteredMatches(context, match, filter, pace)
  return { terms: any, match, matches: set, tiers: undefined, index, ...(top && { top: ranked }) }
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

const isBothSides = (terms: readonly Term[], { dropTokensMode }: SearchRequest): boolean =>
  terms.length <= dropTokensMode.bothSides

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
