/** Plain searches: what is typed into a search box, without vectors and without a conversation around it. */
import type { SearchRequest } from '../../request/request'
import { completeSort } from '../../request/sort'
import type { ParsedQuery } from '../../text/query'
import type { OrderedMatch } from '../candidates'
import { type Conditions, type Fit, gatherScores, type Scores, type Top } from '../candidates'
import type { SearchContext } from '../context'
import { besidePinned, withPinned } from '../curate'
import { scoredMatches } from '../kept-matches'
import { once, sizeOf } from '../match-set'
import type { Pace } from '../pace'
import type { Found } from '../page'
import type { Ranking } from './documents'
import { BY_TEXT, DocumentScorer } from './documents'
import { NEWEST, planPlainSearch, rankedPage, scoresOfAll, type Tiered } from './plain'
import type { TextScore } from './score'

/** Where all matches need scores, as for groups, so many are read one by one. */
const FEW_AS_A_WHOLE = 250

/** From this `drop_tokens_threshold` on, any informative word is always enough: the search is for a question. */
const ANY_WORD = 1_000_000

export const isPlain = ({ index, dropTokensThreshold, contextQ }: SearchRequest): boolean =>
  !index.stems && dropTokensThreshold < ANY_WORD && contextQ === ''

/**
 * Finds and ranks the matches of a plain search.
 * @param asked.top the page, if the best text matches come first in it. Pinned documents are put into it
 * @returns undefined when the query has no word to look for
 */
export async function findPlain(
  context: SearchContext,
  request: SearchRequest,
  asked: { query: ParsedQuery; filter: Conditions; top: Top | undefined; pinned: Found['pinned'] },
  pace: Pace,
): Promise<Found | undefined> {
  const { query, filter, pinned } = asked
  const top = asked.top && besidePinned(asked.top, pinned)
  const paged = (rows: OrderedMatch[], found: number) =>
    asked.top && withPinned({ rows, found }, pinned, asked.top)
  const plain = await planPlainSearch(context, request, query, filter, top, pace)
  if (plain === undefined) return undefined
  const { terms, match, matches: set, tiers: tiersOf, index } = plain
  const candidates: Found['candidates'] = {
    text: true,
    vector: false,
    found: sizeOf(set),
    set: async () => set,
  }
  if (tiersOf === undefined) {
    candidates.gathered = once(async (by) =>
      gatherScores(context.sql, await scoredMatches(context, match, filter, by), by),
    )
    return { candidates, terms, index, pinned, top: plain.top && paged(plain.top.rows, plain.top.found) }
  }
  const sort = completeSort(request.sort, context.schema, { text: true, vector: false })
  const scorer = new DocumentScorer(context, request, terms)
  const ranking = { context, request, scorer, filter, sort, pace }
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
    top: paged(page.rows, sizeOf(set)),
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
