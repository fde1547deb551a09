/**
 * An answer as blocks of Markdown. Only the last block is made anew while the answer grows: what stands before it stays
 * the same nodes, so that nothing that was read moves.
 */

import type { Grammar, Piece } from './code'
import { h, iconButton } from './dom'
import type { Block, Markdown } from './markdown'
import { mend } from './mend'
import { patch } from './patch'
import { MARK } from './sources'
import type { Words } from './words'

export interface BlockOptions {
  words: Words
  /** the digit of a source, to be opened */
  cite(number: number, citation: number | undefined): HTMLElement
  /** Puts a text on the clipboard, and shows on the button that it is there. */
  copy(text: string, button: HTMLButtonElement): void
  /** the pieces of code that have colours of their own; absent: code has one colour */
  colour?: ((text: string, grammar: Grammar) => Promise<Piece[] | undefined>) | undefined
}

interface Shown {
  raw: string
  element: HTMLElement
}

export class Blocks {
  readonly element = h('div', { class: 'prose', part: 'answer', dir: 'auto' })
  readonly #options: BlockOptions
  #shown: Shown[] = []
  /** blocks that are finished, and the length of their text */
  #settled = 0
  #length = 0
  #plain = false

  constructor(options: BlockOptions) {
    this.#options = options
  }

  /** Forgets what was shown, so that all of it is made anew. */
  reset(): void {
    this.#plain = true
    this.#settled = 0
    this.#length = 0
  }

  /** The texts of blocks that got finished since this was asked last, for whoever listens rather than looks. */
  spoken: string[] = []

  /**
   * Shows a text that begins with what was shown before.
   * @param markdown undefined until it is loaded: the text is then shown as it is
   * @param ended whether nothing follows
   */
  update(text: string, markdown: Markdown | undefined, ended: boolean): void {
    if (!markdown) {
      this.#plain = true
      this.element.replaceChildren(h('p', { class: 'plain' }, text.replace(MARK, '')))
      return
    }
    if (this.#plain) {
      this.#plain = false
      this.#shown = []
      this.element.replaceChildren()
    }
    const spokenBefore = this.#settled
    if (ended) this.#finish(text, markdown)
    else this.#grow(text, markdown)
    for (const { element } of this.#shown.slice(spokenBefore, this.#settled))
      this.spoken.push(textOf(element))
    const whole = ended ? this.#shown : this.#shown.slice(spokenBefore, this.#settled)
    for (const { element } of whole) this.#colour(element, markdown)
  }

  #grow(text: string, markdown: Markdown): void {
    const { blocks, links } = markdown.lex(mend(text.slice(this.#length)))
    const last = blocks.findLastIndex(({ type }) => type !== 'space')
    let at = this.#settled
    for (const [index, block] of blocks.entries()) {
      if (block.type !== 'space' && block.type !== 'def') this.#show(at++, block, markdown, links)
      if (index < last) {
        this.#length += block.raw.length
        this.#settled = at
      }
    }
    this.#cut(at)
  }

  /** All of it, since what comes at the end can say what links before it mean. Blocks that stay the same stay. */
  #finish(text: string, markdown: Markdown): void {
    const { blocks, links } = markdown.lex(text)
    const anew = Object.keys(links).length > 0
    let at = 0
    for (const block of blocks) {
      if (block.type !== 'space' && block.type !== 'def') this.#show(at++, block, markdown, links, anew)
    }
    this.#cut(at)
    this.#settled = at
    this.#length = text.length
  }

  #cut(length: number): void {
    for (const { element } of this.#shown.splice(length)) element.remove()
  }

  #show(
    at: number,
    block: Block,
    markdown: Markdown,
    links: Parameters<Markdown['render']>[1],
    anew = false,
  ): void {
    const shown = this.#shown[at]
    const raw = block.raw.trimEnd()
    if (shown?.raw === raw && !anew) return
    const element = shown?.element ?? h('div', { class: 'block' })
    if (!shown) this.element.append(element)
    this.#shown[at] = { raw, element }
    if (block.code) {
      this.#showCode(element, block.code)
      return
    }
    const fragment = markdown.render(block, links)
    this.#cite(fragment)
    for (const table of fragment.querySelectorAll('table')) {
      const scroller = h('div', {
        class: 'scroller',
        tabindex: 0,
        role: 'group',
        'aria-label': this.#options.words.table,
      })
      table.replaceWith(scroller)
      scroller.append(table)
    }
    for (const pre of fragment.querySelectorAll('pre')) {
      const holder = h('div')
      this.#showCode(holder, { text: pre.textContent ?? '', language: pre.dataset.language ?? '' })
      pre.replaceWith(holder)
    }
    for (const part of fragment.querySelectorAll('p, li, td, th, h1, h2, h3, h4, h5, h6, blockquote')) {
      part.setAttribute('dir', 'auto')
    }
    patch(element, fragment)
  }

  /** Code keeps its elements while it grows, and with them its place when it was scrolled. */
  #showCode(element: HTMLElement, { text, language }: { text: string; language: string }): void {
    const clean = text.replace(MARK, '')
    const code = element.querySelector('code')
    if (code && element.querySelector('.language')) {
      element.querySelector('.language')!.textContent = language
      if (code.textContent === clean) return
      const { firstChild } = code
      if (firstChild instanceof Text && clean.startsWith(firstChild.data)) {
        firstChild.appendData(clean.slice(firstChild.data.length))
      } else code.textContent = clean
      return
    }
    const { words, copy } = this.#options
    const content = h('code', {}, clean)
    const button = iconButton('copy', words.copyCode, () => copy(content.textContent ?? '', button))
    element.replaceChildren(
      h(
        'div',
        { class: 'code', part: 'code', dir: 'ltr' },
        h('div', { class: 'code-bar' }, h('span', { class: 'language' }, language), button),
        h('pre', { tabindex: 0, role: 'group', 'aria-label': language || words.code }, content),
      ),
    )
  }

