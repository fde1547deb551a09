/** Documents behind answers. */
import { call } from './stream.js'

/** What a page of search results holds. */
const MOST = 250

/** @param {any[]} replies of searches @returns {Record<string, unknown>[]} what they found */
export const documentsOf = (replies) =>
  replies.flatMap(({ result = {} }) => {
    const hits = result.hits ?? result.grouped_hits?.flatMap((/** @type {any} */ group) => group.hits) ?? []
    return hits.map((/** @type {any} */ hit) => hit.document)
  })

/**
 * The documents that turns cite, as far as they are still there.
 * @param {any[]} past
 * @param {string} key
 * @returns {Promise<(citations: import('./render.js').Citation[]) => Record<string, unknown>[]>}
 */
export async function citedDocuments(past, key) {
  /** @type {import('./render.js').Citation[]} */
  const citations = past.flatMap((turn) => turn.citations)
  const names = new Set(citations.map(({ collection }) => collection))
  const lists = await Promise.all(
    Array.from(names, async (collection) => {
      const ids = citations
        .filter((citation) => citation.collection === collection && !citation.document_id.includes('`'))
        .map(({ document_id }) => `\`${document_id}\``)
      const filter = `id:=[${[...new Set(ids)].slice(-MOST).join(',')}]`
      const search = { collection, q: '*', filter_by: filter, per_page: MOST, exclude_fields: 'embedding' }
      const asked = { method: 'POST', body: JSON.stringify({ searches: [search] }) }
      const reply = await call('/multi_search', key, asked).then(
        (response) => response.json(),
        () => ({ results: [] }),
      )
      const documents = documentsOf(reply.results.map((/** @type {unknown} */ result) => ({ result })))
      return documents.map((document) => ({ collection, document }))
    }),
  )
  const known = lists.flat()
  return (wanted) =>
    known.flatMap(({ collection, document }) =>
      wanted.some((citation) => citation.collection === collection && citation.document_id === document.id)
        ? [document]
        : [],
    )
}
