/** The documents that finished turns cite, for a conversation whose searches are not in its log any more. */
import type { Citation, StoredTurn } from '../../../widget/src/wire'
import { readDocuments, refOf } from './titles'
import type { PromptSource, SearchReply } from './wire'

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

/** @returns by the number of the turn. Documents that are gone, or that the key may not read, are left out */
export async function citedBy(turns: readonly StoredTurn[]): Promise<Map<number, Retrieval>> {
  const all = citedIn(turns.flatMap(({ citations }) => citations))
  if (all.length === 0) return new Map()
  const replies = await readDocuments(all, { exclude_fields: 'embedding' })
  return new Map(turns.map(({ turn, citations }) => [turn, { replies, sources: citedIn(citations) }]))
}
