/** The sources of an answer as chat protocols show them. Pure functions. */

import type { Assistant } from '../../registry/assistants'
import type { Passage } from '../../turn/events'
import { ADDRESS, labelOf, linkable, textsOf } from '../../turn/passage'

/** The fields of a document that hold its title, its address, and the name by which an answer cites it. */
export type SourceFields = Pick<Assistant, 'title_field' | 'url_field' | 'citation_field'>

export interface AnswerSource {
  /** names the source within one answer: `<collection>/<document id>` */
  id: string
  collection: string
  documentId: string
  /** never empty: the id stands in for a missing title */
  title: string
  /** its name in answers that cite by label (turn/labels.ts) */
  label: string
  /** absent if the document has no address that a page can safely link to */
  url?: string
  /** the document's texts, cut if they are long */
  text: string
}

/**
 * The sources of an answer, best first.
 * @param fields by default `url`, and whatever looks like a title
 */
export function sourcesOf(passages: readonly Passage[], fields: SourceFields = {}): AnswerSource[] {
  const { title_field: titleField, url_field: address = ADDRESS, citation_field: field } = fields
  return passages.map((passage) => {
    const { collection, id: documentId, fields: shown } = passage
    const named = titleField === undefined ? undefined : shown[titleField]
    const title = typeof named === 'string' ? named.trim() : ''
    const url = address === ADDRESS ? passage.url : linkable(shown[address], documentId)
    return {
      id: sourceId(collection, documentId),
      collection,
      documentId,
      title: title || passage.title || documentId,
      label: labelOf({ ...shown, id: documentId }, field === undefined ? {} : { field }) ?? documentId,
      ...(url !== undefined && { url }),
      text: address === ADDRESS ? passage.text : textsOf(shown, address),
    }
  })
}

export const sourceId = (collection: string, documentId: string): string => `${collection}/${documentId}`
