/** The documents that an answer stands on, as chat protocols show them: pure. */

import type { Assistant } from '../../registry/assistants'
import type { Passage } from '../../turn/events'
import { labelOf } from '../../turn/labels'
import { ADDRESS, linkable, textsOf } from '../../turn/passage'

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

/**
 * The sources of an answer, best first.
 * @param fields where they are not named, `url` and whatever the document itself is called by
 */
export function sourcesOf(passages: readonly Passage[], fields: SourceFields = {}): AnswerSource[] {
  const { title_field: titleField, url_field: address = ADDRESS, citation_field: field } = fields
  return passages.map((passage) => {
    const { collection, id: documentId, fields: shown } = passage
    const named = titleField === undefined ? undefined : shown[titleField]
    const title = typeof named === 'string' ? named.trim() : ''
    const url = address === ADDRESS ? passage.url : linkable(shown[address])
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
