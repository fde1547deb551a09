/** An engine's replies for the wires that show them: pure. */
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
  return summaries.map(({ collection, found = 0, limit = 0, error }): SearchReply => {
    if (error) return { error: error.message, code: error.status }
    const hits = passages
      .filter((passage) => passage.collection === collection)
      .map(({ id, fields }) => ({ document: { ...fields, id }, highlight: {}, highlights: [] }))
    const params = { collection_name: collection, first_q: '', per_page: limit, q: '' }
    return { result: { facet_counts: [], found, hits, request_params: params, search_cutoff: false } }
  })
}
