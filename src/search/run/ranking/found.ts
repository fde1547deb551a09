/** Plain searches: what is typed into a search box, without vectors and without a conversation around it. */
import type { SearchRequest } from '../../request/request'
import { completeSort } from '../../request/sort'
import type { ParsedQuery } from '../../text/query'
import { scoredMatches } from '../block-scores'
import type { Candidates, RangedFilter, Top } from '../candidates'
import type { SearchContext } from '../context'
import { filteredMatches } from '../filtered-matches'
import { Gathered } from '../gathered'
import type { HitRow } from '../hits'
import { setOf } from '../match-set'
import type { Pace } from '../pace'
import type { Found } from '../page'
import { besidePinned, withPinned } from '../pinned'
import { DocumentScorer } from './documents'
import { FEW } from './matches'
import { planPlainSearch } from './plain'
import { rankedPage } from './window'

/** Groups, buckets and orders with the worst text match first read this many matches. */
const FEW_AS_A_WHOLE = 250
/** Reading this many matches of a single word costs less than asking FTS5 which come first. */
const FEW_OF_A_WORD = 160

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
  asked: { query: ParsedQuery; filter: RangedFilter; top: Top | undefined; pinned: Found['pinned'] },
  pace: Pace,
): Promise<Found | undefined> {
  const { query, filter, pinned } = asked
  const top = asked.top && besidePinned(asked.top, pinned)
  const paged = (others: { rows: HitRow[]; found: number } | undefined) =>
    asked.top && others && withPinned(others, pinned, asked.top)
  const { schema } = context
  const sort = completeSort(request.sort, schema, { text: true, vector: false })
  const isWhole = request.groupBy.length > 0 || sort[0]!.kind === 'text_match'
  const few = query.terms.length === 1 ? FEW_OF_A_WORD : FEW
  const most = top === undefined && isWhole ? FEW_AS_A_WHOLE : few
  const plain = await planPlainSearch(context, request, query, filter, { most, top }, pace)
  if (plain === undefined) return undefined
  const { terms, match, seqs, tiers, index } = plain
  const candidates: Found['candidates'] = {
    ...(plain.isListed ? { parts: listed(seqs!) } : scoredMatches(context, match, filter)),
    text: true,
    vector: false,
    found: seqs?.length,
    unscored: async (pace) =>
      seqs ? setOf(seqs) : (await filteredMatches(context, match, filter, pace))?.set,
  }
  if (tiers === undefined) {
    return {
      candidates: { ...candidates, found: plain.top?.found },
      terms,
      index,
      pinned,
      top: paged(plain.top),
    }
  }
  const scorer = new DocumentScorer(context, request, terms)
  if (top !== undefined) {
    const ranking = { context, request, scorer, filter, sort, pace }
    // Read matches that an expression could not find again, even if they are a few more.
    const all = seqs !== undefined && (plain.isListed || seqs.length <= few) ? seqs : undefined
    const page = await rankedPage(ranking, { seqs: all, found: plain.found, count: plain.count }, tiers, top)
    const first = (limit: number) => rankedPage(ranking, { seqs: all }, tiers, { offset: 0, limit })
    const { found, texts } = page
    return { candidates: { ...candidates, found }, terms, pinned, top: paged(page), texts, first }
  }
  if (seqs === undefined || seqs.length > most || request.perPage === 0) return { candidates, terms, pinned }
  const gathered = new Gathered()
  const scored = scorer.scoreAll(seqs)
  for (const { seq, text } of scored) gathered.add(seq, -text.rank, Number.NaN, Number.NaN)
  const texts = new Map(scored.map(({ seq, text }) => [seq, text]))
  return { candidates: { ...candidates, parts: gathered.parts, scored: undefined }, terms, pinned, texts }
}

/** Documents as parts of the matches. Their scores are not known. */
function listed(seqs: readonly number[]): Candidates['parts'] {
  const gathered = new Gathered()
  for (const seq of seqs) gathered.add(seq, Number.NaN, Number.NaN, Number.NaN)
  return gathered.parts
}
