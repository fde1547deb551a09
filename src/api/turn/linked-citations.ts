/**
 * Citations as Markdown links: `[plan.pdf]` in an answer becomes `[[1]](https://…)` on its way to the reader, or `[1]`
 * where the document has no address.
 *
 * A chat widget that shows Markdown but knows nothing of sources still shows where an answer comes from. Brackets
 * that name no source of the answer stay as they are, and so do links that the model wrote itself.
 */
import type { AnswerSource } from './sources'

/** Longest text in brackets that may be names of sources. What is longer goes out as it is. */
const LONGEST_MARK = 300

export class CitationLinks {
  /** by label, and not by id: a number in brackets may well be a place in a list, or code */
  readonly #links = new Map<string, string>()
  /** the end of the text so far, where it may be the beginning of a mark */
  #held = ''

  constructor(sources: readonly AnswerSource[]) {
    for (const [index, { label, url }] of sources.entries()) {
      const number = `[${index + 1}]`
      if (this.#links.has(label)) continue
      this.#links.set(label, url === undefined ? number : `[${number}](${asTarget(url)})`)
    }
  }

  /** Adds a piece of the answer. @returns what of the text may be shown already */
  add(text: string): string {
    if (this.#links.size === 0) return text
    const whole = this.#held + text
    const open = openMark(whole)
    this.#held = whole.slice(open)
    return this.#link(whole.slice(0, open))
  }

  /** What was held back: nothing comes after it. */
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

/** A bracket in an address would end the link. */
const asTarget = (url: string): string => url.replace(/[()]/g, (bracket) => (bracket === '(' ? '%28' : '%29'))

/**
 * Where the end of a text begins that cannot be shown yet: at a bracket that is still open, or at a mark of which
 * the next character will tell whether it is a link.
 */
function openMark(text: string): number {
  const at = text.lastIndexOf('[')
  if (at < 0 || text.length - at > LONGEST_MARK) return text.length
  const close = text.indexOf(']', at)
  return close < 0 || close === text.length - 1 ? at : text.length
}
