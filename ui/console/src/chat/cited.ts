/** The documents that finished turns cite, for a conversation whose searches are not in its log any more. */
import type { Citation, StoredTurn } from '../../../widget/src/wire'
import { Refusal, send } from '../api'
import type { PromptSource, SearchReply } from './wire'

/** What a page of search results holds. */
const MOST = 250

/** What the event `retrieval` would have said, as far as it is known. */
export interface Retrieval {
  replies: SearchReply[]
  sources: PromptSource[]
}

const sourcesOf = (citations: readonly Citation[]): PromptSource[] => {
  const seen = new Map(
    citations.map(({ collection, document_id }) => [
      `${collection}/${document_id}`,
      { collection, document_id },
    ]),
  )
  return [...seen.values()]
}

/** @returns by the number of the turn. Documents that are gone, or that the key may not read, are left out */
export async function citedBy(turns: readonly StoredTurn[]): Promise<Map<number, Retrieval>> {
  const all = sourcesOf(turns.flatMap(({ citations }) => citations))
  const names = [...new Set(all.map(({ collection }) => collection))]
  if (names.length === 0) return new Map()
  const searches = names.map((collection) => {
    const ids = all
      .filter((source) => source.collection === collection && !source.document_id.includes('`'))
      .map(({ document_id }) => `\`${document_id}\``)
    const filter_by = `id:=[${ids.slice(-MOST).join(',')}]`
    return { collection, q: '*', filter_by, per_page: MOST, exclude_fields: 'embedding' }
  })
  const found = await send<{ results: SearchReply['result'][] }>('POST', '/multi_search', { searches }).catch(
    (error) => {
      if (error instanceof Refusal) return { results: [] }
      throw error
    },
  )
  const replies = found.results.map((result, at): SearchReply => {
    const collection_name = names[at] ?? ''
    return { result: { ...result, request_params: { ...result?.request_params, collection_name } } }
  })
  return new Map(turns.map(({ turn, citations }) => [turn, { replies, sources: sourcesOf(citations) }]))
}
