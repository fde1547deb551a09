/** What documents are called that traces and citations name by their ids alone, and which documents turns cite. */
import type { Citation, StoredTurn } from '../../../widget/src/wire'
import { orElse, send, useLoaded } from '../api'
import { titleOf } from './insight'
import type { PromptSource, SearchReply } from './wire'

/** What a page of search results holds. */
const MOST = 250
const CALLED = 'id,heading,title,name,question'

/** `collection/id` */
export const refOf = ({ collection, document_id }: PromptSource): string => `${collection}/${document_id}`

/**
 * Reads documents by their ids.
 * @param more parameters of the searches
 * @returns a reply for each collection. Documents that are gone, or that the key may not read, are left out
 */
async function readDocuments(
  refs: readonly PromptSource[],
  more: Record<string, string>,
): Promise<SearchReply[]> {
  const names = [...new Set(refs.map(({ collection }) => collection).filter(Boolean))]
  if (names.length === 0) return []
  const searches = names.map((collection) => {
    const ids = refs
      .filter((ref) => ref.collection === collection && !ref.document_id.includes('`'))
      .map(({ document_id }) => `\`${document_id}\``)
    const filter_by = `id:=[${[...new Set(ids)].slice(-MOST).join(',')}]`
    return { collection, q: '*', filter_by, per_page: MOST, ...more }
  })
  const asked = send<{ results: SearchReply['result'][] }>('POST', '/multi_search', { searches })
  const { results } = await orElse(asked, { results: [] })
  return results.map((result, at) => ({
    result: { ...result, request_params: { ...result?.request_params, collection_name: names[at] ?? '' } },
  }))
}

/** @returns what to call a document: its id until its title is known */
export function useTitles(refs: readonly PromptSource[]): (ref: PromptSource) => string {
  const names = [...new Set(refs.map(refOf))].sort()
  const { data } = useLoaded(names.length > 0 ? `titles ${names.join('\n')}` : undefined, async () => {
    const replies = await readDocuments(refs, { include_fields: CALLED })
    return new Map(
      replies.flatMap(({ result }) =>
        (result?.hits ?? []).map(({ document }) => [
          `${result?.request_params?.collection_name}/${document.id}`,
          titleOf(document),
        ]),
      ),
    )
  })
  return (ref) => data?.get(refOf(ref)) ?? ref.document_id
}

/** What the event `retrieval` would have said, as far as it is known. */
export interface Retrieval {
  replies: SearchReply[]
  sources: PromptSource[]
}

/** The documents that citations name, each once. */
export const citedIn = (citations: readonly Citation[]): PromptSource[] => [
  ...new Map(
    citations.map(({ collection, document_id }) => {
      const source = { collection, document_id }
      return [refOf(source), source]
    }),
  ).values(),
]

/**
 * The documents that finished turns cite, for a conversation whose searches are not in its log any more.
 * @returns by the number of the turn. Documents that are gone, or that the key may not read, are left out
 */
export async function citedBy(turns: readonly StoredTurn[]): Promise<Map<number, Retrieval>> {
  const all = citedIn(turns.flatMap(({ citations }) => citations))
  if (all.length === 0) return new Map()
  const replies = await readDocuments(all, { exclude_fields: 'embedding' })
  return new Map(turns.map(({ turn, citations }) => [turn, { replies, sources: citedIn(citations) }]))
}
