/** An engine's replies for the wires that show them, with the question that was asked, even if a rewritten one was searched: pure. */

import type { SearchResult } from '../../search/types'
import type { SearchReply } from '../../turn/events'
import type { Turn } from '../../turn/fold'

/**
 * The results of each search of a turn, in the order of its searches. If the engine's own replies were not kept, they
 * are rebuilt from the passages in the prompt.
 */
export function repliesOf({
  results,
  summaries,
  passages,
}: Pick<Turn, 'results' | 'summaries' | 'passages'>) {
  if (results) return results
  return summaries.map(({ collection, found = 0, limit = 0, error, q: further }): SearchReply => {
    if (error) return { error: error.message, code: error.status }
    const hits = passages
      .filter((passage) => passage.collection === collection && further === undefined)
      .map(({ id, fields }) => ({ document: { ...fields, id }, highlight: {}, highlights: [] }))
    const params = { collection_name: collection, first_q: '', per_page: limit, q: '' }
    return { result: { facet_counts: [], found, hits, request_params: params, search_cutoff: false } }
  })
}

/** The same with the question as it was asked, and with what a model asked to search for. @param question if it is known */
export const askedReplies = (
  turn: Pick<Turn, 'results' | 'summaries' | 'passages'>,
  question: string | undefined,
): SearchReply[] =>
  repliesOf(turn).map((reply, index) => {
    const asked = turn.summaries[index]?.q ?? question
    return 'result' in reply && asked !== undefined ? { result: asAsked(reply.result, asked) } : reply
  })

/** Typesense's wire has the question in two places (contract 1.6 and 1.7). */
export function asAsked(result: SearchResult, question: string): SearchResult {
  if (!result.request_params) return result
  return { ...result, request_params: { ...result.request_params, first_q: question, q: question } }
}

/** The reply of a search in Typesense's shape: its result, or its error. */
export const shownReply = (
  reply: SearchReply,
  question: string,
): SearchResult | { code: number; error: string } =>
  'result' in reply ? asAsked(reply.result, question) : { code: reply.code, error: reply.error }
