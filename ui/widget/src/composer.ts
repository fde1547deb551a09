/** The field for a question, which keeps what is typed, with what sends it and what stops its answer. */
import { LONGEST_QUESTION } from '../../../src/turn/question-length'
import { h, iconButton } from './dom'
import type { Draft } from './storage'
import type { Words } from './words'

export interface ComposerOptions {
  words: Words
  draft: Draft
  /** what the field is called, and its id */
  label: string
  id?: string
  placeholder: string
  /** what stands above the field, within it before the text, and below */
  above?: Node
  before?: Node
  note?: Node | false
  ask(question: string): void
  stop(): void
}

export class Composer {
  readonly element: HTMLFormElement
  readonly field: HTMLTextAreaElement
  /** says that a question is too long */
  readonly #limit = h('p', { class: 'limit', role: 'status' })
  readonly #send: HTMLButtonElement
  readonly #stop: HTMLButtonElement
  readonly #options: ComposerOptions
  #busy = false

  constructor(options: ComposerOptions) {
    this.#options = options
    const { words, draft, label, id, placeholder, above, before, note, stop } = options
    this.field = h('textarea', {
      id,
      part: 'input',
      rows: 1,
      placeholder,
      'aria-label': label,
      enterkeyhint: 'send',
      oninput: () => this.fit(),
      onkeydown: (event: KeyboardEvent) => {
        if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) this.#submit(event)
      },
    })
    this.#send = iconButton('send', words.send, () => {}, { class: 'send', part: 'send', type: 'submit' })
    this.#stop = iconButton('stop', words.stop, stop, { class: 'send stop', part: 'stop', hidden: true })
    this.element = h(
      'form',
      { class: 'composer', part: 'composer', onsubmit: (event: Event) => this.#submit(event) },
      above,
      h('div', { class: 'field' }, before, this.field, this.#send, this.#stop),
      this.#limit,
      note,
    )
    this.field.value = draft.text
  }

  /** Whether an answer is being written, which can be stopped. The field gets the focus of the button that goes. */
  set busy(busy: boolean) {
    this.#busy = busy
    const hadFocus = this.#stop.matches(':focus')
    this.#stop.hidden = !busy
    this.#send.hidden = busy
    if (hadFocus && !busy) this.field.focus({ preventScroll: true })
  }

  #submit(event: Event): void {
    event.preventDefault()
    const question = this.field.value
    if (this.#busy || question.trim() === '' || question.length > LONGEST_QUESTION) return
    this.field.value = ''
    this.fit()
    this.#options.ask(question)
  }

  /**
   * Keeps what is in the field, makes the field as high as its text, and says if that is too long. A hint is in the page's own
   * direction, a question in its own.
   */
  fit(): void {
    const { field } = this
    const { words, draft } = this.#options
    draft.text = field.value
    this.#limit.textContent = field.value.length > LONGEST_QUESTION ? words.tooLong : ''
    if (field.value === '') field.removeAttribute('dir')
    else field.dir = 'auto'
    field.style.setProperty('height', 'auto')
    field.style.setProperty('height', `${field.scrollHeight}px`)
    this.#send.classList.toggle('ready', field.value.trim() !== '')
  }
}
