/** The card of a citation: what of a source is cited, marked, with a link to its page. */
import { h, icon, iconButton } from './dom'
import { passageOf, type Source } from './sources'
import type { Words } from './words'

const GAP = 8
/** pixels that the digit may move while its card stays: a scroll that was under way ends after the click */
const DRIFT = 24

export class Card {
  readonly element = h('div', { class: 'card', part: 'card', role: 'dialog', tabindex: -1, hidden: true })
  #opener: HTMLElement | undefined
  /** where the digit was when the card opened */
  #openedAt = 0

  constructor(readonly words: () => Words) {
    this.element.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return
      event.stopPropagation()
      this.close(true)
    })
    this.element.addEventListener('focusout', ({ relatedTarget }) => {
      if (relatedTarget instanceof Node && !this.element.contains(relatedTarget)) this.close(false)
    })
  }

  get isOpen(): boolean {
    return !this.element.hidden
  }

  /**
   * @param opener the digit, which is focused again when the card is closed
   * @param holder what the card is to stay within
   * @param quote the sentence that is cited, where the server names one
   */
  open(
    opener: HTMLElement,
    holder: HTMLElement,
    source: Source,
    quote: string | undefined,
    sentence: string,
  ): void {
    const words = this.words()
    const { before, marked, after } = passageOf(source, quote, sentence)
    const title = h('p', { class: 'card-title', id: 'card-title', dir: 'auto' }, source.title)
    this.element.setAttribute('aria-labelledby', 'card-title')
    this.element.replaceChildren(
      h(
        'div',
        { class: 'card-head' },
        h('span', { class: 'number', 'aria-hidden': 'true' }, String(source.number)),
        title,
        iconButton('close', words.close, () => this.close(true)),
      ),
    )
    if (marked !== '') {
      this.element.append(h('p', { class: 'passage', dir: 'auto' }, before, h('mark', {}, marked), after))
    }
    if (source.url) {
      const link = h(
        'a',
        { class: 'card-link', href: source.url, target: '_blank', rel: 'noopener noreferrer' },
        words.openSource,
        h('span', { class: 'host' }, new URL(source.url).host),
        icon('open'),
      )
      this.element.append(link)
    }
    this.#opener?.setAttribute('aria-expanded', 'false')
    this.#opener = opener
    opener.setAttribute('aria-expanded', 'true')
    this.#openedAt = opener.getBoundingClientRect().top
    this.element.hidden = false
    this.#place(opener, holder)
    this.element.focus({ preventScroll: true })
  }

  /** Closes it if its digit has been scrolled away. */
  scrolled(): void {
    if (!this.isOpen || this.#opener === undefined) return
    if (Math.abs(this.#opener.getBoundingClientRect().top - this.#openedAt) > DRIFT) this.close(false)
  }

  /** @param refocus whether the digit is focused again */
  close(refocus: boolean): void {
    if (!this.isOpen) return
    this.element.hidden = true
    this.#opener?.setAttribute('aria-expanded', 'false')
    if (refocus) this.#opener?.focus({ preventScroll: true })
    this.#opener = undefined
  }

  /** Below the digit, or above it where there is more room. */
  #place(opener: HTMLElement, holder: HTMLElement): void {
    const { style } = this.element
    const frame = holder.getBoundingClientRect()
    const at = opener.getBoundingClientRect()
    const { offsetWidth: width, offsetHeight: height } = this.element
    const below = at.bottom + GAP
    const fits = below + height <= frame.bottom - GAP || at.top - GAP - height < frame.top
    const top = fits ? Math.min(below, frame.bottom - GAP - height) : at.top - GAP - height
    const left = Math.min(
      Math.max(at.left + at.width / 2 - width / 2, frame.left + GAP),
      frame.right - GAP - width,
    )
    style.setProperty('top', `${Math.max(top, frame.top + GAP) - frame.top}px`)
    style.setProperty('left', `${left - frame.left}px`)
  }
}
