/**
 * Turns citations into Markdown links: `[plan.pdf]` in an answer becomes `[[1]](https://…)`, or `[1]` if the document has
 * no address.
 *
 * A chat widget that renders Markdown and knows nothing of sources then still shows where an answer comes from. Brackets
 * that name no source stay as they are, and so do links that the model wrote.
 */
import { textOf } from '../../lib/parts'
import type { Turn } from '../../turn/fold'
import { type AnswerSource, type SourceFields, sourcesOf } from './sources'

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
