/**
 * Results while a question is typed: a list above the field, which the keyboard walks as it does in a search box. A part of its own,
 * which is loaded where a page asks for it and somebody types (load.ts).
 */
import { h } from './dom'
import type { Found } from './wire'
import type { Words } from './words'

/** How long the typing rests before it is searched, in milliseconds. */
const REST_MS = 150
/** UTF-16 units from which on a text is a question and no search. */
const LONGEST = 120

export interface FinderHost {
  words: Words
  field: HTMLTextAreaElement
  /** where the list comes to stand: before this */
  before: HTMLElement
  find(query: string, signal: AbortSignal): Promise<Found[]>
  /** a result was opened */
  opened(found: Found): void
}

export class Finder {
  readonly #host: FinderHost
  readonly #list: HTMLElement
  #options: HTMLAnchorElement[] = []
  #active = -1
  #timer: ReturnType<typeof setTimeout> | undefined
  #abort = new AbortController()

  constructor(host: FinderHost) {
    const { words, field, before } = host
    this.#host = host
    this.#list = h('div', {
      class: 'found',
      part: 'results',
      role: 'listbox',
      id: 'found',
      'aria-label': words.found,
      hidden: true,
    })
    before.before(this.#list)
    field.setAttribute('aria-controls', 'found')
    field.addEventListener('input', () => this.#typed())
    // Before the field's own, which sends at Enter.
    field.addEventListener('keydown', (event) => this.#pressed(event), { capture: true })
    field.addEventListener('blur', () => this.#close())
    // A press must not take the focus: the list would be gone before it is let go.
    this.#list.addEventListener('pointerdown', (event) => event.preventDefault())
    this.#typed()
  }

  #typed(): void {
    clearTimeout(this.#timer)
    this.#abort.abort()
    const query = this.#host.field.value.trim()
    if (query === '' || query.length > LONGEST || query.includes('\n')) this.#close()
    else this.#timer = setTimeout(() => this.#search(query), REST_MS)
  }

  async #search(query: string): Promise<void> {
    this.#abort = new AbortController()
    const { signal } = this.#abort
    // Without results there is still the answer.
    const found = await this.#host.find(query, signal).catch(() => [])
    if (signal.aborted || this.#host.field.value.trim() !== query) return
    this.#show(found.filter(({ url }) => url !== undefined))
  }

  #show(found: readonly Found[]): void {
    if (found.length === 0) {
      this.#close()
      return
    }
    this.#options = found.map((each, at) =>
      h(
        'a',
        {
          class: 'found-page',
          role: 'option',
          id: `found-${at}`,
          'aria-selected': 'false',
          tabindex: -1,
          href: each.url,
          target: '_blank',
          rel: 'noopener',
          onclick: () => this.#host.opened(each),
        },
        h('span', { class: 'found-title', dir: 'auto' }, each.title),
        h(
          'span',
          { class: 'found-text', dir: 'auto' },
          ...each.snippet.map(({ text, mark }) => (mark ? h('mark', {}, text) : text)),
        ),
      ),
    )
    this.#list.replaceChildren(...this.#options, h('p', { class: 'found-hint' }, this.#host.words.enterAsks))
    this.#list.hidden = false
    this.#host.field.setAttribute('aria-expanded', 'true')
    this.#choose(-1)
  }

  #close(): void {
    clearTimeout(this.#timer)
    this.#abort.abort()
    this.#list.hidden = true
    this.#options = []
    this.#host.field.setAttribute('aria-expanded', 'false')
    this.#choose(-1)
  }

  #pressed(event: KeyboardEvent): void {
    if (event.isComposing || this.#list.hidden) return
    const last = this.#options.length - 1
    if (event.key === 'ArrowDown') this.#choose(this.#active < last ? this.#active + 1 : -1)
    else if (event.key === 'ArrowUp') this.#choose(this.#active < 0 ? last : this.#active - 1)
    else if (event.key === 'Escape') this.#close()
    else if (event.key === 'Enter' && !event.shiftKey) {
      const chosen = this.#options[this.#active]
      if (!chosen) {
        this.#close()
        return
      }
      chosen.click()
    } else return
    event.preventDefault()
    event.stopImmediatePropagation()
  }

  /** @param at of an option; -1: the field itself, whose Enter asks */
  #choose(at: number): void {
    this.#active = at
    for (const [index, option] of this.#options.entries())
      option.setAttribute('aria-selected', String(index === at))
    const option = this.#options[at]
    option?.scrollIntoView({ block: 'nearest' })
    if (option) this.#host.field.setAttribute('aria-activedescendant', option.id)
    else this.#host.field.removeAttribute('aria-activedescendant')
  }
}

export type FinderPart = { attach(host: FinderHost): void }

;(globalThis as Record<symbol, unknown>)[Symbol.for('parley-chat.finder')] = {
  attach: (host) => void new Finder(host),
} satisfies FinderPart
