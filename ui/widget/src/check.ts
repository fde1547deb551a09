/** The switch that shows in an answer which of its sentences the sources do not support. */
import { h, iconButton } from './dom'
import { lettersOf, type Placed, placesIn } from './evidence'
import type { Turn } from './turn'
import type { SentenceSupport } from './wire'
import type { Words } from './words'

/** The texts of an answer on the page, but for digits and blocks of code. */
function textsOf(prose: Element): Text[] {
  const walker = document.createTreeWalker(prose, NodeFilter.SHOW_TEXT)
  const texts: Text[] = []
  while (walker.nextNode()) {
    const text = walker.currentNode as Text
    if (!text.parentElement?.closest('.cite, .code')) texts.push(text)
  }
  return texts
}

export class Check {
  readonly button: HTMLButtonElement
  readonly note = h('p', { class: 'check-note', hidden: true })
  readonly #turn: Turn
  readonly #prose: Element
  readonly #words: Words
  readonly #say: (text: string) => void
  readonly #doubt: (sentence: SentenceSupport) => HTMLElement
  #isOn = false

  /** @param doubt makes what stands behind a sentence that is not supported, and tells more of it */
  constructor(
    turn: Turn,
    prose: Element,
    { words, say }: { words: Words; say(text: string): void },
    doubt: (sentence: SentenceSupport) => HTMLElement,
  ) {
    this.#turn = turn
    this.#prose = prose
    this.#words = words
    this.#say = say
    this.#doubt = doubt
    this.button = iconButton('verify', words.verify, () => this.#toggle(), { 'aria-pressed': 'false' })
  }

  get #places(): Placed[] {
    const { answer, support, sources } = this.#turn
    return placesIn(
      lettersOf(
        textsOf(this.#prose)
          .map(({ data }) => data)
          .join(''),
      ),
      answer,
      support,
      sources,
    )
  }

  /** What is known of the sentence that a digit stands in or behind. */
  at(digit: Element): SentenceSupport | undefined {
    if (this.#turn.support.length === 0) return undefined
    const before = textsOf(this.#prose)
      .filter((text) => text.compareDocumentPosition(digit) & Node.DOCUMENT_POSITION_FOLLOWING)
      .map(({ data }) => lettersOf(data).length)
      .reduce((sum, length) => sum + length, 0)
    return this.#places.find(({ from, to }) => from < before && before <= to)
  }

  /** Has an answer be drawn as if nobody had asked. @param draw changes what is on the page */
  around(draw: () => void): void {
    if (this.#isOn) this.#unmark()
    draw()
    if (this.#isOn) this.#mark()
  }

  #toggle(): void {
    this.#isOn = !this.#isOn
    this.button.setAttribute('aria-pressed', String(this.#isOn))
    this.note.hidden = !this.#isOn
    if (this.#isOn) this.#show()
    else this.#unmark()
  }

  #show(): void {
    const { support } = this.#turn
    const { length: n } = support.filter((each) => each.support !== 'supported')
    const { allSupported, doubted } = this.#words
    this.note.textContent =
      n === 0 ? allSupported : doubted.replace('{n}', String(n)).replace('{all}', String(support.length))
    this.#say(this.note.textContent)
    this.#mark()
  }

  #unmark(): void {
    for (const doubt of this.#prose.querySelectorAll('.doubt')) doubt.remove()
    for (const piece of this.#prose.querySelectorAll('.partly, .unfound'))
      piece.replaceWith(...piece.childNodes)
    this.#prose.normalize()
  }

  /** From the last sentence to the first: a text that is cut in two keeps its beginning. */
  #mark(): void {
    const texts = textsOf(this.#prose)
    const doubted = this.#places.filter(({ support }) => support !== 'supported')
    for (const sentence of doubted.reverse()) {
      let end: Element | undefined
      let at = 0
      for (const text of texts) {
        const begin = at
        at += lettersOf(text.data).length
        if (at <= sentence.from || begin >= sentence.to) continue
        end = wrap(text, sentence.from - begin, sentence.to - begin, sentence.support)
      }
      // No button within a link, and digits stand nearer to their sentence.
      end = end?.closest('a, code') ?? end
      while (end?.nextElementSibling?.matches('.cite') && end.nextSibling === end.nextElementSibling)
        end = end.nextElementSibling
      end?.after(this.#doubt(sentence))
    }
  }
}

/** Puts some letters of a text, with the marks that end them, into an element of their own. @returns the element */
function wrap(text: Text, from: number, to: number, support: SentenceSupport['support']): Element {
  const places = [...text.data.matchAll(/[\p{L}\p{N}]/gu)].flatMap(({ 0: letter, index }) =>
    // As many places as `lettersOf` has units.
    Array.from({ length: letter.length }, (_, unit) => index + unit),
  )
  const start = from < 0 ? 0 : (places[from] ?? 0)
  let end = to > places.length ? text.data.length : (places[to - 1] ?? 0) + 1
  while (end < text.data.length && !/[\s\p{L}\p{N}]/u.test(text.data[end]!)) end += 1
  if (end < text.data.length) text.splitText(end)
  const piece = start > 0 ? text.splitText(start) : text
  const element = h('span', { class: support === 'partly' ? 'partly' : 'unfound' })
  piece.replaceWith(element)
  element.append(piece)
  return element
}