  /** Gives code its colours, once it is whole. It stays as it is where they cannot be loaded. */
  #colour(element: HTMLElement, { grammarOf }: Markdown): void {
    for (const code of element.querySelectorAll('.code code')) {
      const text = code.textContent ?? ''
      const language = code.closest('.code')?.querySelector('.language')?.textContent ?? ''
      const grammar = grammarOf(language)
      if (grammar === undefined || code.childElementCount > 0) continue
      this.#options
        .colour?.(text, grammar)
        .then((pieces) => {
          if (!pieces || code.textContent !== text) return
          code.replaceChildren(
            ...pieces.map(({ text: piece, kind }) =>
              kind ? h('span', { class: `token-${kind}` }, piece) : piece,
            ),
          )
        })
        .catch((error) => console.warn(error))
    }
  }

  /** Puts digits in the place of marks. */
  #cite(fragment: DocumentFragment): void {
    const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT)
    const texts: Text[] = []
    while (walker.nextNode()) texts.push(walker.currentNode as Text)
    for (const node of texts.filter(({ data }) => data.includes('\ue000'))) {
      const inCode = node.parentElement?.closest('code')
      const pieces: (string | HTMLElement)[] = []
      let from = 0
      for (const { 0: mark, 1: number, 2: citation, index } of node.data.matchAll(MARK)) {
        pieces.push(node.data.slice(from, index))
        if (!inCode)
          pieces.push(
            this.#options.cite(Number(number), citation === undefined ? undefined : Number(citation)),
          )
        from = index + mark.length
      }
      node.replaceWith(...pieces, node.data.slice(from))
    }
  }
}

/** What an element says, without the digits of its citations. */
export function textOf(element: Element): string {
  const copy = element.cloneNode(true) as Element
  for (const digit of copy.querySelectorAll('.cite, .code-bar')) digit.remove()
  return (copy.textContent ?? '').trim()
}
