/** The card of a citation: what of a source is cited, marked, with a link to its page, and what the sources say of the sentence. */
import { h, icon, iconButton } from './dom'
import { type Evidence, saysOf } from './evidence'
import { type Passage, passageOf, type Source } from './sources'
import type { Words } from './words'

const GAP = 8
/** pixels that the digit may move while its card stays: a scroll that was under way ends after the click */
const DRIFT = 24
/** milliseconds until a pointer that rests on a digit opens its card, and until one that has left closes it */
const [REST, LEAVE] = [150, 300]
/** words of a long sentence that an address names, at its beginning and its end */
const FEW = 5

export class Card {
  readonly element = h('div', { class: 'card', part: 'card', role: 'dialog', tabindex: -1, hidden: true })
  #opener: HTMLElement | undefined
  /** where the digit was when the card opened */
  #openedAt = 0
  /** whether it stays when the pointer or the focus leaves its digit: it was pressed, or the card is used */
  #isPinned = false
  #isRefocusing = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #peek = new AbortController()

  /** @param holder what the card is to stay within */
  constructor(
    readonly words: () => Words,
    readonly holder: () => HTMLElement,
  ) {
    this.element.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return
      // Or browsers close the dialog around it: they let a page prevent that once, until it is clicked again.
      event.preventDefault()
      event.stopPropagation()
      this.close(true)
    })
    this.element.addEventListener('focusin', () => {
      this.#isPinned = true
    })
    this.element.addEventListener('focusout', ({ relatedTarget }) => {
      if (relatedTarget instanceof Node && !this.element.contains(relatedTarget)) this.close(false)
    })
    this.element.addEventListener('pointerenter', () => clearTimeout(this.#timer))
    this.element.addEventListener('pointerleave', () => this.#left())
  }

  get isOpen(): boolean {
    return !this.element.hidden
  }

  /**
   * Has an element open the card when it is pressed.
   * @param evidence what the card shows, asked for when it opens
   * @param peeks whether it opens for a pointer that rests there too, and for the focus of the keyboard
   * @param opened is told what was opened by a press
   */
  serve(
    opener: HTMLElement,
    evidence: () => Evidence,
    peeks: boolean,
    opened: (source: Source) => void = () => {},
  ): void {
    opener.addEventListener('click', () => {
      const shown = evidence()
      this.#open(opener, shown)
      this.#isPinned = true
      this.element.focus({ preventScroll: true })
      if (shown.source) opened(shown.source)
    })
    if (!peeks) return
    const peek = () => {
      if (!opener.isConnected || (this.isOpen && (this.#isPinned || this.#opener === opener))) return
      this.#open(opener, evidence())
      this.#isPinned = false
      // Whatever has the focus, Escape closes what the pointer has opened, and that alone.
      const onkey = (event: KeyboardEvent) => {
        if (event.key !== 'Escape' || this.#isPinned) return
        event.preventDefault()
        event.stopPropagation()
        this.close(false)
      }
      addEventListener('keydown', onkey, { capture: true, signal: this.#peek.signal })
    }
    opener.addEventListener('pointerenter', ({ pointerType }) => {
      clearTimeout(this.#timer)
      if (pointerType === 'mouse') this.#timer = setTimeout(peek, REST)
    })
    opener.addEventListener('pointerleave', () => this.#left())
    opener.addEventListener('focus', () => {
      if (!this.#isRefocusing && opener.matches(':focus-visible')) peek()
    })
    opener.addEventListener('blur', ({ relatedTarget }) => {
      const isWithin = relatedTarget instanceof Node && this.element.contains(relatedTarget)
      if (this.#opener === opener && !this.#isPinned && !isWithin) this.close(false)
    })
  }

  #left(): void {
    clearTimeout(this.#timer)
    if (this.#isPinned || this.#opener?.matches(':focus-visible')) return
    this.#timer = setTimeout(() => this.close(false), LEAVE)
  }

  #open(opener: HTMLElement, { source, quote, sentence, support }: Evidence): void {
    this.close(false)
    const words = this.words()
    const says = support ? saysOf(support, words) : []
    const heading = source?.title ?? says.shift() ?? ''
    const title = h('p', { class: 'card-title', id: 'card-title', dir: 'auto' }, heading)
    this.element.setAttribute('aria-labelledby', 'card-title')
    this.element.replaceChildren(
      h(
        'div',
        { class: 'card-head' },
        h('span', { class: 'number', 'aria-hidden': 'true' }, source ? String(source.number) : '?'),
        title,
        iconButton('close', words.close, () => this.close(true)),
      ),
    )
    if (source) this.#show(source, passageOf(source, quote, sentence), words)
    if (says.length > 0) {
      const lines = says.map((line) => h('span', { dir: 'auto' }, line))
      this.element.append(h('p', { class: `support ${support!.support}` }, ...lines))
    }
    this.#opener = opener
    opener.setAttribute('aria-expanded', 'true')
    this.#openedAt = opener.getBoundingClientRect().top
    this.element.hidden = false
    this.#place(opener, this.holder())
  }

  #show({ title, url }: Source, { path = [], before, marked, after }: Passage, words: Words): void {
    const above = path.filter((heading) => heading !== title)
    if (above.length > 0) {
      this.element.append(h('p', { class: 'card-path', dir: 'auto' }, above.join(' › ')))
    }
    if (marked !== '') {
      this.element.append(h('p', { class: 'passage', dir: 'auto' }, before, h('mark', {}, marked), after))
    }
    if (url) {
      const link = h(
        'a',
        { class: 'card-link', href: placeIn(url, marked), target: '_blank', rel: 'noopener noreferrer' },
        words.openSource,
        h('span', { class: 'host' }, new URL(url).host),
        icon('open'),
      )
      this.element.append(link)
    }
  }

  /** Closes it if its digit has been scrolled away. */
  scrolled(): void {
    if (!this.isOpen || this.#opener === undefined) return
    if (Math.abs(this.#opener.getBoundingClientRect().top - this.#openedAt) > DRIFT) this.close(false)
  }

  /** @param refocus whether the digit is focused again */
  close(refocus: boolean): void {
    clearTimeout(this.#timer)
    if (!this.isOpen) return
    this.#peek.abort()
    this.#peek = new AbortController()
    this.element.hidden = true
    this.#opener?.setAttribute('aria-expanded', 'false')
    this.#isRefocusing = true
    if (refocus) this.#opener?.focus({ preventScroll: true })
    this.#isRefocusing = false
    this.#isPinned = false
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

/** An address with the sentence that browsers scroll to and mark. One that names a place already stays as it is. */
function placeIn(url: string, marked: string): string {
  if (marked === '' || marked.endsWith('…') || url.includes('#')) return url
  const words = marked.split(' ')
  const ends = words.length > 3 * FEW ? [words.slice(0, FEW), words.slice(-FEW)] : [words]
  const named = ends.map((some) => encodeURIComponent(some.join(' ')).replaceAll('-', '%2D'))
  return `${url}#:~:text=${named.join()}`
}
