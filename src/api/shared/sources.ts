/** The sources of an answer as chat protocols show them. Pure functions. */

import { textOf } from '../../lib/parts'
import type { Assistant } from '../../registry/assistants'
import type { Passage } from '../../turn/events'
import type { Turn } from '../../turn/fold'
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

// Turns citations into Markdown links: `[plan.pdf]` in an answer becomes `[[1]](https://…)`, or `[1]` if the document has
// no address.
//
// A chat widget that renders Markdown and knows nothing of sources then still shows where an answer comes from. Brackets
// that name no source stay as they are, and so do links that the model wrote.

/** Characters in brackets that may be names of sources. Longer text is ignored. */
const LONGEST_MARK = 300

export class CitationLinks {
  /** by label. Not by id, because a number in brackets may be a list item or code */
  readonly #links = new Map<string, string>()
  /** text held back because it may begin a mark */
  #held = ''

  /** @param sources all of the turn so far, in its order. Call it again when more are found; held text stays held */
  cite(sources: readonly AnswerSource[]): void {
    for (const [index, { label, url }] of sources.entries()) {
      const number = `[${index + 1}]`
      if (this.#links.has(label)) continue
      this.#links.set(label, url === undefined ? number : `[${number}](${asTarget(url)})`)
    }
  }

  /** Adds a piece of the answer. @returns the text that can be shown now */
  add(text: string): string {
    if (this.#links.size === 0) return text
    const whole = this.#held + text
    const open = openMark(whole)
    this.#held = whole.slice(open)
    return this.#link(whole.slice(0, open))
  }

  /** @returns the text that was held back; the answer is complete */
  end(): string {
    const rest = this.#link(this.#held)
    this.#held = ''
    return rest
  }

  #link(text: string): string {
    return text.replace(/\[([^[\]]+)\](?!\()/g, (mark, inside: string) => {
      const whole = this.#links.get(inside.trim())
      if (whole !== undefined) return whole
      const links = inside.split(/[,;]/).map((name) => this.#links.get(name.trim()))
      return links.every((link) => link !== undefined) ? links.join('') : mark
    })
  }
}

/** The whole answer with its links. @param turn one that is done */
export function linkedAnswer({ answer, passages }: Turn, fields: SourceFields): string {
  const links = new CitationLinks()
  links.cite(sourcesOf(passages, fields))
  return links.add(textOf(answer)) + links.end()
}

/** A bracket in an address would end the link. */
const asTarget = (url: string): string => url.replace(/[()]/g, (bracket) => (bracket === '(' ? '%28' : '%29'))

/**
 * The start of the text that cannot be shown yet: an open bracket, or a mark at the very end, since only the next
 * character decides whether it is a link.
 */
function openMark(text: string): number {
  const at = text.lastIndexOf('[')
  if (at < 0 || text.length - at > LONGEST_MARK) return text.length
  const close = text.indexOf(']', at)
  return close < 0 || close === text.length - 1 ? at : text.length
}
