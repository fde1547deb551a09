/** The documents that an answer stands on, as chat protocols show them: pure. */

import { titleOf } from '../../models/extractive/sentences'
import type { Assistant } from '../../registry/assistants'
import type { Document } from '../../search/types'
import type { SearchReply, SourceReference } from '../../turn/events'
import { labelOf } from '../../turn/labels'
import { hitsOf } from '../../turn/retrieve'

/** Which fields of a document say what it is called, where it can be read, and by what an answer cites it. */
export type SourceFields = Pick<Assistant, 'title_field' | 'url_field' | 'citation_field'>

export interface AnswerSource {
  /** names the source within one answer: `<collection>/<document id>` */
  id: string
  collection: string
  documentId: string
  /** never empty: a document without a name goes by its id */
  title: string
  /** what an answer calls it that cites by label (turn/labels.ts) */
  label: string
  /** absent where the document has no address that a page may link to */
  url?: string
  /** the document's texts, cut where they are long */
  text: string
}

/** UTF-16 units of a source's text. Enough to show a passage, and far from the 64 KB that a line may have. */
const LONGEST_TEXT = 4_000

/**
 * The sources of an answer, best first: what went into the prompt, looked up among what was found.
 * @param fields where they are not named, `url` and whatever the document itself is called by
 */
export function sourcesOf(
  replies: readonly SearchReply[],
  references: readonly SourceReference[],
  fields: SourceFields = {},
): AnswerSource[] {
  const found = documentsIn(replies)
  const { title_field: title, url_field: address = 'url', citation_field: field } = fields
  return references.map(({ collection, document_id: documentId }) => {
    const id = sourceId(collection, documentId)
    const document: Document = found.get(id) ?? { id: documentId }
    const url = linkable(document[address])
    return {
      id,
      collection,
      documentId,
      title: textOf(title === undefined ? undefined : document[title]) || titleOf(document) || documentId,
      label: labelOf(document, field === undefined ? {} : { field }) ?? documentId,
      ...(url !== undefined && { url }),
      text: textsOf(document, address),
    }
  })
}

/** All documents that were found, by `sourceId`. */
export function documentsIn(replies: readonly SearchReply[]): Map<string, Document> {
  const found = new Map<string, Document>()
  for (const reply of replies) {
    if (!('result' in reply)) continue
    const { collection_name: collection } = reply.result.request_params
    for (const { document } of hitsOf(reply.result)) found.set(sourceId(collection, document.id), document)
  }
  return found
}

export const sourceId = (collection: string, documentId: string): string => `${collection}/${documentId}`

/** An address that cannot do anything but open: documents are not trusted to hold scripts. */
const linkable = (value: unknown): string | undefined =>
  typeof value === 'string' && /^(https?:\/\/|\/(?!\/))[^\s<>"\\]*$/i.test(value) ? value : undefined

const textOf = (value: unknown): string => (typeof value === 'string' ? value.trim() : '')

const textsOf = (document: Document, address: string): string =>
  Object.entries(document)
    .filter(([name, value]) => typeof value === 'string' && name !== 'id' && name !== address)
    .map(([, value]) => value)
    .join('\n')
    .slice(0, LONGEST_TEXT)
    // Without half a character at its end.
    .replace(/[\ud800-\udbff]$/, '')
